"""Measure time and memory of the summary and report of a study with millions of groups.

Command: ``python -m benchmarks.study_scale [GROUPS]``, default 10,000,000 groups. Spark writes
synthetic cases in the layout of a study. Then the study runs: it verifies the cases, writes their
summary and writes its manifest. The last step is the report.
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from benchmarks.memory import peak_memory, sampled_peak
from benchmarks.timing import KASSAY, Timing, print_json, print_table, run_alone
from kassay.experiments.compare import LIMITS
from kassay.experiments.report.output_reader import load_summary
from kassay.experiments.report.study_report import render
from kassay.experiments.spark.output_files import CASES_FOLDER, PARQUET_OPTIONS, new_run
from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_pipeline import (
    evaluate_cases,
    study_digest,
    write_study,
)
from kassay.experiments.study.batches import Batch, batches_of
from kassay.experiments.study.case import ImportedCases, Stratum, cases_of
from kassay.experiments.study.families.registry import USUAL
from kassay.experiments.study.manifest import configuration, manifest
from kassay.reference.assignors import ASSIGNORS

GROUPS = 10_000_000
STUDY_LIMIT_MB = 419
"""Maximum resident memory of the driver's Python process during a study: 400 MiB."""
REPORT_LIMIT_MB = 1074
"""Maximum resident memory of the report: 1 GiB."""
_MASTER = "local[2]"
_EVALUATED = 100
"""Number of evaluated cases, which the synthetic cases repeat with other values."""


def main() -> None:
    """Print the timings; exit with code 1 if a process needs more memory than its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study_scale", description=__doc__)
    parser.add_argument("groups", nargs="?", type=int, default=GROUPS, help="number of groups")
    groups = parser.parse_args().groups
    with tempfile.TemporaryDirectory(prefix="kassay-scale-") as directory:
        timings, study_mb = run_alone(_write, Path(directory), groups)
        seconds, report_mb = run_alone(_report, Path(directory))
    timings.append(_timing("report", groups, seconds, f"Python {report_mb} MB"))
    print_table(timings, sys.stderr)
    print_json(timings, sys.stdout)
    if study_mb > STUDY_LIMIT_MB or report_mb > REPORT_LIMIT_MB:
        sys.exit(
            f"the limits are {STUDY_LIMIT_MB} MB for the driver and {REPORT_LIMIT_MB} MB for the "
            f"report; the driver used {study_mb} MB and the report {report_mb} MB"
        )


def _write(directory: Path, groups: int) -> tuple[list[Timing], int]:
    """Write synthetic cases and run their study; return two timings and the memory in MB."""
    assignors = tuple(ASSIGNORS)
    cases = Stratum(family="mixed-join", first_seed=0, seeds=groups, assignors=assignors)
    described = configuration(
        ImportedCases(),
        families=USUAL,
        seeds=groups,
        first_seed=0,
        assignors=assignors,
        limits=LIMITS,
    )
    with spark_session(master=_MASTER) as spark:
        start = time.perf_counter()
        digest = study_digest(cases, limits=LIMITS)
        synthetic = _synthetic_cases(spark, directory, digest, groups)
        root = directory / CASES_FOLDER / digest
        synthetic.write.partitionBy("batch", "run").options(**PARQUET_OPTIONS).parquet(
            root.as_uri()
        )
        written = time.perf_counter()
        size = sum(path.stat().st_size for path in root.rglob("*.parquet"))
        with sampled_peak() as peak:
            write_study(
                spark,
                cases,
                str(directory),
                manifest=partial(_manifest, described),
            )
        seconds = time.perf_counter() - written
        memory = peak_memory()
    return [
        _timing("synthetic cases", groups, written - start, f"{size / 1e6:,.0f} MB of Parquet"),
        _timing("summary", groups, seconds, f"Python {memory} MB, Java {peak.java} MiB"),
    ], memory


def _manifest(described: dict[str, object], rows: dict[str, int]) -> dict[str, object]:
    return manifest(described, rows=rows, run={"master": _MASTER, "seconds": 0.0})


def _synthetic_cases(spark: SparkSession, directory: Path, digest: str, groups: int) -> DataFrame:
    """Return a table of synthetic cases, with one row per case.

    The columns include batch and run. The rows repeat those of evaluated cases. Numbers of
    partitions and gaps vary with the position, so that the tables of counts have many different
    values.
    """
    evaluated = cases_of(USUAL, seeds=_EVALUATED, assignors=tuple(ASSIGNORS))
    count = len(evaluated)
    templates = directory / "templates"
    frame = evaluate_cases(spark, evaluated, Batch(0, 0, count), study=digest, drawn=0)
    frame.write.parquet(templates.as_uri())
    rows = spark.read.parquet(templates.as_uri()).withColumnRenamed("position", "template")
    batches = list(batches_of(groups))
    schema = "batch int, first long, end long"
    ranges = [(batch.number, batch.first, batch.end) for batch in batches]
    positions = (
        spark.createDataFrame(ranges, schema)
        .repartitionByRange(len(batches), "batch")
        .select("batch", F.explode(F.expr("sequence(first, end - 1)")).alias("position"))
    )
    partitions = F.expr("groups.partitions + position % 1009")
    joined = positions.join(F.broadcast(rows), F.col("position") % count == F.col("template"))
    return joined.select(
        "batch",
        F.lit(new_run()).alias("run"),
        "position",
        "study",
        F.col("groups").withField("partitions", partitions).alias("groups"),
        "optima",
        "assignments",
        F.transform("comparisons", _varied).alias("comparisons"),
        "timings",
        "rebalances",
    )


def _varied(comparison: Column) -> Column:
    gaps = ("sum_of_squares_gap", "unnecessary_moves")
    for place, gap in enumerate(gaps):
        comparison = comparison.withField(gap, comparison[gap] + F.col("position") % (211 + place))
    return comparison


def _report(directory: Path) -> tuple[float, int]:
    """Render the report of a study; return the run time in seconds and the memory in MB."""
    start = time.perf_counter()
    report = render(load_summary(directory))
    (directory / "report.html").write_text(report.html, encoding="utf-8")
    return time.perf_counter() - start, peak_memory()


def _timing(step: str, groups: int, seconds: float, note: str) -> Timing:
    return Timing(
        benchmark="scale",
        case=f"{groups:,} groups: {step}",
        implementation=KASSAY,
        seconds=seconds,
        note=note,
    )


if __name__ == "__main__":
    main()
