"""``kassay report``: a study's tables as a page."""

from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.report import history_report as past
from kassay.experiments.report.study_report import Report, render
from kassay.experiments.report.table_reader import load_tables
from kassay.reference.model.errors import InputError


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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Of a study, write this figure or table alone, repeated: its CSV file, and "
            "a figure's SVG file.",
        ),
    ] = None,
) -> None:
    """Write the report of a study or a history: one HTML page and a Markdown summary.

    The numbers of every figure and table of a study go into a CSV file each, in a folder
    named like the page: report-data beside report.html.

    Examples: `kassay report out/study -o report.html`,
    `kassay report out/study --only effect-within-families`
    """
    page = page or directory / "report.html"
    markdown = markdown or page.with_suffix(".md")
    if past.is_history(directory):
        if only:
            raise typer.BadParameter("--only is for studies; this is a history")
        texts = past.render(directory)
    else:
        found = render(load_tables(directory))
        texts = found.html, found.markdown
        _write_data(found, page.with_name(f"{page.stem}-data"), only)
        if only:
            return
    for path, text in zip((page, markdown), texts, strict=True):
        _write(path, text)
        print(path)  # noqa: T201


def _write_data(found: Report, folder: Path, only: list[str] | None) -> None:
    """Write the CSV of every figure and table, or of some, and of these the drawings too."""
    for name in only or ():
        if name not in found.data:
            raise InputError(f"no figure {name!r}; there are {', '.join(found.data)}")
    for name in only or found.data:
        _write(folder / f"{name}.csv", found.data[name])
        if only:
            print(folder / f"{name}.csv")  # noqa: T201
            if name in found.drawings:
                _write(folder / f"{name}.svg", found.drawings[name])
                print(folder / f"{name}.svg")  # noqa: T201


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
