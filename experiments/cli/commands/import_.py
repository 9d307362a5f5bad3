"""``kassay import``: what Kafka's tools print, or a cluster says, as group documents."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import BAD_INPUT, print_error, print_note
from kassay.experiments.cli.group_io import to_json
from kassay.experiments.cli.source_options import (
    LIVE,
    BootstrapServer,
    CommandConfig,
    Metadata,
    MissingLag,
    Sizes,
    Subscriptions,
    Timeout,
    WeightsFrom,
    import_options,
)
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
            help="Captures of kafka-consumer-groups.sh: files, directories of one moment, or -.",
            show_default=False,
        ),
    ] = None,
    *,
    subscriptions: Subscriptions = AssumedSubscriptions.ASSIGNED.value,
    metadata: Metadata = None,
    weights: WeightsFrom = WeightSource.NONE.value,
    missing_lag: MissingLag = None,
    sizes: Sizes = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Group of tables that name none; by default their file or directory. Of a "
            "cluster, the groups to read, one an option; by default all.",
            show_default=False,
        ),
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Leave out groups without members.")
    ] = False,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    timeout: Timeout = 30.0,
    sample: Annotated[
        float,
        typer.Option(
            min=0.1, help="Seconds between the two samples of a rate.", rich_help_panel=LIVE
        ),
    ] = 10.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to a file instead of standard output."),
    ] = None,
) -> None:
    """Turn real groups into group documents, one JSON line a group.

    From captures, offsets, members and state of a group are joined. From a running
    cluster, the same is asked for; nothing is written to it and no group is joined. What
    is not told is filled in as the options say, and every document notes it.

    Example: `kassay import captures/ --subscriptions equal --weights lag --missing-lag 0`

    Example: `kassay import --bootstrap-server broker:9092 --group orders | kassay compare -`
    """
    groups = list(group or ())
    _check_usage(paths, bootstrap_server, command_config, metadata, weights, groups)
    joining = import_options(
        subscriptions=subscriptions,
        metadata=metadata,
        weights=weights,
        sizes=sizes,
        missing_lag=missing_lag,
    )
    if bootstrap_server is None:
        found = import_groups(
            paths or (),
            joining,
            stdin=sys.stdin,
            group=groups[0] if groups else None,
            skip_empty=skip_empty,
        )
    else:
        found = _live(
            bootstrap_server,
            groups,
            joining,
            command_config=command_config,
            timeout=timeout,
            sample=sample,
            skip_empty=skip_empty,
        )
    _write(found, output)


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
            raise typer.BadParameter("--metadata is for captures: a cluster tells its own")
        return
    if command_config is not None:
        raise typer.BadParameter("--command-config goes with --bootstrap-server")
    if weights == WeightSource.RATE:
        raise typer.BadParameter("--weights rate goes with --bootstrap-server")
    if len(groups) > 1:
        raise typer.BadParameter("tables that name no group are of one: give one --group")


def _live(
    bootstrap_server: str,
    groups: list[str],
    joining: ImportOptions,
    *,
    command_config: Path | None,
    timeout: float,
    sample: float,
    skip_empty: bool,
) -> Iterator[ImportedGroup]:
    # The client library takes a while to load, and captures do not need it.
    from kassay.experiments.sources.live_cluster.admin_client import LiveCluster  # noqa: PLC0415
    from kassay.experiments.sources.live_cluster.client_properties import load_librdkafka_settings  # noqa: PLC0415
    from kassay.experiments.sources.live_cluster.live_groups import import_live  # noqa: PLC0415

    settings = {} if command_config is None else load_librdkafka_settings(command_config)
    try:
        cluster = LiveCluster(bootstrap_server, settings, timeout=timeout)
    except InputError as error:
        where = "" if command_config is None else f"{command_config}: "
        raise InputError(f"{where}{error}") from None
    if joining.weights is WeightSource.RATE:
        print_note(f"the two samples of a rate are {sample:g} s apart")
    return import_live(cluster, groups, joining, sample_seconds=sample, skip_empty=skip_empty)


def _write(found: Iterator[ImportedGroup], output: Path | None) -> None:
    lines: list[str] = []
    failed = False
    for imported in found:
        failed |= imported.error is not None
        lines.extend(_lines(imported))
    if output is None:
        sys.stdout.write("".join(lines))
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("".join(lines), encoding="utf-8")
    if failed:
        raise typer.Exit(BAD_INPUT)


def _lines(imported: ImportedGroup) -> list[str]:
    if imported.error is not None:
        print_error(imported.error)
        return [to_json({"id": imported.id, "error": imported.error}) + "\n"]
    if imported.group is None:
        print_note(f"skipped {imported.id!r}: {imported.skipped}")
        return []
    return [to_json(group_document(imported.group)) + "\n"]
