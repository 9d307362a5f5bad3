"""Read the groups of a source, process each group and write the results."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

import typer

from kassay.experiments.cli.application import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_REACHED,
    PROGRESS,
    STOP,
    argument,
    exit_interrupted,
    is_address,
    option,
    print_error,
    print_note,
    stop_on_interrupt,
)
from kassay.experiments.cli.shared_options import (
    CONFIG,
    ClusterOptions,
    SampledClusterOptions,
    read_cluster,
)
from kassay.experiments.cli.write_results import (
    Format,
    Record,
    TableLayout,
    directory_names,
    error_record,
    json_line,
    print_json,
    print_table,
)
from kassay.experiments.sources import import_captures, weight_windows
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.merge_captures import Snapshot
from kassay.reference.documents.files import STDIN, name_of, open_text, write_text
from kassay.reference.documents.json_codec import group_document, load_weights
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    OtherKindError,
    read_kind_documents,
)
from kassay.reference.model import group_remarks
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

ParsedGroup = tuple[str | None, Group | InputError]
"""Pair of a group id, and the parsed group or the error in its document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Command-line options that add missing data to a source, such as weights."""

    subscriptions: str | None = option(
        None, metavar="NAME|FILE", show_default="equal, or as the document assumes"
    )
    metadata: Path | None = option(None, metavar="FILE")
    weights: str | None = option(
        None, metavar="NAME|FILE", show_default="weights of the group document, otherwise 1"
    )
    window: str | None = option(None, metavar="15m|1h|1d", show_default="1h")
    cycle: weight_windows.Cycle | None = option(None, show_default="all windows")
    missing_lag: int | None = option(None, min=0)
    hosts: str | None = option(
        None, metavar="client-id|PATTERN|FILE", show_default="address of the client"
    )
    speeds: str | None = option(None, metavar="rate|FILE", show_default="equal speeds")
    together: bool = option(False)

    name: str | None = option(
        None, show_default="id in the other files, else the name of the file or directory"
    )
    snapshot: Snapshot | None = option(None, show_default="several snapshots are an error")
    account: bool = option(False, "--account", "-v")

    def import_options(self) -> ImportOptions:
        """Load the files that the options name, and return the options of the import."""
        names = (None, *import_captures.WEIGHT_NAMES)
        file = None if self.weights in names else Path(str(self.weights))
        recorded = self._recorded(file)
        options = ImportOptions(
            content=import_captures.load_metadata(self.metadata),
            missing_lag=self.missing_lag,
            weight_table=None if file is None or recorded else load_weights(file),
            weight_windows=recorded,
            hosts=None if self.hosts is None else import_captures.parse_hosts(self.hosts),
            speeds=None
            if self.speeds in (None, import_captures.RATE)
            else import_captures.load_speeds(Path(self.speeds)),
            measures_speeds=self.speeds == import_captures.RATE,
            together=self.together,
            name=self.name,
            snapshot=self.snapshot,
            on_account=partial(typer.echo, err=True) if self.account else None,
        )
        weights = self.weights if file is None else None
        return import_captures.with_named_data(
            options, subscriptions=self.subscriptions, weights=weights
        )

    def _recorded(self, file: Path | None) -> weight_windows.RecordedWindows | None:
        if file not in (None, STDIN) and weight_windows.is_recording(file):
            recorded = weight_windows.read_weight_windows(
                file, seconds=weight_windows.parse_window(self.window or "1h")
            )
            return recorded if self.cycle is None else recorded.cycle(self.cycle.seconds)
        if self.window or self.cycle:
            raise typer.BadParameter("--window and --cycle require recorded traffic in --weights")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSource(SourceOptions):
    """Command-line argument for the source of the groups, with options for missing data."""

    # Options for captures, which --help-all shows; the help of import shows them.
    rare: ClassVar = ("name", "snapshot", "account", "missing_lag", "window", "cycle")

    file: Path = argument(STDIN, metavar="SOURCE", show_default=False)

    def __post_init__(self) -> None:
        check_exists(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedGroups(GroupSource):
    """Command-line options for the source and for the ids of the selected groups."""

    group: list[str] | None = option(None, show_default="all groups")

    def selection(self, id: str | None) -> tuple[str, ...]:
        """Return the options that select a group, or all parts of a joined group."""
        ids = (self.group or ()) if self.together else (id,) if id else ()
        return tuple(part for one in ids for part in ("--group", one))


def check_cluster_usage(
    source: str, has_source: bool, cluster: ClusterOptions, source_data: SourceOptions
) -> None:
    """Raise a usage error unless exactly one source is set and all options apply to it.

    ``source`` is the placeholder of the argument for files. With files, ``has_source`` is true.
    """
    if has_source is (cluster.bootstrap_server is not None):
        raise typer.BadParameter(f"give exactly one of {source} and --bootstrap-server")
    if cluster.bootstrap_server is not None:
        if source_data.metadata is not None:
            raise typer.BadParameter(
                "--bootstrap-server excludes --metadata, because the cluster reports its "
                "partition counts; remove --metadata"
            )
    elif cluster.command_config is not None and CONFIG not in os.environ:
        raise typer.BadParameter("--command-config requires --bootstrap-server")
    elif source_data.speeds == import_captures.RATE:
        raise typer.BadParameter("--speeds rate requires --bootstrap-server")


def check_exists(file: Path) -> None:
    """Raise InputError if a source is not standard input, a file or a cluster."""
    if file != STDIN and not file.exists() and not is_address(str(file)):
        raise InputError(f"{file}: no such file or directory; give an existing path or HOST:PORT")


def read_source(
    file: Path,
    options: ImportOptions | None = None,
    *,
    selected: Collection[str] = (),
    print_notes: bool = True,
) -> Iterator[ParsedGroup]:
    """Read all or the selected groups from documents, captures or a cluster (HOST:PORT).

    Yield an `InputError` for each invalid group. With ``print_notes``, print the notes and the
    state of the groups. ``options.together`` joins the groups.
    """
    known = ImportOptions() if options is None else options
    if is_address(str(file)) and not file.exists():
        imported = _read_address(str(file), known, sorted(selected))
    else:
        imported = import_captures.import_groups(
            [file], known, empty=import_captures.EmptyGroups.REJECT
        )
    if selected:
        imported = import_captures.select_imported(imported, selected, source=name_of(file))
    if known.together:
        imported = import_captures.join_imported(imported)
    return parsed_groups(imported, print_notes=print_notes, all_notes=known.on_account is not None)


def _read_address(
    address: str, options: ImportOptions, selected: Sequence[str]
) -> Iterator[import_captures.ImportedGroup]:
    config = os.environ.get(CONFIG)
    cluster = SampledClusterOptions(
        bootstrap_server=address, command_config=None if config is None else Path(config)
    )
    separate = replace(options, together=False)  # the caller joins the groups
    return read_cluster(cluster, selected, separate, empty=import_captures.EmptyGroups.KEEP)


def parsed_groups(
    imported: Iterable[import_captures.ImportedGroup],
    *,
    print_notes: bool = True,
    all_notes: bool = False,
) -> Iterator[ParsedGroup]:
    """Yield the group of each import result, or an `InputError` for an invalid group.

    With ``print_notes``, print the notes on assumptions that change results; with ``all_notes``,
    print all notes.
    """
    for one in imported:
        if one.unused is not None:
            print_note(one.unused)
        elif one.group is not None:
            if print_notes:
                _print_notes(one, one.group, all_notes=all_notes)
            yield one.id, one.group
        elif one.document is not None:
            yield one.id, OtherKindError(one.document)
        elif one.error is not None:
            yield one.id, InputError(one.error)
        elif print_notes:
            print_note(f"skipped {one.id!r}: {one.skipped}")


def _print_notes(imported: import_captures.ImportedGroup, group: Group, *, all_notes: bool) -> None:
    if imported.option_notes:
        print_note(f"{group.label}: {'; '.join(imported.option_notes)}")
    if imported.is_document and group.status.is_rebalancing:
        print_note(f"{group.label}: the group was rebalancing, state {group.status.state}")
    elif not imported.is_document and (
        shown := group.notes if all_notes else group_remarks.shown_notes(group)
    ):
        print_note(f"{group.label}: {'; '.join(shown)}")


def read_group_documents(paths: Iterable[Path]) -> tuple[list[str], bool]:
    """Read groups from files as JSON documents, and return whether all groups are valid."""
    groups, all_valid = read_valid_groups(paths)
    return [json.dumps(group_document(group), ensure_ascii=False) for group in groups], all_valid


def read_valid_groups(paths: Iterable[Path]) -> tuple[list[Group], bool]:
    """Read groups from files, print errors, and return whether all groups are valid."""
    groups, all_valid = [], True
    for path in paths:
        check_exists(path)
        for _, group in read_source(path):
            if isinstance(group, InputError):
                print_error(str(group))
                all_valid = False
            else:
                groups.append(group)
    return groups, all_valid


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GroupResult:
    """JSON record of a group, and whether the group meets a requested condition.

    The exit code is 1 if the requested condition is not met. ``files`` has texts by file name.
    """

    record: Record
    reached: bool = True
    files: Mapping[str, str] = field(default_factory=dict)


ParsedDocument = tuple[str | None, KindDocument | InputError]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKinds:
    """Settings with which a command processes share groups, Streams or Connect."""

    process: Callable[[KindDocument], GroupResult]
    layout: TableLayout
    kind: Kind | None = None  # that the selected assignor reads; None if the source decides
    output: Path | None = None  # directory for the files, or for one directory per document


def consumer_groups(
    source: GroupSource,
    output_format: Format,
    others: OtherKinds | None = None,
    *,
    print_notes: bool = True,
) -> Iterable[ParsedGroup]:
    """Return the consumer groups of a source, or only those with the selected ids.

    If the source contains documents of other kinds, process them and end the command. They are
    errors if ``others`` is None.
    """
    file, options = source.file, source.import_options()
    ids = set(source.group or ()) if isinstance(source, SelectedGroups) else set()
    if others is None or others.kind is Kind.CONSUMER:
        return read_source(file, options, selected=ids)
    if others.kind is not None:
        if file != STDIN and not file.is_file():
            raise InputError(
                f"{file}: no such file; give a file with documents of kind {others.kind}"
            )
        with open_text(file) as stream:
            documents = read_kind_documents(stream, name=name_of(file), kind=others.kind)
            process_documents(file, others.process, documents, output_format, others.layout)
        raise typer.Exit
    groups = list(read_source(file, options, selected=ids, print_notes=print_notes))
    found = _documents_of_other_kinds(groups)
    if not found:
        return groups
    process = others.process
    if others.output is not None:
        process = _with_files(process, found, others.output)
    process_documents(file, process, found, output_format, others.layout)
    raise typer.Exit


def _documents_of_other_kinds(entries: Sequence[ParsedGroup]) -> list[ParsedDocument]:
    """Return all documents, or an empty list if the first valid one is a consumer group."""
    valid = (one for _, one in entries if isinstance(one, Group | OtherKindError))
    if not isinstance(next(valid, None), OtherKindError):
        return []

    def document(id: str | None, one: Group | InputError) -> KindDocument | InputError:
        if isinstance(one, Group):
            text = f"group {id!r}: a source with other kinds must not contain consumer groups"
            return InputError(text)
        return one.document if isinstance(one, OtherKindError) else one

    return [(id, document(id, one)) for id, one in entries]


def _with_files(
    process: Callable[[KindDocument], GroupResult], parsed: Sequence[ParsedDocument], output: Path
) -> Callable[[KindDocument], GroupResult]:
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
) -> None:
    """Process each group of a source and write the results.

    An `InputError` of ``process`` becomes an error record, with exit code 2. Ctrl-C ends the output
    after the current group, with exit code 130.
    """
    groups = consumer_groups(source, output_format, others)
    process_documents(source.file, process, groups, output_format, layout)


def process_documents(
    file: Path,
    process: Callable[[T], GroupResult],
    documents: Iterable[tuple[str | None, T | InputError]],
    output_format: Format,
    layout: TableLayout | None,
) -> None:
    """Process groups or documents, and write the results to standard output."""
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
        for text in record.get("errors") or record.get("violations") or ():
            print_note(f"group {record['id']!r}: {text}")
    if layout is not None:
        layout.print(record for record in records if "error" not in record)
        return
    keys = [
        key
        for key in dict.fromkeys(key for record in records for key in record)
        if any(not isinstance(record.get(key), Mapping | list) for record in records)
    ]
    print_table([{key: record.get(key) for key in keys} for record in records], text=keys)


def _with_condition(record: Record, group: object) -> Record:
    """Add the condition and the caveat of a result to its record, if there are any."""
    if not isinstance(group, Group):
        return record
    remarks = {
        "condition": group_remarks.condition(group, with_racks=True),
        "caveat": group_remarks.streams_caveat(group)
        or group_remarks.rebalance_caveat(group)
        or group_remarks.assignor_caveat(group),
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
            for text in group_remarks.parts_without_effect(group):
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
