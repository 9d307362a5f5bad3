"""Command-line options for group documents, captures and clusters, which read the groups."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer

from kassay.experiments.cli.option_groups import argument, option
from kassay.experiments.cli.run_control import print_error, print_note
from kassay.experiments.sources.capture_files import (
    EmptyGroups,
    ImportedGroup,
    import_groups,
    join_imported,
    load_metadata,
    load_sizes,
)
from kassay.experiments.sources.import_options import (
    RATE,
    WEIGHT_NAMES,
    ImportOptions,
    load_speeds,
    parse_hosts,
)
from kassay.experiments.sources.live_cluster import client_properties
from kassay.reference.documents.input_files import STDIN
from kassay.reference.documents.json_codec import group_document, load_weights
from kassay.reference.documents.kind_documents import OtherKindError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, WeightSource

ParsedGroup = tuple[str | None, Group | InputError]
"""Pair of a group id, and the parsed group or the error in its document."""


def metadata_option() -> Any:
    """Declare the file with partition counts."""
    return option(
        None,
        "File with partition counts: output of kafka-topics.sh --describe or kcat -L -J.",
        metavar="FILE",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Command-line options for data that a source lacks, such as subscriptions or weights."""

    subscriptions: str | None = option(
        None,
        "Subscriptions to use for members whose subscription the source does not show or states "
        "as assumed. assigned: the topics assigned to the member. equal: all topics of the group. "
        "FILE: JSON object {GROUP: {MEMBER: [TOPIC, ...]}}; MEMBER is a member, client or instance "
        "id. A file also replaces known subscriptions, with a note.",
        metavar="NAME|FILE",
        show_default="assigned, or as the document assumes",
    )
    metadata: Path | None = metadata_option()
    weights: str | None = option(
        None,
        "Weight of each partition. none: 1, also if the source has weights. lag: its lag. rate: "
        "the messages appended to it between two samples of a cluster. size: its size in bytes. "
        "FILE: JSON object {TOPIC: [WEIGHT, ...]} with one integer per partition.",
        metavar="NAME|FILE",
        show_default="weights of the group document, otherwise 1",
    )
    missing_lag: int | None = option(
        None,
        "Lag of the partitions without a lag in the source; required with --weights lag if a lag "
        "is missing.",
        min=0,
    )
    sizes: Path | None = option(
        None,
        "File with partition sizes for --weights size: output of kafka-log-dirs.sh --describe.",
    )

    hosts: str | None = option(
        None,
        "Host or pod of each member. client-id: its client id. PATTERN: regular expression with "
        "the host in parentheses, for the client id, such as '(pod-[0-9]+)'. FILE: JSON object "
        "{MEMBER: HOST}; MEMBER is a member, client or instance id, or an address.",
        metavar="client-id|PATTERN|FILE",
        show_default="address of the client",
    )
    speeds: str | None = option(
        None,
        "Speed of each member; imbalance compares loads divided by speeds. rate: number of "
        "messages that the member consumes between the two offset samples of kassay import. FILE: "
        "JSON object {NAME: SPEED}; NAME is a member, client or instance id, or a host; SPEED is "
        "an integer or a measured rate.",
        metavar="rate|FILE",
        show_default="equal speeds",
    )
    together: bool = option(
        False,
        "Join all groups of the source to one group, to balance the hosts that they share. Topics "
        "and members get the prefix GROUP/.",
    )

    def __post_init__(self) -> None:
        if self.sizes is not None and self.weights != WeightSource.SIZE:
            raise typer.BadParameter("--sizes requires --weights size")

    @property
    def weight_file(self) -> Path | None:
        """Return the file given with ``--weights``, or None for a name such as ``lag``."""
        name = self.weights
        return None if name is None or name in WEIGHT_NAMES else Path(name)

    def import_options(self) -> ImportOptions:
        """Load the files that the options name, and return the import options."""
        file = self.weight_file
        known = load_metadata(self.metadata)
        options = ImportOptions(
            partition_counts=known.partition_counts,
            minimum_counts=known.minimum_counts,
            topic_ids=known.topic_ids,
            missing_lag=self.missing_lag,
            sizes=None if self.sizes is None else load_sizes(self.sizes),
            weight_table=None if file is None else load_weights(file),
            hosts=None if self.hosts is None else parse_hosts(self.hosts),
            speeds=None if self.speeds in (None, RATE) else load_speeds(Path(self.speeds)),
            measures_speeds=self.speeds == RATE,
            together=self.together,
        ).with_subscriptions(self.subscriptions)
        return options.with_named_weights(self.weights if file is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSource(SourceOptions):
    """Source of groups: a file, a directory or standard input, and data that it lacks."""

    file: Path = argument(
        STDIN,
        "Group documents (JSON or JSON Lines) or captures of kafka-consumer-groups.sh: a file, "
        "plain or compressed with gzip, or a directory with captures taken at the same time. Use "
        "- or omit SOURCE to read standard input.",
        metavar="SOURCE",
        show_default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedGroups(GroupSource):
    """Source of groups, and the ids of the groups to process."""

    group: list[str] | None = option(
        None, "Id of a group to process; repeatable.", show_default="all groups"
    )


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
        elif one.document is not None:
            yield one.id, OtherKindError(one.document)
        elif one.error is not None:
            yield one.id, InputError(one.error)
        elif is_shown(one.id):
            print_note(f"skipped {one.id!r}: {one.skipped}")


def _print_notes(imported: ImportedGroup) -> None:
    """Print the notes of a captured group; for a document, those of options, and its rebalance."""
    group = imported.group
    if group is None:
        return
    state = group.status.state
    if imported.option_notes:
        print_note(f"group {imported.id!r}: {'; '.join(imported.option_notes)}")
    if imported.is_document and group.status.is_rebalancing:
        print_note(f"group {imported.id!r}: the group was rebalancing, state {state}")
    elif group.notes and not imported.is_document:
        print_note(f"group {imported.id!r}: {'; '.join(group.notes)}")


def read_group_documents(paths: Iterable[Path]) -> tuple[list[str], bool]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Command-line options for reading from a running Kafka cluster."""

    panel: ClassVar[str] = "Options for a running cluster"

    bootstrap_server: str | None = option(
        None, "Brokers of the cluster to read from, separated by commas.", metavar="HOST:PORT"
    )
    command_config: Path | None = option(
        None, "File of client properties, such as TLS and SASL settings."
    )
    timeout: float = option(30.0, "Time limit per request to Kafka, in seconds.", min=0.1)

    def settings(self) -> dict[str, str]:
        """Return the client properties for librdkafka."""
        config = self.command_config
        return {} if config is None else client_properties.load_librdkafka_settings(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledClusterOptions(ClusterOptions):
    """Command-line options for reading groups, and rates of partitions, from a cluster."""

    sample: float = option(
        10.0,
        "Time between the two offset samples for --weights rate and --speeds rate, in seconds.",
        min=0.1,
    )


def check_cluster_usage(
    source: str, has_source: bool, cluster: ClusterOptions, source_data: SourceOptions
) -> None:
    """Raise a usage error unless the options name one source and fit this source.

    ``source`` is the placeholder of the argument for files, and ``has_source`` is true if files
    are given.
    """
    if has_source is (cluster.bootstrap_server is not None):
        raise typer.BadParameter(f"give either {source} or --bootstrap-server, and not both")
    if cluster.bootstrap_server is not None:
        if source_data.metadata is not None:
            raise typer.BadParameter(
                "--metadata cannot be combined with --bootstrap-server: the cluster "
                "reports its partition counts"
            )
    elif cluster.command_config is not None:
        raise typer.BadParameter("--command-config requires --bootstrap-server")
    elif source_data.weights == WeightSource.RATE:
        raise typer.BadParameter("--weights rate requires --bootstrap-server")
    elif source_data.speeds == RATE:
        raise typer.BadParameter("--speeds rate requires --bootstrap-server")


def read_cluster(
    options: SampledClusterOptions,
    groups: Sequence[str],
    import_options: ImportOptions,
    *,
    empty: EmptyGroups,
) -> Iterator[ImportedGroup]:
    """Read the named groups of a running cluster, or all groups if no name is given."""
    from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
    from kassay.experiments.sources.live_cluster.live_groups import import_live

    settings, server = options.settings(), options.bootstrap_server or ""
    try:
        cluster = LiveCluster(server, settings, timeout=options.timeout)
    except InputError as error:
        where = "" if options.command_config is None else f"{options.command_config}: "
        raise InputError(f"{where}{error}") from None
    if import_options.weights is WeightSource.RATE or import_options.measures_speeds:
        print_note(f"taking two samples of the rate, {options.sample:g} s apart")
    imported = import_live(
        cluster, groups, import_options, sample_seconds=options.sample, empty=empty
    )
    return join_imported(imported) if import_options.together else imported
