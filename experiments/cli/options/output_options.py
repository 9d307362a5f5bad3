"""Command-line options for the output format, output files and plots."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

_PLOT_SUFFIXES = (".svg", ".png")


class Format(StrEnum):
    """Format of a command's results on standard output."""

    JSONL = "jsonl"
    JSON = "json"
    TABLE = "table"


def _plot_file(file: Path | None) -> Path | None:
    if file is not None and file.suffix not in _PLOT_SUFFIXES:
        raise typer.BadParameter(
            f"the file name must end in {' or '.join(_PLOT_SUFFIXES)}, got {file.name!r}"
        )
    return file


OutputFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        help="Output format. jsonl: one JSON line per result. json: indented JSON. table: text "
        "table.",
    ),
]
OutputDirectory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write the files to.")
]
OutputLocation = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="URI",
        help="Directory to write the files to: a path, or a URI of a Hadoop file system such as "
        "hdfs:// or s3a://.",
    ),
]


def output_file(text: str, *, default: str) -> Any:
    """Return the option for an output file, with its help text and its default."""
    return typer.Option("--output", "-o", metavar="FILE", help=text, show_default=default)


PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        callback=_plot_file,
        metavar="FILE",
        help="Write a plot to this .svg or .png file. With several groups, the second plot is "
        "written to NAME-2.svg, the third to NAME-3.svg, and so on.",
    ),
]
TimelineFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        callback=_plot_file,
        metavar="FILE",
        help="Draw the timeline to this .svg or .png file; requires one script and one policy.",
    ),
]


def numbered(file: Path | None) -> Iterator[Path]:
    """Yield an endless series of plot file names: FILE, FILE-2, FILE-3, ..."""
    if file is not None:
        yield file
        yield from (file.with_stem(f"{file.stem}-{number}") for number in count(2))
