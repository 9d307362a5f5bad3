"""``kassay report``: a study's tables as a page."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.report.load import load_tables
from experiments.report.page import render_html, render_markdown


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory that `kassay study` wrote.")
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
    """Write the report of a study: a self-contained HTML page and a Markdown summary.

    Example: `kassay report out/study -o report.html`
    """
    tables = load_tables(directory)
    page = page or directory / "report.html"
    markdown = markdown or page.with_suffix(".md")
    for path, text in ((page, render_html(tables)), (markdown, render_markdown(tables))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)  # noqa: T201
