"""``kassay import``: group documents from captures of Kafka's tools or from a cluster."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import BAD_INPUT, group_io, print_note, source_options
from kassay.experiments.sources.capture_files import ImportedGroup, import_groups
from kassay.experiments.sources.import_options import (
    AssumedSubscriptions,
    ImportOptions,
    WeightSource,
)
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError


def import_(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Captures of kafka-consumer-groups.sh: files, directories with the captures of "
            "one moment, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    subscriptions: source_options.Subscriptions = AssumedSubscriptions.ASSIGNED.value,
    metadata: source_options.Metadata = None,
    weights: source_options.WeightsFrom = WeightSource.NONE.value,
    missing_lag: source_options.MissingLag = None,
    sizes: source_options.Sizes = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Captures: id of groups without one. Cluster: group to read, repeatable.",
            show_default="file name; all groups of a cluster",
        ),
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Skip groups without members.")
    ] = False,
    bootstrap_server: source_options.BootstrapServer = None,
    command_config: source_options.CommandConfig = None,
    timeout: source_options.Timeout = 30.0,
    sample: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Time between the two samples of --weights rate, in seconds.",
            rich_help_panel=source_options.CLUSTER_PANEL,
        ),
    ] = 10.0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Output file.", show_default="standard output"
        ),
    ] = None,
) -> None:
    """Convert captures of Kafka's tools, or groups of a cluster, to group documents.

    Captures of offsets, members and state of one group are merged. A cluster is only read
    and no group is joined. Options fill in data that the source does not contain; each
    document lists it under "notes". Writes one JSON line per group.

    Example: `kassay import captures/ --subscriptions equal --weights lag --missing-lag 0`

    Example: `kassay import --bootstrap-server broker:9092 --group orders | kassay compare -`
    """
    groups = list(group or ())
    _check_usage(paths, bootstrap_server, command_config, metadata, weights, groups)
    options = source_options.import_options(
        subscriptions=subscriptions,
        metadata=metadata,
        weights=weights,
        sizes=sizes,
        missing_lag=missing_lag,
    )
    if bootstrap_server is None:
        groups_read = import_groups(
            paths or (),
            options,
            stdin=sys.stdin,
            group=groups[0] if groups else None,
            skip_empty=skip_empty,
        )
    else:
        groups_read = _read_cluster(
            bootstrap_server,
            groups,
            options,
            command_config=command_config,
            timeout=timeout,
            sample=sample,
            skip_empty=skip_empty,
        )
    _write(groups_read, output)


def _check_usage(
    paths: list[Path] | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    metadata: Path | None,
    weights: str,
    groups: list[str],
) -> None:
    if bool(paths) is (bootstrap_server is not None):
        raise typer.BadParameter("give either captures or --bootstrap-server")
    if bootstrap_server is not None:
        if metadata is not None:
            raise typer.BadParameter("--metadata requires captures; a cluster has its own")
        return
    if command_config is not None:
        raise typer.BadParameter("--command-config requires --bootstrap-server")
    if weights == WeightSource.RATE:
        raise typer.BadParameter("--weights rate requires --bootstrap-server")
    if len(groups) > 1:
        raise typer.BadParameter(f"captures take at most one --group, got {len(groups)}")


def _read_cluster(
    bootstrap_server: str,
    groups: list[str],
    options: ImportOptions,
    *,
    command_config: Path | None,
    timeout: float,
    sample: float,
    skip_empty: bool,
) -> Iterator[ImportedGroup]:
    from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
    from kassay.experiments.sources.live_cluster.client_properties import load_librdkafka_settings
    from kassay.experiments.sources.live_cluster.live_groups import import_live

    settings = {} if command_config is None else load_librdkafka_settings(command_config)
    try:
        cluster = LiveCluster(bootstrap_server, settings, timeout=timeout)
    except InputError as error:
        where = "" if command_config is None else f"{command_config}: "
        raise InputError(f"{where}{error}") from None
    if options.weights is WeightSource.RATE:
        print_note(f"taking two samples of the rate, {sample:g} s apart")
    return import_live(cluster, groups, options, sample_seconds=sample, skip_empty=skip_empty)


def _write(groups: Iterator[ImportedGroup], output: Path | None) -> None:
    lines: list[str] = []
    failed = False
    for imported in groups:
        failed |= imported.error is not None
        lines.extend(_lines(imported))
    if output is None:
        sys.stdout.write("".join(lines))
    else:
        group_io.write_text(output, "".join(lines))
    if failed:
        raise typer.Exit(BAD_INPUT)


def _lines(imported: ImportedGroup) -> list[str]:
    if imported.error is not None:
        return [group_io.to_json(group_io.error_record(imported.id, imported.error)) + "\n"]
    if imported.group is None:
        print_note(f"skipped {imported.id!r}: {imported.skipped}")
        return []
    return [group_io.to_json(group_document(imported.group)) + "\n"]
