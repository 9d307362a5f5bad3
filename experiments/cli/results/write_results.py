"""Write results as JSON, as tables and to files."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from kassay.experiments.cli.messages import print_error
from kassay.experiments.cli.options.output_options import Format
from kassay.experiments.cli.results.text_tables import TextTable, cell
from kassay.reference.model.errors import UsageError

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
