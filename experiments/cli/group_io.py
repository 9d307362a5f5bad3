"""Read group documents, process each group, and write one result per group."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kassay.experiments.cli import BAD_INPUT, INTERRUPTED, print_error, print_note
from kassay.experiments.cli.interruption import STOP, exit_interrupted, stop_on_interrupt
from kassay.experiments.cli.output_options import Format
from kassay.experiments.sources.capture_files import (
    EmptyGroups,
    ImportedGroup,
    import_groups,
    join_imported,
)
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents import text_files
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STDIN, name_of = text_files.STDIN, text_files.name_of
NOT_REACHED = 1
"""Exit code if a requested condition is not met."""
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of text."""
_FILE_WIDTH = 120
"""Width in characters of tables that are not written to a terminal."""

GroupFile = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Group documents (JSON or JSON Lines) or captures of kafka-consumer-groups.sh: a "
        "file, plain or compressed with gzip, or a directory with captures taken at the same "
        "time. Use - or omit SOURCE to read standard input.",
        show_default=False,
    ),
]

ParsedGroup = tuple[str | None, Group | InputError]
"""Pair of a group id, and the parsed group or the error in its document."""
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Result for one group: the JSON record, and whether a requested condition is met.

    The exit code is 1 unless the requested condition is met.
    """

    record: Record
    reached: bool = True


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


def process_groups(
    file: Path,
    process: Callable[[Group], GroupResult],
    output_format: Format = Format.JSONL,
    layout: TableLayout | None = None,
    options: ImportOptions | None = None,
    *,
    groups: Iterable[ParsedGroup] | None = None,
) -> None:
    """Process each group of a source, or each given group, and write the results.

    ``options`` apply to captures and to the weights of group documents.

    ``process`` raises `InputError` for a group that it does not support. Such a group or a bad
    document gives a line ``{"id": ..., "error": ...}`` and the exit code 2. After Ctrl-C, the line
    of the current group is the last one, with ``"interrupted": true``, and the exit code is 130.
    """
    records: list[Record] = []
    code = 0
    for record, group_code in _results(file, process, groups or read_source(file, options)):
        code = max(code, group_code)
        if output_format is Format.JSONL:
            typer.echo(to_json(record))
        else:
            records.append(record)
    if output_format is Format.TABLE and layout is not None:
        _console().print(layout.table(records))
    elif output_format is Format.TABLE:
        _print_scalars(records)
    elif output_format is Format.JSON:
        print_json(records)
    if code == INTERRUPTED:
        exit_interrupted("the result of the last group is the best one found so far, if any")
    if code:
        raise typer.Exit(code)


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
            typer.echo(to_json(record))


def print_json(records: Sequence[Record]) -> None:
    """Print records as indented JSON: one record as an object, several records as a list."""
    document = records[0] if len(records) == 1 else records
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def read_source(
    file: Path,
    options: ImportOptions | None = None,
    *,
    selected: Collection[str] = (),
    print_notes: bool = True,
) -> Iterator[ParsedGroup]:
    """Read groups from documents or captures. Yield an `InputError` for each invalid group.

    Unless ``print_notes`` is false, the notes of captures, and the state of rebalancing groups,
    are printed. If ``selected`` is given, they are printed only for the selected groups. With the
    option ``together``, the selected groups are joined.
    """
    if file != STDIN and not file.exists():
        raise InputError(f"{file}: no such file or directory")
    known = ImportOptions() if options is None else options
    imported = import_groups([file], known, empty=EmptyGroups.REJECT)
    if known.together:
        imported = join_imported(one for one in imported if not selected or one.id in selected)
        selected = ()
    return parsed_groups(
        imported, is_shown=lambda id: print_notes and (not selected or id in selected)
    )


def parsed_groups(
    imported: Iterable[ImportedGroup], *, is_shown: Callable[[str | None], bool]
) -> Iterator[ParsedGroup]:
    """Yield the groups of an import, with an `InputError` for each invalid group.

    The notes and the state of a group are printed if ``is_shown`` returns true for its id.
    """
    for one in imported:
        if one.group is not None:
            if is_shown(one.id):
                _print_notes(one)
            yield one.id, one.group
        elif one.error is not None:
            yield one.id, InputError(one.error)
        elif is_shown(one.id):
            print_note(f"skipped {one.id!r}: {one.skipped}")


def _print_notes(imported: ImportedGroup) -> None:
    """Print the notes of a captured group, or that the group of a document was rebalancing."""
    group = imported.group
    if group is None:
        return
    state = group.status.state
    if imported.is_document and group.status.is_rebalancing:
        print_note(f"group {imported.id!r}: the group was rebalancing, state {state}")
    elif group.notes and not imported.is_document:
        print_note(f"group {imported.id!r}: {'; '.join(group.notes)}")


def _results(
    file: Path, process: Callable[[Group], GroupResult], groups: Iterable[ParsedGroup]
) -> Iterator[tuple[Record, int]]:
    is_empty = True
    for group_id, group in groups:
        is_empty = False
        if isinstance(group, InputError):
            yield error_record(group_id, group), BAD_INPUT
            continue
        _print_dropped_claims(group)
        try:
            with stop_on_interrupt():
                result = process(group)
        except KeyboardInterrupt:
            error = "interrupted before a result was found"
            yield {"id": group_id, "error": error, "interrupted": True}, INTERRUPTED
            return
        except InputError as error:
            yield error_record(group_id, error), BAD_INPUT
            continue
        if STOP.is_set():
            yield {**result.record, "interrupted": True}, INTERRUPTED
            return
        yield result.record, 0 if result.reached else NOT_REACHED
    if is_empty:
        raise InputError(f"{name_of(file)}: the input contains no group with members")


def _print_dropped_claims(group: Group) -> None:
    owned = ownership(group)
    dropped = (*owned.stale, *owned.contested)
    if dropped:
        first = dropped[0]
        others = f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
        print_note(
            f"group {group.id!r}: dropped the claim of {first.member!r} to "
            f"{first.topic}-{first.partition}: {first.reason}{others}"
        )


def error_record(group_id: str | None, error: Exception | str) -> Record:
    """Create the JSON record of a group with an error, and print the error.

    On a terminal, the error appears only once.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        print_error(str(error))
    return {"id": group_id, "error": str(error)}


def read_documents(paths: Iterable[Path]) -> tuple[list[str], bool]:
    """Read valid groups of files as JSON documents, and return whether all groups are valid."""
    groups, all_valid = read_valid_groups(paths)
    return [json.dumps(group_document(group), ensure_ascii=False) for group in groups], all_valid


def read_valid_groups(paths: Iterable[Path]) -> tuple[list[Group], bool]:
    """Read valid groups of files, print errors, and return whether all groups are valid."""
    groups, all_valid = [], True
    for path in paths:
        for _, group in read_source(path):
            if isinstance(group, InputError):
                print_error(str(group))
                all_valid = False
            else:
                groups.append(group)
    return groups, all_valid


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file, and create missing parent directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def to_json(record: Record) -> str:
    """Convert one record to a line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": "))


def _console() -> "Console":
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
    _console().print(table)


def _print_scalars(records: Sequence[Record]) -> None:
    """Print records as a table, with columns only for keys with scalar values."""
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    print_table([{key: record.get(key) for key in keys} for record in records], text=len(keys))


def _cell(value: object) -> str:
    return "" if value is None else without_control_characters(str(value))


def without_control_characters(text: str) -> str:
    """Replace characters that could control the terminal, except line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
