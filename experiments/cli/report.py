"""``kassay report``: a study's tables as a page."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.report import past
from experiments.report.load import load_tables
from experiments.report.page import render_html, render_markdown


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `kassay study` or `history` wrote.")
    ],
    *,
    page: Annotated[
        Path | None,
        typer.Option("--html", "-o", help="The page.", show_default="DIR/report.html"),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="The summary.", show_default="DIR/report.md"),
    ] = None,
) -> None:
    """Write the report of a study or a history: one HTML page and a Markdown summary.

    Example: `kassay report out/study -o report.html`
    """
    page = page or directory / "report.html"
    markdown = markdown or page.with_suffix(".md")
    if past.is_history(directory):
        texts = past.render(directory)
    else:
        tables = load_tables(directory)
        texts = render_html(tables), render_markdown(tables)
    for path, text in zip((page, markdown), texts, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)  # noqa: T201
