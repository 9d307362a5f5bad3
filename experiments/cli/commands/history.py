"""``kassay history``: reconstruct past rebalances from ``__consumer_offsets``."""

import time
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, ClassVar

import typer

from kassay.experiments.cli.application import BAD_INPUT, argument, option, print_error, print_note
from kassay.experiments.cli.cluster_options import ClusterOptions, SparkOptions
from kassay.experiments.cli.groups import metadata_option
from kassay.experiments.cli.output import json_line, location_option
from kassay.experiments.cli.search_options import LimitOptions
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.history.live_topic import list_cluster_topics
from kassay.experiments.sources.capture_files import load_metadata
from kassay.experiments.spark import record_sources
from kassay.experiments.spark.history_pipeline import (
    RECORD_SETTINGS,
    ClusterMetadata,
    History,
    decode_records,
    follow,
    summarise_groups,
    write_history,
)
from kassay.experiments.spark.session import CONNECT, spark_session
from kassay.experiments.study.configuration import manifest
from kassay.experiments.study.output_reader import check_writable


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Command-line options for following the rebalances of a running cluster."""

    panel: ClassVar[str] = "Options for following a cluster"

    follow: bool = option(
        False,
        "Write each rebalance of the cluster as soon as it is complete. The command runs until it "
        "is interrupted; the next start continues after the last rebalance written.",
    )
    metrics: Path | None = option(
        None, "File for the metrics of each group, in the text format of Prometheus."
    )
    interval: float = option(10.0, "Time between two reads of new records, in seconds.", min=0.1)
    quiet_period: float = option(
        30.0,
        "Time in seconds without new records of a group, after which the last generation of the "
        "group is considered complete.",
        min=0.1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Command-line options of ``kassay history``."""

    paths: list[str] | None = argument(
        None,
        "Files or directories with records: Parquet files, also as URIs such as s3a://, or output "
        "of kafka-dump-log.sh --offsets-decoder in .txt, .log and .out files, plain or compressed "
        "with gzip.",
        metavar="PATH...",
    )
    output: str = location_option()
    metadata: Path | None = metadata_option()
    tasks: int = option(8, "Number of Spark tasks among which the work is divided.", min=1)


def history(
    options: HistoryOptions,
    cluster: ClusterOptions,
    following: FollowOptions,
    spark: SparkOptions,
    limits: LimitOptions = LimitOptions(work=10.0),
) -> None:
    """Reconstruct past rebalances from __consumer_offsets, with Spark.

    Writes the Parquet tables generations, rebalances, commits and errors for `kassay report`. A
    local output also gets groups.jsonl, with the last state of each group. Prints one JSON line
    per group. kassay does not write to the cluster and joins no group. With --follow, kassay writes
    only the rebalances, each as soon as it is complete.

    Example: `kassay history --bootstrap-server broker:9092 -o out/history`
    """
    begin = time.perf_counter()
    _check_usage(options.paths, cluster, following, spark)
    settings = cluster.settings()
    if cluster.bootstrap_server is not None:
        settings["bootstrap.servers"] = cluster.bootstrap_server
    check_writable(options.output)
    known = _cluster_metadata(options.metadata, settings, cluster)
    description = {
        "kind": "history",
        "paths": sorted(PurePath(path).name for path in options.paths or ()),
        "limits": {"work": limits.work, "time": limits.time_limit},
    }
    conf = RECORD_SETTINGS | spark.settings()
    with spark_session(master=spark.master, settings=conf, quiet=following.follow) as session:
        if following.follow:
            follow(
                session,
                record_sources.stream_cluster(
                    session, settings, timeout=cluster.timeout, tasks=options.tasks
                ),
                options.output,
                known=known,
                tasks=options.tasks,
                interval=following.interval,
                quiet_period=following.quiet_period,
                metrics=following.metrics,
                limits=limits.case_limits(),
            )
            return
        written = write_history(
            session,
            _sources(session, options, cluster, settings),
            options.output,
            known=known,
            tasks=options.tasks,
            limits=limits.case_limits(),
            manifest=lambda rows: manifest(
                description, rows=rows, run=spark.run_record(session, begin)
            ),
        )
        _print_summary(written, limits.case_limits())


def _check_usage(
    paths: list[str] | None, cluster: ClusterOptions, following: FollowOptions, spark: SparkOptions
) -> None:
    if bool(paths) == (cluster.bootstrap_server is not None):
        raise typer.BadParameter("give either PATH or --bootstrap-server, and not both")
    if not following.follow and following != FollowOptions():
        raise typer.BadParameter("--metrics, --interval and --quiet-period require --follow")
    if following.follow and cluster.bootstrap_server is None:
        raise typer.BadParameter("--follow requires --bootstrap-server")
    if following.follow and (spark.master or "").startswith(CONNECT):
        raise typer.BadParameter(
            f"--follow does not run on Spark Connect, got --master {spark.master}; give the "
            "master of the cluster, such as spark://host:7077"
        )


def _sources(
    session: Any, options: HistoryOptions, cluster: ClusterOptions, settings: dict[str, str]
) -> list[Any]:
    """Read the records of the files, or of the cluster."""
    if options.paths:
        return record_sources.read_files(session, options.paths)
    raw = record_sources.read_cluster(
        session, settings, timeout=cluster.timeout, tasks=options.tasks
    )
    return [decode_records(raw)]


def _cluster_metadata(
    file: Path | None, settings: dict[str, str], cluster: ClusterOptions
) -> ClusterMetadata:
    """Read partition counts and topic names from the metadata file and the cluster."""
    known = load_metadata(file)
    names = {str(id): topic for topic, id in known.topic_ids.items()}
    if cluster.bootstrap_server is None:
        return ClusterMetadata(partition_counts=known.partition_counts, topic_names=names)
    live, live_names = list_cluster_topics(settings, timeout=cluster.timeout)
    return ClusterMetadata(
        partition_counts=live | known.partition_counts, topic_names=live_names | names
    )


def _print_summary(written: History, limits: CaseLimits) -> None:
    for line in summarise_groups(written, limits=limits):
        typer.echo(json_line(line))
    counts = written.counts
    print_note(
        f"{counts['records']} records, {counts['generations']} generations, "
        f"{counts['rebalances']} rebalances"
    )
    if counts["errors"]:
        print_error(f"{counts['errors']} records could not be read; see the table errors")
        raise typer.Exit(BAD_INPUT)
