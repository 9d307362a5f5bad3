"""``kassay history``: what ``__consumer_offsets`` remembers, rebalance by rebalance."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import BAD_INPUT, print_error, print_note
from kassay.experiments.cli.common_options import DeterministicLimit, TimeLimit
from kassay.experiments.cli.source_options import (
    LIVE,
    BootstrapServer,
    CommandConfig,
    Metadata,
    Timeout,
)
from kassay.experiments.compare import CaseLimits
from kassay.experiments.history.live_topic import OffsetsReader, list_cluster_topics
from kassay.experiments.report.history_report import summarise_groups
from kassay.experiments.sources.capture_files import load_metadata
from kassay.experiments.sources.live_cluster.client_properties import (
    load_librdkafka_settings,
    load_spark_options,
)
from kassay.experiments.spark import record_sources as history_sources
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
            "as what kafka-dump-log.sh --offsets-decoder printed.",
            show_default=False,
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the tables.")],
    metadata: Metadata = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    timeout: Timeout = 30.0,
    spark_package: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP:ARTIFACT:VERSION",
            help="Read with Spark's own Kafka source, from this Maven package.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    master: Annotated[str, typer.Option("--master", help="Where Spark runs.")] = "local[*]",
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Spark tasks.")] = 8,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = 2.0,
) -> None:
    """Rebuild every generation from `__consumer_offsets`, and solve every rebalance.

    Writes the Parquet tables generations, rebalances, commits and errors, the groups as
    they were last to groups.jsonl, and one JSON line a group to standard output. `kassay
    report` draws it. A cluster is only read from, and no group is joined.

    Example: `kassay history --bootstrap-server broker:9092 -o out/history && kassay report
    out/history`
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
    described = {
        "kind": "history",
        "paths": sorted(path.name for path in paths or ()),
        "limits": {"time": time_limit, "deterministic": deterministic_limit},
    }
    package = {} if spark_package is None else {PACKAGES: spark_package}
    with spark_session(master=master, settings=RECORD_SETTINGS | package) as spark:
        if bootstrap_server is None:
            sources = history_sources.read_files(spark, paths or [])
        elif spark_package is None:
            raw = history_sources.read_cluster(spark, settings, timeout=timeout, tasks=tasks)
            sources = [decode_records(raw)]
        else:
            options = {} if command_config is None else load_spark_options(command_config)
            partitions = OffsetsReader(settings, timeout=timeout).partitions()
            raw = history_sources.read_cluster_with_spark(
                spark, bootstrap_server, partitions, options
            )
            sources = [decode_records(raw)]
        counted = write_history(
            spark,
            sources,
            out,
            known=known,
            tasks=tasks,
            limits=limits,
            manifest=lambda rows: manifest(
                described,
                rows=rows,
                run={"master": master, "seconds": round(time.perf_counter() - begin, 1)},
            ),
        )
    for line in summarise_groups(out):
        print(json.dumps(line, ensure_ascii=False))  # noqa: T201
    _tell(counted)


def _tell(counted: dict[str, int]) -> None:
    print_note(
        f"{counted['records']} records, {counted['generations']} generations, "
        f"{counted['rebalances']} rebalances"
    )
    if counted["errors"]:
        print_error(f"{counted['errors']} records could not be read, see the table errors")
        raise typer.Exit(BAD_INPUT)
