"""``kassay history``: report past rebalances from logs or ``__consumer_offsets``."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import typer

from kassay.experiments.cli.application import BAD_INPUT, argument, option, print_error, print_note
from kassay.experiments.cli.search_options import LimitOptions
from kassay.experiments.cli.shared_options import ClusterOptions, SparkOptions
from kassay.experiments.cli.write_results import (
    Format,
    json_line,
    print_records,
    without_control_characters,
)
from kassay.experiments.history import log_summary
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.files import STDIN, check_writable, location, replacing_file

if TYPE_CHECKING:
    from kassay.experiments.comparison.compare import CaseLimits
    from kassay.experiments.spark.history_pipeline import ClusterMetadata, History

REBALANCES = "rebalances.jsonl"
"""Name of the file in the output directory with all rebalances in logs."""
_SHOWN_GROUPS = 10
"""Maximum number of groups with sentences and log lines in the text output."""
_TEMPLATES = Path(__file__).parents[2] / "history" / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Command-line options of ``kassay history``."""

    paths: list[str] | None = argument(None, metavar="PATH...")
    output: str | None = option(None, "--output", "-o", metavar="URI")
    output_format: Format | None = option(None, "--format")
    metadata: Path | None = option(None, metavar="FILE")
    tasks: int = option(8, min=1)


def history(
    options: HistoryOptions,
    cluster: ClusterOptions,
    spark: SparkOptions,
    limits: LimitOptions = LimitOptions(work=10.0),
) -> None:
    """Run ``kassay history`` with parsed options."""
    if bool(options.paths) == (cluster.bootstrap_server is not None):
        raise typer.BadParameter("give exactly one of PATH and --bootstrap-server")
    logs = None if options.paths is None else log_summary.log_files(options.paths)
    if logs is not None:
        _history_of_logs(logs, options, spark)
        return
    _history_of_records(options, cluster, spark, limits)


def _history_of_records(
    options: HistoryOptions, cluster: ClusterOptions, spark: SparkOptions, limits: LimitOptions
) -> None:
    from kassay.experiments.spark import history_pipeline
    from kassay.experiments.spark.session import spark_session
    from kassay.experiments.study.configuration import manifest

    begin, output = time.perf_counter(), options.output
    if output is None:
        raise typer.BadParameter("records of __consumer_offsets require --output DIRECTORY")
    settings = cluster.settings()
    if cluster.bootstrap_server is not None:
        settings["bootstrap.servers"] = cluster.bootstrap_server
    check_writable(output)
    known = _cluster_metadata(options.metadata, settings, cluster)
    description = {
        "kind": "history",
        "paths": sorted(PurePath(path).name for path in options.paths or ()),
        "limits": {"work": limits.work, "time": limits.time_limit},
    }
    conf = history_pipeline.RECORD_SETTINGS | spark.settings()
    with spark_session(master=spark.master, settings=conf) as session:
        if options.paths:
            sources = history_pipeline.read_files(session, options.paths)
        else:
            timeout, tasks = cluster.timeout, options.tasks
            sources = [
                history_pipeline.read_cluster(session, settings, timeout=timeout, tasks=tasks)
            ]
        written = history_pipeline.write_history(
            session,
            sources,
            output,
            known=known,
            tasks=options.tasks,
            limits=limits.case_limits(),
            manifest=lambda rows: manifest(
                description, rows=rows, run=spark.run_record(session, begin)
            ),
        )
        _print_summary(written, limits.case_limits(), options.output_format or Format.JSONL)


def _cluster_metadata(
    file: Path | None, settings: dict[str, str], cluster: ClusterOptions
) -> "ClusterMetadata":
    from kassay.experiments.history.group_records import list_cluster_topics
    from kassay.experiments.sources.import_captures import load_metadata
    from kassay.experiments.spark.history_pipeline import ClusterMetadata

    known = load_metadata(file)
    names = {str(id): topic for topic, id in known.topic_ids.items()}
    if cluster.bootstrap_server is None:
        return ClusterMetadata(partition_counts=known.partition_counts, topic_names=names)
    live, live_names = list_cluster_topics(settings, timeout=cluster.timeout)
    return ClusterMetadata(
        partition_counts=live | known.partition_counts, topic_names=live_names | names
    )


