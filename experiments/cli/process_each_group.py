"""Process each group of a source, write the results, and set the exit code."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import typer

from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    error_record,
    json_line,
    print_json,
    print_table,
)
from kassay.experiments.cli.run_control import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_REACHED,
    PROGRESS,
    STOP,
    exit_interrupted,
    print_note,
    stop_on_interrupt,
)
from kassay.experiments.cli.source_options import GroupSource, ParsedGroup, read_source
from kassay.reference.documents.text_files import name_of
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import (
    condition,
    other_reading,
    parts_without_effect,
    rebalance_caveat,
    streams_caveat,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Result for one group: the JSON record, and whether a requested condition is met.

    The exit code is 1 unless the requested condition is met. ``files`` has texts by file name.
    """

    record: Record
    reached: bool = True
    files: Mapping[str, str] = field(default_factory=dict)


def process_each_group(
    source: GroupSource,
    process: Callable[[Group], GroupResult],
    output_format: Format = Format.JSONL,
    layout: TableLayout | None = None,
    *,
    groups: Iterable[ParsedGroup] | None = None,
    both_readings: bool = True,
) -> None:
    """Process each group of a source, or each given group, and write the results.

    ``both_readings``: if a group has assumed subscriptions, also process it with the other
    assumption. If the results differ, the record contains the second result:
    ``"other_reading": {"condition": ..., ...}``.

    ``process`` raises `InputError` for a group that it does not support. Such a group or a bad
    document gives a line ``{"id": ..., "error": ...}`` and the exit code 2. After Ctrl-C, the line
    of the current group is the last one, with ``"interrupted": true``, and the exit code is 130.
    """
    process_documents(
        source.file,
        partial(_process_readings, process) if both_readings else process,
        read_source(source.file, source.import_options()) if groups is None else groups,
        output_format,
        layout,
    )


def _process_readings(process: Callable[[Group], GroupResult], group: Group) -> GroupResult:
    """Process a group, and the other reading of its assumed subscriptions."""
    result = process(group)
    other = None if STOP.is_set() else other_reading(group)
    if other is None:
        return result
    try:
        found = process(other).record
    except InputError as error:
        found = {"error": str(error)}
    if _without_time(found) == _without_time(result.record):
        return result
    found = {"condition": condition(other, with_racks=True), **found}
    return replace(result, record={**result.record, "other_reading": found})


def _without_time(value: object) -> object:
    """Return a JSON value without the running times that it contains."""
    match value:
        case Mapping():
            return {key: _without_time(one) for key, one in value.items() if key != "seconds"}
        case list() | tuple():
            return [_without_time(one) for one in value]
    return value


def process_documents(
    file: Path,
    process: Callable[[T], GroupResult],
    documents: Iterable[tuple[str | None, T | InputError]],
    output_format: Format,
    layout: TableLayout | None,
) -> None:
    """Process parsed groups or documents of other kinds as `process_each_group` does."""
    records: list[Record] = []
    code = 0
    for record, group_code in _results(file, process, documents, output_format):
        code = max(code, group_code)
        if output_format is Format.JSONL:
            typer.echo(json_line(record))
        else:
            records.append(record)
    if output_format is Format.TABLE:
        _print_tables(records, layout)
    elif output_format is Format.JSON:
        print_json(records)
    if code == INTERRUPTED:
        exit_interrupted("the result of the last group is the best one found so far, if any")
    if code:
        raise typer.Exit(code)


def _print_tables(records: Sequence[Record], layout: TableLayout | None) -> None:
    for record in records:
        if "condition" in record:
            print_note(f"group {record['id']!r}: the results hold if {record['condition']}")
        if "caveat" in record:
            print_note(f"group {record['id']!r}: {record['caveat']}")
    records = [reading for record in records for reading in _readings(record)]
    if layout is not None:
        layout.print(record for record in records if "error" not in record)
        return
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    print_table([{key: record.get(key) for key in keys} for record in records], text=keys)


def _readings(record: Record) -> Iterator[Record]:
    """Yield a record, and the record of its other reading with a row name of its own."""
    yield record
    if "other_reading" in record:
        other = record["other_reading"]
        id = f"{record['id']} (other)"
        error = f"; {other['error']}" if "error" in other else ""
        print_note(f"group {id!r}: the results hold if {other['condition']}{error}")
        yield {**other, "id": id}


def _with_condition(record: Record, group: object) -> Record:
    """Add the condition of the results for assumed data, and the state of a rebalance."""
    if not isinstance(group, Group):
        return record
    remarks = {
        "condition": condition(group, with_racks=True),
        "caveat": streams_caveat(group) or rebalance_caveat(group),
    }
    return {**record, **{key: text for key, text in remarks.items() if text is not None}}


def _results(
    file: Path,
    process: Callable[[T], GroupResult],
    groups: Iterable[tuple[str | None, T | InputError]],
    output_format: Format,
) -> Iterator[tuple[Record, int]]:
    is_empty = True
    for group_id, group in groups:
        is_empty = False
        if isinstance(group, InputError):
            yield error_record(group_id, group, output_format), BAD_INPUT
            continue
        if isinstance(group, Group):
            for text in parts_without_effect(group):
                print_note(text)
        try:
            with stop_on_interrupt(), PROGRESS.shown(f"group {group_id!r}"):
                result = process(group)
        except KeyboardInterrupt:
            error = "interrupted before a result was found"
            yield {"id": group_id, "error": error, "interrupted": True}, INTERRUPTED
            return
        except InputError as error:
            yield error_record(group_id, error, output_format), BAD_INPUT
            continue
        if STOP.is_set():
            yield {**_with_condition(result.record, group), "interrupted": True}, INTERRUPTED
            return
        yield _with_condition(result.record, group), 0 if result.reached else NOT_REACHED
    if is_empty:
        raise InputError(f"{name_of(file)}: the input contains no group with members")
