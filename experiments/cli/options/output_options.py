"""Command-line options for the output format, output files and plots."""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import typer

from kassay.experiments.cli.options.option_checks import check_directory
from kassay.experiments.cli.options.option_groups import REQUIRED, option

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


_SHOWS_ALL_COLUMNS = ContextVar("shows_all_columns", default=False)


def shows_all_columns() -> bool:
    """Return whether tables on a terminal show all columns, for the option ``--wide``."""
    return _SHOWS_ALL_COLUMNS.get()


def _show_all_columns(wide: bool) -> bool:
    _SHOWS_ALL_COLUMNS.set(wide)
    return wide


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Command-line options for tables on a terminal."""

    wide: bool = option(
        False,
        "Show all columns and complete names in tables, also if the terminal is narrow.",
        callback=_show_all_columns,
    )


def format_option(default: Format) -> Any:
    """Declare the format of the results."""
    return option(
        default,
        "Output format. jsonl: one JSON line per result. json: indented JSON. table: text table.",
        "--format",
    )


def directory_option(
    text: str = "Directory to write the files to.", *, default: Any = REQUIRED, **settings: Any
) -> Any:
    """Declare the output directory. ``settings`` are further settings of the option."""
    return option(
        default, text, "--output", "-o", callback=check_directory, metavar="DIR", **settings
    )


def _writable_location(uri: str) -> str:
    from kassay.experiments.study.output_reader import location

    check_directory(location(uri))
    return uri


def location_option() -> Any:
    """Declare the output directory, which may be a URI."""
    return option(
        REQUIRED,
        "Directory to write the files to: a path, or a URI of a Hadoop file system such as "
        "hdfs:// or s3a://.",
        "--output",
        "-o",
        callback=_writable_location,
        metavar="URI",
    )


def plot_option() -> Any:
    """Declare the file of a plot per group."""
    return option(
        None,
        "Write a plot to this .svg or .png file. With several groups, the second plot is written "
        "to NAME-2.svg, the third to NAME-3.svg, and so on.",
        callback=_plot_file,
        metavar="FILE",
    )


def timeline_option() -> Any:
    """Declare the file of a timeline."""
    return option(
        None,
        "Draw the timeline to this .svg or .png file; requires one script and one policy.",
        callback=_plot_file,
        metavar="FILE",
    )


def numbered(file: Path | None) -> Iterator[Path]:
    """Yield an endless series of plot file names: FILE, FILE-2, FILE-3, ..."""
    if file is not None:
        yield file
        yield from (file.with_stem(f"{file.stem}-{number}") for number in count(2))
