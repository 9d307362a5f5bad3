"""Write results as JSON, as tables and to files."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kassay.experiments.cli.messages import print_error
from kassay.experiments.cli.options.output_options import Format

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of text."""
_FILE_WIDTH = 120
"""Width in characters of tables that are not written to a terminal."""

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """Columns of an output table after the first column, which is the group id.

    The columns ``first`` (text), ``numbers`` and ``last`` (text) follow in this order. ``rows``
    converts a JSON record to table rows without the group id.
    """

    first: Sequence[str] = ()
    numbers: Sequence[str] = ()
    last: Sequence[str] = ()
    rows: Callable[[Record], Iterable[Sequence[object]]]

    def table(self, records: Iterable[Record]) -> "Table":
        """Convert JSON records to a text table. The last column shows errors."""
        table = _new_table(("group", *self.first), self.numbers, self.last)
        for record in records:
            if "error" in record:
                blank = [""] * (len(table.columns) - 2)
                table.add_row(_cell(record["id"]), *blank, _cell(record["error"]))
                continue
            for cells in self.rows(record):
                table.add_row(_cell(record["id"]), *map(_cell, cells))
        return table


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
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def json_line(record: Record) -> str:
    """Convert one record to a line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": "))


def print_table(rows: Sequence[Record], *, text: int = 1, title: str | None = None) -> None:
    """Print a table with one column per key of the rows.

    Columns after the first ``text`` columns are right-aligned.
    """
    if not rows:
        return
    keys = list(rows[0])
    table = _new_table(keys[:text], keys[text:], title=title)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    table_console().print(table)


def print_scalars(records: Sequence[Record]) -> None:
    """Print records as a table, with columns only for keys with scalar values."""
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    print_table([{key: record.get(key) for key in keys} for record in records], text=len(keys))


def table_console() -> "Console":
    """Create a console for tables, with the width of the terminal or 120 characters."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _FILE_WIDTH
    # Names of groups and members can contain [ ] and :word:, which Rich would interpret.
    return Console(width=width, markup=False, emoji=False)


def _new_table(
    first: Sequence[str], numbers: Sequence[str], last: Sequence[str] = (), title: str | None = None
) -> "Table":
    from rich.table import Table

    table = Table(title=title)
    for heading in first:
        table.add_column(heading, no_wrap=heading == "assignor")
    for heading in numbers:
        table.add_column(heading, justify="right")
    for heading in last:
        table.add_column(heading)
    return table


def _cell(value: object) -> str:
    return "" if value is None else without_control_characters(str(value))


def without_control_characters(text: str) -> str:
    """Replace characters that could control the terminal, except line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def error_record(group_id: str | None, error: Exception | str) -> Record:
    """Create the JSON record of a group with an error, and print the error.

    On a terminal, the error appears only once.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        print_error(str(error))
    return {"id": group_id, "error": str(error)}


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file, and create missing parent directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
