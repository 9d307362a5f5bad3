"""Write the results of a command: options for formats, files and plots, JSON, and tables."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kassay.experiments.cli.option_groups import REQUIRED, check_directory, option
from kassay.experiments.cli.run_control import print_error, print_note
from kassay.reference.model.display import shorten_middle
from kassay.reference.model.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


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


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of text."""
_FILE_WIDTH = 120
"""Width in characters of tables that are not written to a terminal."""
_NAME_WIDTH = 22
"""Width of long names in a table that is wider than the terminal."""
_KEPT = 2
"""Number of columns at the start that are always shown."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Table of texts. The columns ``first`` and ``last`` are text, the others numbers.

    If a terminal is too narrow, the columns ``optional`` are hidden first, from the right.
    """

    first: Sequence[str]
    numbers: Sequence[str]
    last: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str | None = None
    optional: Sequence[str] = ()

    def print(self) -> None:
        """Print the table. A terminal shows the columns that fit, or all with ``--wide``."""
        from rich.table import Table

        console = _console()
        table, hidden = self, list[str]()
        if sys.stdout.isatty() and shows_all_columns():
            console.width = max(console.width, self._width())
        elif sys.stdout.isatty():
            table, hidden = self._fitted(console.width)
        shown = Table(title=self.title)
        for heading in table.first:
            is_name = heading == "assignor" or (hidden and heading == "group")
            shown.add_column(heading, no_wrap=bool(is_name))
        for heading in table.numbers:
            shown.add_column(heading, justify="right")
        for heading in table.last:
            shown.add_column(heading)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
        if hidden:
            names = ", ".join(heading.replace("\n", " ") for heading in hidden)
            print_note(f"hidden columns: {names}; show them with --wide")

    def _fitted(self, width: int) -> "tuple[TextTable, list[str]]":
        """Shorten names, then hide columns until the table fits a width."""
        if self._width() <= width:
            return self, []
        names = len(self.first)
        rows = [
            [text if " " in text else shorten_middle(text, _NAME_WIDTH) for text in row[:names]]
            + list(row[names:])
            for row in self.rows
        ]
        table = replace(self, rows=rows)
        headings = [*self.first, *self.numbers]
        free = range(len(headings) - 1, _KEPT - 1, -1)
        order = sorted(free, key=lambda column: headings[column] not in self.optional)
        for number in range(len(order) + 1):
            shown = table.without(order[:number])
            if shown._least_width() <= width:  # noqa: SLF001
                break
        return shown, [headings[column] for column in sorted(order[:number])]

    def without(self, hidden: Sequence[int]) -> "TextTable":
        """Return the table without the columns of the given numbers."""
        names = len(self.first)
        return replace(
            self,
            first=[text for at, text in enumerate(self.first) if at not in hidden],
            numbers=[text for at, text in enumerate(self.numbers, names) if at not in hidden],
            rows=[[text for at, text in enumerate(row) if at not in hidden] for row in self.rows],
        )

    def _columns(self) -> list[tuple[str, ...]]:
        headings = [
            max(heading.split("\n"), key=len)
            for heading in (*self.first, *self.numbers, *self.last)
        ]
        return list(zip(headings, *self.rows, strict=True))

    def _width(self) -> int:
        """Return the width of the table if no cell is wrapped."""
        return 1 + sum(3 + max(map(len, column)) for column in self._columns())

    def _least_width(self) -> int:
        """Return the width of the table if cells are wrapped between words.

        Long words of the last columns are split.
        """
        words = [" ".join(column).split() for column in self._columns()]
        widths = [max(map(len, column), default=0) for column in words]
        end = len(self.first) + len(self.numbers)
        return 1 + sum(
            3 + (width if at < end else min(width, _NAME_WIDTH)) for at, width in enumerate(widths)
        )


def _console() -> "Console":
    """Create a console for tables, with the width of the terminal or 120 characters."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _FILE_WIDTH
    # Names of groups and members can contain [ ] and :word:, which Rich would interpret.
    return Console(width=width, markup=False, emoji=False)


def cell(value: object) -> str:
    """Return the text of a table cell; None is empty."""
    return "" if value is None else without_control_characters(str(value))


def without_control_characters(text: str) -> str:
    """Replace characters that could control the terminal, except line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """Columns of an output table after the first column, which is the group id.

    The columns ``first`` (text), ``numbers`` and ``last`` (text) follow in this order. A narrow
    terminal hides the columns ``optional`` first. ``not_empty`` are columns of ``first`` or
    ``numbers`` that the table lacks if no row has a value. ``rows`` converts a JSON record to table
    rows without the group id.
    """

    first: Sequence[str] = ()
    numbers: Sequence[str] = ()
    last: Sequence[str] = ()
    optional: Sequence[str] = ()
    not_empty: Sequence[str] = ()
    rows: Callable[[Record], Iterable[Sequence[object]]]

    def table(self, records: Iterable[Record]) -> TextTable:
        """Convert JSON records without errors to a text table."""
        first = ("group", *self.first)
        rows = [
            [cell(record["id"]), *map(cell, cells)]
            for record in records
            for cells in self.rows(record)
        ]
        table = TextTable(first, self.numbers, self.last, rows, optional=self.optional)
        return table.without(
            [
                at
                for at, heading in enumerate((*first, *self.numbers))
                if heading in self.not_empty and not any(row[at] for row in rows)
            ]
        )


def print_records(
    records: Sequence[Record], output_format: Format, *, rows: Sequence[Record] = (), text: int = 1
) -> None:
    """Print records as JSON or as JSON lines, or print ``rows`` as a table (see `print_table`)."""
    if output_format is Format.TABLE:
        print_table(rows, text=text)
    elif output_format is Format.JSON:
        print_json(records)
    else:
        for record in records:
            typer.echo(json_line(record))


def print_json(records: Sequence[Record]) -> None:
    """Print records as indented JSON: one record as an object, several records as a list."""
    document = records[0] if len(records) == 1 else records
    typer.echo(_json(document, indent=2))


def json_line(record: Record) -> str:
    """Convert one record to a line of JSON."""
    return _json(record)


def _json(document: object, indent: int | None = None) -> str:
    try:
        return json.dumps(document, ensure_ascii=False, indent=indent)
    except ValueError as error:
        if "digits" not in str(error):
            raise
        raise UsageError(
            "a value of the result has too many digits for a text, as leximax in large groups; use "
            "another --imbalance, or set the environment variable PYTHONINTMAXSTRDIGITS to 0"
        ) from None


def print_table(
    rows: Sequence[Record],
    *,
    text: int = 1,
    optional: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Print a table with one column per key of the rows.

    The first ``text`` columns are texts. The others are right-aligned. A narrow terminal hides the
    columns ``optional`` first.
    """
    if not rows:
        return
    keys = list(rows[0])
    cells = [[cell(row[key]) for key in keys] for row in rows]
    TextTable(keys[:text], keys[text:], [], cells, title, optional).print()


def print_scalars(records: Sequence[Record]) -> None:
    """Print records as a table, with columns only for keys with scalar values."""
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    print_table([{key: record.get(key) for key in keys} for record in records], text=len(keys))


def error_record(
    group_id: str | None, error: Exception | str, output_format: Format = Format.JSONL
) -> Record:
    """Create the JSON record of a group with an error, and print the error.

    If JSON is printed to a terminal, the error appears only in the JSON.
    """
    if output_format is Format.TABLE or not (sys.stdout.isatty() and sys.stderr.isatty()):
        print_error(str(error))
    return {"id": group_id, "error": str(error)}


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file, and create missing parent directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
