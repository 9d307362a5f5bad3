"""Process each group of a source, write the results, and set the exit code."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
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
    write_text,
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
from kassay.experiments.cli.source_options import (
    GroupSource,
    ParsedGroup,
    SelectedGroups,
    read_source,
)
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents.input_files import STDIN, name_of, open_text
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    OtherKindError,
    read_kind_documents,
)
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


ParsedDocument = tuple[str | None, KindDocument | InputError]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKinds:
    """How a command processes documents of other kinds than consumer groups.

    Parameters
    ----------
    kind
        Kind of the documents that the selected assignor reads; None if the source decides.
    output
        Directory for the files of the results, or for one directory per document.
    """

    process: Callable[[KindDocument], GroupResult]
    layout: TableLayout
    kind: Kind | None = None
    output: Path | None = None


def consumer_groups(
    source: GroupSource, output_format: Format, others: OtherKinds | None = None
) -> Iterable[ParsedGroup]:
    """Return the consumer groups of a source, all of them or those with the selected ids.

    If the source contains documents of other kinds, process them and end the command. They are
    errors if ``others`` is None.

    Raises
    ------
    InputError
        If the source has no document with one of the ids.
    """
    file, options = source.file, source.import_options()
    ids = set(source.group or ()) if isinstance(source, SelectedGroups) else set()
    if others is None or others.kind is Kind.CONSUMER:
        return _with_ids(file, read_source(file, options, selected=ids), options, ids)
    if others.kind is not None:
        if file != STDIN and not file.is_file():
            raise InputError(
                f"{file}: expected an existing file with documents of kind {others.kind}"
            )
        with open_text(file) as stream:
            documents = read_kind_documents(stream, name=name_of(file), kind=others.kind)
            process_documents(file, others.process, documents, output_format, others.layout)
        raise typer.Exit
    found, groups = _documents_of_other_kinds(read_source(file, options, selected=ids))
    if not found:
        return _with_ids(file, groups, options, ids)
    selected_documents = list(_with_ids(file, found, ImportOptions(), ids))
    process = others.process
    if others.output is not None:
        process = _with_files(process, selected_documents, others.output)
    process_documents(file, process, selected_documents, output_format, others.layout)
    raise typer.Exit


def _documents_of_other_kinds(
    groups: Iterable[ParsedGroup],
) -> tuple[list[ParsedDocument], Iterator[ParsedGroup]]:
    """Return the documents of a source with another kind than consumers.

    The first valid document decides. The list is empty for a source of consumer groups; the
    iterator then yields all groups.
    """
    stream = iter(groups)
    start: list[ParsedGroup] = []
    is_other = False
    for id, one in stream:
        start.append((id, one))
        is_other = isinstance(one, OtherKindError)
        if is_other or not isinstance(one, InputError):
            break
    if not is_other:
        return [], chain(start, stream)
    found: list[ParsedDocument] = []
    for id, one in chain(start, stream):
        if isinstance(one, OtherKindError):
            found.append((id, one.document))
        elif isinstance(one, InputError):
            found.append((id, one))
        else:
            text = f"group {id!r}: a source with other kinds must not contain consumer groups"
            found.append((id, InputError(text)))
    return found, iter(())


def _with_ids(
    file: Path,
    parsed: Iterable[tuple[str | None, T | InputError]],
    options: ImportOptions,
    ids: set[str],
) -> Iterable[tuple[str | None, T | InputError]]:
    """Return the entries with some ids, or all, and the errors in the others."""
    if not ids or options.together:  # groups with these ids were joined to one
        return parsed
    parsed = list(parsed)
    missing = sorted(ids.difference(id for id, _ in parsed))
    if missing:
        raise InputError(f"{name_of(file)} contains no group {missing[0]!r}")
    return [(id, one) for id, one in parsed if id in ids or isinstance(one, InputError)]


def _with_files(
    process: Callable[[KindDocument], GroupResult], parsed: Sequence[ParsedDocument], output: Path
) -> Callable[[KindDocument], GroupResult]:
    """Write the files of each result to a directory of its own."""
    from kassay.experiments.planning.render_plan import directory_names  # loads Jinja

    ids = [one.id for _, one in parsed if isinstance(one, KindDocument)]
    directories = (output / part for part in (directory_names(ids) if len(ids) > 1 else [""]))

    def process_and_write(document: KindDocument) -> GroupResult:
        directory = next(directories)
        result = process(document)
        for name, text in result.files.items():
            write_text(directory / name, text)
        return replace(result, record={**result.record, "directory": str(directory)})

    return process_and_write


def process_each_group(
    source: GroupSource,
    process: Callable[[Group], GroupResult],
    output_format: Format = Format.JSONL,
    layout: TableLayout | None = None,
    *,
    others: OtherKinds | None = None,
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
    if groups is None:
        groups = consumer_groups(source, output_format, others)
    process_documents(
        source.file,
        partial(_process_readings, process) if both_readings else process,
        groups,
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
