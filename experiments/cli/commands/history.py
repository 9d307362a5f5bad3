"""``kassay history``: past rebalances, reconstructed from ``__consumer_offsets``."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import (
    BAD_INPUT,
    output_options,
    print_error,
    print_note,
    search_options,
    source_options,
)
from kassay.experiments.compare import CaseLimits
from kassay.experiments.history.live_topic import OffsetsReader, list_cluster_topics
from kassay.experiments.report.history_report import summarise_groups
from kassay.experiments.sources.capture_files import load_metadata
from kassay.experiments.sources.live_cluster.client_properties import (
    load_librdkafka_settings,
    load_spark_options,
)
from kassay.experiments.spark import record_sources
from kassay.experiments.spark.history_output import write_history
from kassay.experiments.spark.history_pipeline import (
    RECORD_SETTINGS,
    ClusterMetadata,
    decode_records,
)
from kassay.experiments.spark.maven_packages import PACKAGES
from kassay.experiments.spark.session import spark_session
from kassay.experiments.study.manifest import manifest


def history(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Parquet files or directories of raw records; .txt, .log and .out files "
            "with output of kafka-dump-log.sh --offsets-decoder.",
            show_default=False,
        ),
    ] = None,
    *,
    output: output_options.OutputDirectory,
    metadata: source_options.Metadata = None,
    bootstrap_server: source_options.BootstrapServer = None,
    command_config: source_options.CommandConfig = None,
    timeout: source_options.Timeout = 30.0,
    spark_package: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP:ARTIFACT:VERSION",
            help="Maven package of Spark's Kafka source, to read the cluster with it.",
            show_default=False,
            rich_help_panel=source_options.CLUSTER_PANEL,
        ),
    ] = None,
    master: search_options.SparkMaster = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Number of Spark tasks.")] = 8,
    time_limit: search_options.TimeLimit = 60.0,
    deterministic_limit: search_options.DeterministicLimit = 2.0,
) -> None:
    """Reconstruct past rebalances from __consumer_offsets, with Spark.

    Writes the Parquet tables generations, rebalances, commits and errors, and groups.jsonl
    with the last state of each group, for `kassay report`. Prints one JSON line per group. A
    cluster is only read and no group is joined.

    Example: `kassay history --bootstrap-server broker:9092 -o out/history`
    """
    begin = time.perf_counter()
    if bool(paths) == (bootstrap_server is not None):
        raise typer.BadParameter("give either paths or --bootstrap-server")
    known = ClusterMetadata(
        partition_counts={} if metadata is None else dict(load_metadata(metadata).partition_counts)
    )
    settings = {} if command_config is None else load_librdkafka_settings(command_config)
    if bootstrap_server is not None:
        settings["bootstrap.servers"] = bootstrap_server
        counts, names = list_cluster_topics(settings, timeout=timeout)
        known = ClusterMetadata(
            partition_counts=counts | dict(known.partition_counts), topic_names=names
        )
    limits = CaseLimits(time=time_limit, deterministic=deterministic_limit)
    description = {
        "kind": "history",
        "paths": sorted(path.name for path in paths or ()),
        "limits": {"time": time_limit, "deterministic": deterministic_limit},
    }
    package = {} if spark_package is None else {PACKAGES: spark_package}
    with spark_session(master=master, settings=RECORD_SETTINGS | package) as spark:
        if bootstrap_server is None:
            sources = record_sources.read_files(spark, paths or [])
        elif spark_package is None:
            raw = record_sources.read_cluster(spark, settings, timeout=timeout, tasks=tasks)
            sources = [decode_records(raw)]
        else:
            options = {} if command_config is None else load_spark_options(command_config)
            partitions = OffsetsReader(settings, timeout=timeout).partitions()
            raw = record_sources.read_cluster_with_spark(
                spark, bootstrap_server, partitions, options
            )
            sources = [decode_records(raw)]
        row_counts = write_history(
            spark,
            sources,
            output,
            known=known,
            tasks=tasks,
            limits=limits,
            manifest=lambda rows: manifest(
                description,
                rows=rows,
                run={
                    "master": master or spark.conf.get("spark.master"),
                    "seconds": round(time.perf_counter() - begin, 1),
                },
            ),
        )
    for line in summarise_groups(output):
        typer.echo(json.dumps(line, ensure_ascii=False))
    print_note(
        f"{row_counts['records']} records, {row_counts['generations']} generations, "
        f"{row_counts['rebalances']} rebalances"
    )
    if row_counts["errors"]:
        print_error(f"{row_counts['errors']} records could not be read, see the table errors")
        raise typer.Exit(BAD_INPUT)
