"""Write the results of a command as JSON, JSON Lines or tables."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from kassay.experiments.cli.application import REQUIRED, option, print_error, print_note
from kassay.reference.model.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table


class Format(StrEnum):
    """Format of a command's results on standard output: JSON Lines, JSON or table."""

    JSONL = "jsonl"
    JSON = "json"
    TABLE = "table"


def _check_directory(path: Path | None) -> Path | None:
    """Return an output directory, or raise a usage error if a part of its path is a file."""
    for part in () if path is None else (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise typer.BadParameter(f"must be a directory, but {part} is a file")
    return path


def directory_option(default: Any = REQUIRED) -> Any:
    """Declare the option for the output directory."""
    return option(default, "--output", "-o", callback=_check_directory, metavar="DIR")


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of text."""
_FILE_WIDTH = 120
"""Width in characters of tables that are not written to a terminal."""
_UNLIMITED = 10**6
_WORD = 24
"""Maximum width of words that a table does not divide."""
_CELL = 1000
"""Maximum number of characters of a table cell."""


def cell(value: object) -> str:
    """Convert a value to the text of a table cell, at most 1,000 characters long."""
    text = "" if value is None else without_control_characters(str(value)[: _CELL + 1])
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def without_control_characters(text: str) -> str:
    """Replace characters that can control the terminal, except line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """Columns of an output table. The first column is always the group id.

    The columns ``first`` (text), ``numbers`` and ``last`` (text) follow in this order. On a narrow
    terminal, the columns ``optional`` are hidden. A column in ``not_empty`` is omitted if all its
    cells are empty. ``rows`` converts a JSON record to table rows without the group id. The line
    ``below`` explains the table.
    """

    first: Sequence[str] = ()
    numbers: Sequence[str] = ()
    last: Sequence[str] = ()
    optional: Sequence[str] = ()
    not_empty: Sequence[str] = ()
    rows: Callable[[Record], Iterable[Sequence[object]]]
    below: str = ""

    def table(self, records: Iterable[Record]) -> list[dict[str, object]]:
        """Convert JSON records to table rows. The keys of a row are the column headings."""
        headings = ("group", *self.first, *self.numbers, *self.last)
        rows = [
            dict(zip(headings, [record["id"], *cells], strict=False))
            for record in records
            for cells in self.rows(record)
        ]
        empty = {name for name in self.not_empty if not any(row.get(name) for row in rows)}
        return [{name: row.get(name) for name in headings if name not in empty} for row in rows]

    def print(self, records: Iterable[Record]) -> None:
        """Print JSON records as a table."""
        text, rows = ("group", *self.first, *self.last), self.table(records)
        is_one = len({row["group"] for row in rows}) == 1
        optional = (*self.optional, "group") if self.optional and is_one else self.optional
        print_table(rows, text=text, optional=optional)
        if rows and self.below:
            typer.echo(self.below)


def print_records(
    records: Sequence[Record],
    output_format: Format,
    *,
    rows: Sequence[Record] = (),
    text: Collection[str] | None = None,
) -> None:
    """Print records as JSON or JSON Lines or, for the table format, ``rows`` as a table."""
    if output_format is Format.TABLE:
        print_table(rows, text=text)
    elif output_format is Format.JSON:
        print_json(records)
    else:
        for record in records:
            typer.echo(json_line(record))


def print_json(records: Sequence[Record]) -> None:
    """Print one record as a JSON object, or several records as a JSON array."""
    document = records[0] if len(records) == 1 else records
    typer.echo(json_line(document, indent=2))


def json_lines(records: Iterable[Record]) -> str:
    """Convert records to JSON Lines, one line per record."""
    return "".join(json_line(record) + "\n" for record in records)


def json_line(document: object, indent: int | None = None) -> str:
    """Convert a record to JSON. Raise UsageError if an integer is too long to print."""
    try:
        return json.dumps(document, ensure_ascii=False, indent=indent)
    except ValueError as error:
        if "digits" not in str(error):
            raise
        raise UsageError(
            "an integer in the result has too many digits to print (leximax values can be very "
            "long); use another --imbalance, or set PYTHONINTMAXSTRDIGITS=0"
        ) from None


def print_table(
    rows: Sequence[Record],
    *,
    text: Collection[str] | None = None,
    optional: Sequence[str] = (),
    title: str | None = None,
    is_dense: bool = False,
    is_complete: bool = False,
) -> None:
    """Print a table with one column per key of the rows.

    The columns ``text``, by default the first one, are texts. The others are right-aligned
    numbers. On a narrow terminal, the columns ``optional`` are hidden, the last ones first. With
    ``is_dense``, the table has no ruling lines; with ``is_complete``, all columns in one line.
    """
    if not rows:
        return
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    # Names of groups and members can contain [ ] and :word:, which Rich would interpret.
    width = _UNLIMITED if is_complete else None if is_terminal else _FILE_WIDTH
    console = Console(width=width, markup=False, emoji=False)
    headings, hidden = list(rows[0]), list[str]()
    names = headings[:1] if text is None else text
    widths = {one: _widths(one, rows, is_text=one in names) for one in headings}

    def needed() -> int:
        if is_dense:
            return sum(2 + widths[one].most for one in headings) - 2
        return sum(3 + widths[one].least for one in headings) + 1

    for heading in reversed(optional):
        if not is_terminal or needed() <= console.width:
            break
        if heading in headings:
            headings.remove(heading)
            hidden.insert(0, heading)
    if not is_terminal and needed() > console.width:
        console.width = _UNLIMITED
    fits = not is_dense and needed() <= console.width
    fitted = _fitted({one: widths[one] for one in headings}, console.width) if fits else {}
    console.print(_rich_table(headings, rows, names, title, is_dense, widths=fitted))
    if hidden:
        listed = ", ".join(heading.replace("\n", " ") for heading in hidden)
        print_note(f"hidden columns: {listed}; a wider terminal or JSON shows them")


class _Widths(NamedTuple):
    """Minimum width of a table column, and its width without wrapped cells."""

    least: int
    most: int


def _widths(heading: str, rows: Sequence[Record], *, is_text: bool) -> _Widths:
    from rich.cells import cell_len

    cells = [cell(row[heading]) for row in rows]
    words = (min(_WORD, cell_len(one)) for text in cells for one in text.split())
    least = max(words if is_text else map(cell_len, cells), default=0)
    return _Widths(
        max(least, *map(cell_len, heading.split())),
        max(map(cell_len, [*heading.split("\n"), *cells])),
    )


def _fitted(columns: Mapping[str, _Widths], width: int) -> dict[str, int]:
    """Reduce the widest columns until the table fits into ``width`` characters."""
    found = {name: max(one) for name, one in columns.items()}
    for _ in range(1 + sum(3 + one for one in found.values()) - width):
        wide = [name for name, one in columns.items() if found[name] > one.least]
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def _rich_table(
    headings: Sequence[str],
    rows: Sequence[Record],
    text: Collection[str],
    title: str | None,
    is_dense: bool,
    *,
    widths: Mapping[str, int],
) -> "Table":
    from rich.table import Table

    table = Table(title=title, box=None, pad_edge=False) if is_dense else Table(title=title)
    for heading in headings:
        table.add_column(
            heading,
            width=widths.get(heading),
            justify="left" if heading in text else "right",
            # Names of assignors in the first columns are copied to commands.
            no_wrap=heading == "assignor" and heading in headings[:2],
            overflow="fold",  # a number or name without its end would be wrong
        )
    for row in rows:
        table.add_row(*(cell(row[heading]) for heading in headings))
    return table


def error_record(
    group_id: str | None, error: Exception | str, output_format: Format = Format.JSONL
) -> Record:
    """Create the JSON record of a group with an error, and print the error.

    If JSON is printed to a terminal, the error appears only in the JSON.
    """
    if output_format is Format.TABLE or not (sys.stdout.isatty() and sys.stderr.isatty()):
        print_error(str(error))
    return {"id": group_id, "error": str(error)}


def directory_names(ids: Iterable[str | None]) -> list[str]:
    """Derive a unique directory name from each group id."""
    names: dict[str, None] = {}
    for number, id in enumerate(ids, 1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", id or "").strip(".-")
        names[name if name and name not in names else f"{name or 'group'}-{number}"] = None
    return list(names)
