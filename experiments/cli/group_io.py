"""Group documents in, one result a group out: the frame that most commands share."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.table import Table

from kassay.experiments.cli import BAD_INPUT, print_error, print_note
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership

STDIN = Path("-")
NOT_REACHED = 1
WIDE = 120  # characters


class Format(StrEnum):
    """How results are written."""

    JSONL = "jsonl"
    JSON = "json"
    TABLE = "table"


GroupFile = Annotated[
    Path,
    typer.Argument(
        metavar="[FILE]",
        help="Group documents, JSON or JSON Lines; - or nothing for standard input.",
        show_default=False,
    ),
]
OutputFormat = Annotated[
    Format, typer.Option("--format", help="jsonl: a line a group; json: indented; table: to read.")
]


Read = tuple[str | None, Group | InputError]
"""The id of a group, and the group or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say about one group.

    Parameters
    ----------
    record
        The JSON line.
    reached
        False if something that was asked for was not reached; the exit code is then 1.
    """

    record: Mapping[str, object]
    reached: bool = True


def answer_groups(
    file: Path,
    work: Callable[[Group], Answer],
    *,
    output: Format = Format.JSONL,
    table: Callable[[Sequence[Mapping[str, object]]], Table] | None = None,
    groups: Iterable[Read] | None = None,
) -> None:
    """Answer every group of a file in turn, then leave with the batch's exit code.

    A bad document gives a line ``{"id": ..., "error": ...}`` and a message on stderr,
    and the rest still run.

    Parameters
    ----------
    file
        Where the documents are; `STDIN` for standard input.
    work
        Answers one group. It may raise `InputError` for a group that it
        cannot take.
    output
        Format on standard output.
    table
        Renders all records for `Format.TABLE`; a plain table of their scalar values
        where it is None.
    groups
        The groups, where they are not simply the documents in the file.

    Raises
    ------
    typer.Exit
        With code 2 after a bad document, else 1 if an answer was not reached.
    """
    records: list[Mapping[str, object]] = []
    code = 0
    for record, failure in _answers(file, work, groups or _documents(file)):
        code = max(code, failure)
        if output is Format.JSONL:
            print(to_json(record), flush=not sys.stdout.isatty())  # noqa: T201
        else:
            records.append(record)
    if output is Format.JSON:
        document = records[0] if len(records) == 1 else records
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201
    elif output is Format.TABLE:
        table_console().print((table or plain_table)(records))
    if code:
        raise typer.Exit(code)


def _documents(file: Path) -> Iterator[Read]:
    with open_text(file) as stream:
        yield from read_groups(stream, name=name_of(file))


def _answers(
    file: Path, work: Callable[[Group], Answer], groups: Iterable[Read]
) -> Iterator[tuple[Mapping[str, object], int]]:
    found = False
    for group_id, group in groups:
        found = True
        if isinstance(group, InputError):
            yield _failure(group_id, group)
            continue
        _report_claims(group)
        try:
            answer = work(group)
        except InputError as error:
            yield _failure(group_id, error)
            continue
        yield answer.record, 0 if answer.reached else NOT_REACHED
    if not found:
        raise InputError(f"{name_of(file)}: no group document in it")


def _report_claims(group: Group) -> None:
    """Say on stderr which claims do not hold: nothing reads them, as in Kafka."""
    owned = ownership(group)
    dropped = (*owned.stale, *owned.contested)
    if dropped:
        first = dropped[0]
        others = f", and {len(dropped) - 1} more" if len(dropped) > 1 else ""
        print_note(
            f"group {group.id!r}: dropped the claim of {first.member!r} to "
            f"{first.topic}-{first.partition}, {first.reason}{others}"
        )


def _failure(group_id: str | None, error: InputError) -> tuple[Mapping[str, object], int]:
    print_error(str(error))
    return {"id": group_id, "error": str(error)}, BAD_INPUT


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file, or standard input for `STDIN`."""
    if file == STDIN:
        sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        with nullcontext(sys.stdin) as stream:
            yield stream
    else:
        with file.open(encoding="utf-8") as stream:
            yield stream


def name_of(file: Path) -> str:
    """Name a file as errors should."""
    return "standard input" if file == STDIN else str(file)


def to_json(record: Mapping[str, object]) -> str:
    """Write one record as a JSON line."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": "))


def table_console() -> Console:
    """Return a console for tables: as wide as the terminal, wide enough where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def plain_table(records: Sequence[Mapping[str, object]]) -> Table:
    """Lay records out with a column for every key that holds a scalar somewhere."""
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    table = Table(*keys)
    for record in records:
        table.add_row(*("" if record.get(key) is None else str(record[key]) for key in keys))
    return table