def _print_summary(written: "History", limits: "CaseLimits", output_format: Format) -> None:
    from kassay.experiments.spark.history_pipeline import summarise_groups

    found = summarise_groups(written, limits=limits)
    if output_format is Format.JSONL:
        for line in found:
            typer.echo(json_line(line))
    else:
        records = list(found)
        print_records(records, output_format, rows=records)
    counts = written.counts
    print_note(
        f"{counts['records']} records, {counts['generations']} generations, "
        f"{counts['rebalances']} rebalances"
    )
    if counts["errors"]:
        print_error(f"{counts['errors']} records could not be read; see the table errors")
        raise typer.Exit(BAD_INPUT)


# ---- Logs -------------------------------------------------------------------


def _history_of_logs(files: Sequence[Path], options: HistoryOptions, spark: SparkOptions) -> None:
    """Print a summary of each group in logs, and write all rebalances to a file of --output."""
    if options.metadata is not None:
        text = "--metadata is for records of __consumer_offsets, not for logs; remove it"
        raise typer.BadParameter(text)
    output_format = options.output_format or Format.TABLE
    with ExitStack() as stack:
        stream = None
        if options.output is not None:
            directory = location(options.output)
            if directory is None:
                raise typer.BadParameter(
                    f"--output must be a local directory for logs, got {options.output}"
                )
            stream = stack.enter_context(replacing_file(directory / REBALANCES))

        def write(record: Mapping[str, Any]) -> None:
            if stream is not None:
                stream.write(json_line(record).encode() + b"\n")

        if spark.master is None:
            add = None if stream is None else lambda one: write(log_summary.rebalance_record(one))
            records = log_summary.summarise_logs(files, on_rebalance=add)
        else:
            records = _summarise_on_spark(files, spark, write)
    if output_format is Format.TABLE:
        _print_log_summary(records)
    else:
        print_records(records, output_format)


def _summarise_on_spark(
    files: Sequence[Path], spark: SparkOptions, write: Callable[[Mapping[str, Any]], None]
) -> list[dict[str, Any]]:
    from kassay.experiments.spark.history_pipeline import summarise_logs_on_spark
    from kassay.experiments.spark.session import spark_session

    if STDIN in files:
        raise typer.BadParameter("--master cannot read standard input; give the paths of log files")
    with spark_session(master=spark.master, settings=spark.settings()) as session:
        records = summarise_logs_on_spark(session, files, on_rebalance=write)
    log_summary.check_found(records, files)
    return records


def _print_log_summary(records: Sequence[dict[str, Any]]) -> None:
    ranked = sorted(records, key=lambda record: -record["rebalances"])
    print_records(ranked, Format.TABLE, rows=[_row(record) for record in ranked])
    templates = environment(_TEMPLATES, autoescape=False)
    templates.filters["time"] = lambda text: text.partition(".")[0].replace("T", " ")
    template = templates.get_template("log_summary.txt.j2")
    for record in ranked[:_SHOWN_GROUPS]:
        typer.echo()
        typer.echo(without_control_characters(template.render(record=record)), nl=False)
    if len(ranked) > _SHOWN_GROUPS:
        print_note(f"{len(ranked) - _SHOWN_GROUPS} more groups; --format jsonl shows their causes")


def _row(record: dict[str, Any]) -> dict[str, object]:
    busiest = record["busiest_hour"] or {}
    return {
        "group": record["id"],
        "rebalances": record["rebalances"],
        "per hour": record["rebalances_per_hour"],
        "busiest\nhour": busiest.get("rebalances"),
        "not stable\n(s)": record["not_stable_seconds"],
        "storms": record["storms"],
    }
