"""Measure time and memory of the summary and report of a study with millions of groups.

Command: ``python -m benchmarks.study_scale [GROUPS]``, default 10,000,000 groups. It writes
synthetic cases in the layout of a study. Then the study runs: it verifies the cases, writes their
summary and writes its manifest. The last step is the report.
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.memory import peak_memory, sampled_peak
from benchmarks.timing import Timing, print_json, print_table, run_alone
from kassay.experiments.comparison.compare import LIMITS
from kassay.experiments.report.study_report import render
from kassay.experiments.spark.session import CASES_FOLDER, new_run, spark_session
from kassay.experiments.spark.study_pipeline import evaluate_cases, study_digest, write_study
from kassay.experiments.study.cases import Batch, ImportedCases, Stratum, batches_of, cases_of
from kassay.experiments.study.configuration import StudyConfig, StudySettings, manifest
from kassay.experiments.study.families.all_families import USUAL
from kassay.experiments.study.output_reader import load_summary
from kassay.experiments.study.schemas import NAMED_FAMILY
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.documents.files import write_text

GROUPS = 10_000_000
STUDY_LIMIT_MB = 419
"""Maximum resident memory of the driver's Python process during a study: 400 MiB."""
REPORT_LIMIT_MB = 1074
"""Maximum resident memory of the report: 1 GiB."""
_MASTER = "local[2]"
_SETTINGS = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
"""Java options with the optimising compiler, as recommended for long studies."""
_EVALUATED = 100
"""Number of evaluated cases, which the synthetic cases repeat with other values."""


def main() -> None:
    """Print the timings; exit with code 1 if a process needs more memory than its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study_scale", description=__doc__)
    parser.add_argument("groups", nargs="?", type=int, default=GROUPS, help="number of groups")
    groups = parser.parse_args().groups
    with tempfile.TemporaryDirectory(prefix="kassay-scale-") as directory:
        timings = [run_alone(_write_cases, Path(directory), groups)]
        timing, study_mb = run_alone(_study, Path(directory), groups)
        timings.append(timing)
        seconds, report_mb = run_alone(_report, Path(directory))
    timings.append(_timing("report", groups, seconds, f"Python {report_mb} MB"))
    print_table(timings, sys.stderr)
    print_json(timings, sys.stdout)
    if study_mb > STUDY_LIMIT_MB or report_mb > REPORT_LIMIT_MB:
        sys.exit(
            f"the limits are {STUDY_LIMIT_MB} MB for the driver and {REPORT_LIMIT_MB} MB for the "
            f"report; the driver used {study_mb} MB and the report {report_mb} MB"
        )


def _write_cases(directory: Path, groups: int) -> Timing:
    """Write synthetic cases in the layout of a study; return the run time.

    The rows repeat those of evaluated cases. Numbers of partitions and gaps vary with the
    position, so that the tables of counts have many different values.
    """
    start = time.perf_counter()
    # The summary contains each hand-written group, so that these must not be repeated.
    families = [name for name in USUAL if name != NAMED_FAMILY]
    evaluated = cases_of(families, seeds=_EVALUATED, assignors=tuple(ASSIGNORS))
    digest, run = study_digest(_cases(groups)), new_run()
    with spark_session(master=_MASTER, settings=_SETTINGS) as spark:
        batch = Batch(0, 0, len(evaluated))
        rows = evaluate_cases(
            spark, evaluated, batch, settings=StudySettings(drawn=0), study=digest
        ).toArrow()
    size = 0
    for batch in batches_of(groups):
        file = directory / f"{CASES_FOLDER}/{digest}/batch={batch.number}/run={run}/part.parquet"
        file.parent.mkdir(parents=True)
        positions = np.arange(batch.first, batch.end)
        table = _varied(rows.take(positions % len(evaluated)), positions)
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        size += file.stat().st_size
    note = f"{size / 1e6:,.0f} MB of Parquet"
    return _timing("synthetic cases", groups, time.perf_counter() - start, note)


def _varied(rows: pa.Table, positions: np.ndarray) -> pa.Table:
    """Set the positions of the rows, and vary numbers of partitions and gaps."""
    rows = rows.combine_chunks()
    groups, comparisons = (rows[name].chunk(0) for name in ("groups", "comparisons"))
    of_comparison = np.repeat(positions, comparisons.value_lengths())
    gaps = {
        name: of_comparison % (211 + place)
        for place, name in enumerate(("sum_of_squares_gap", "unnecessary_moves"))
    }
    varied = {
        "position": pa.array(positions),
        "groups": _increased(groups, {"partitions": positions % 1009}),
        "comparisons": pa.ListArray.from_arrays(
            comparisons.offsets, _increased(comparisons.values, gaps)
        ),
    }
    for name, column in varied.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _increased(rows: pa.StructArray, amounts: dict[str, np.ndarray]) -> pa.StructArray:
    """Add amounts to columns of rows."""
    names = [field.name for field in rows.type]
    columns = [
        pc.add(rows.field(name), pa.array(amounts[name])) if name in amounts else rows.field(name)
        for name in names
    ]
    return pa.StructArray.from_arrays(columns, names)


def _cases(groups: int) -> Stratum:
    return Stratum(family="mixed-join", first_seed=0, seeds=groups, assignors=tuple(ASSIGNORS))


def _study(directory: Path, groups: int) -> tuple[Timing, int]:
    """Verify and summarise the cases; return the run time and the driver's memory in MB."""
    config = StudyConfig(
        families=dict.fromkeys(USUAL), seeds=groups, assignors=tuple(ASSIGNORS), limits=LIMITS
    )
    described = config.described(ImportedCases())
    start = time.perf_counter()
    with spark_session(master=_MASTER, settings=_SETTINGS) as spark, sampled_peak() as peak:
        write_study(spark, _cases(groups), str(directory), manifest=partial(_manifest, described))
    memory = peak_memory()
    note = f"Python {memory} MB, Java {peak.java} MiB"
    return _timing("summary", groups, time.perf_counter() - start, note), memory


def _manifest(described: dict[str, object], rows: dict[str, int]) -> dict[str, object]:
    return manifest(described, rows=rows, run={"master": _MASTER, "seconds": 0.0})


def _report(directory: Path) -> tuple[float, int]:
    """Render the report of a study; return the run time in seconds and the memory in MB."""
    start = time.perf_counter()
    report = render(load_summary(directory))
    write_text(directory / "report.html", report.html)
    return time.perf_counter() - start, peak_memory()


def _timing(step: str, groups: int, seconds: float, note: str) -> Timing:
    return Timing(benchmark="scale", case=f"{groups:,} groups: {step}", seconds=seconds, note=note)


if __name__ == "__main__":
    main()
