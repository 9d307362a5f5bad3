"""Evaluate the cases of a study on Spark, batch by batch."""

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.spark.arrow_map import record_batches
from kassay.experiments.spark.code_distribution import (
    WorkerMismatchError,
    check_identity,
    code_identity,
)
from kassay.experiments.spark.output_files import (
    PARQUET_OPTIONS,
    changed_folders,
    new_run,
    uri_of,
    write_manifest,
)
from kassay.experiments.spark.progress import CaseCounts, with_progress
from kassay.experiments.spark.session import cores_of, memory_per_task
from kassay.experiments.spark.study_schemas import CASES, POSITION, STUDY, case_row
from kassay.experiments.spark.study_summary import write_summary
from kassay.experiments.study.batches import (
    BATCH_CASES,
    Batch,
    batches_of,
    case_index,
    index_factor,
)
from kassay.experiments.study.case import Case, Cases
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.isolation import Evaluator, memory_limit, run_isolated, watchdog
from kassay.experiments.study.table_rows import CaseRecord
from kassay.reference.model.errors import RunError

_ROWS_PER_BATCH = 64  # bounds the memory of a worker
_CASES_PER_TASK = 1_000  # about 10 seconds
_CASES_PER_FILE = 100_000  # about 32 MB
_TASKS_PER_CORE = 3
_CONCURRENT_BATCHES = 2  # the next batch keeps cores busy during the last tasks of a batch
CASES_FOLDER, SUMMARY_FOLDER = "cases", "summary"
_MISMATCH = re.compile(rf"{WorkerMismatchError.__name__}: ([^\n]*)")
_RUN_OF_FILE = r"/batch=(\d+)/run=([^/]+)/[^/]+$"


def evaluate_cases(
    spark: SparkSession,
    cases: Cases,
    batch: Batch,
    *,
    documents: DataFrame | None = None,
    study: str = "",
    tasks: int | None = None,
    limits: CaseLimits = LIMITS,
    judge: Evaluator | None = None,
    drawn: int | None = None,
) -> DataFrame:
    """Evaluate the cases of a batch. Return one row per case, in any order.

    The workers derive each case from its position; ``documents`` has the imported groups, see
    `read_documents`. The rows do not depend on the number of tasks; the default gives tasks of
    about 10 seconds. The function ``judge`` evaluates a case; it must support pickle. Documents
    are stored only for groups with smaller seeds than ``drawn``, or for all.
    """
    judge = judge or partial(_evaluate, limits=limits, drawn=drawn)
    limits = replace(limits, memory=limits.memory or memory_per_task(spark))
    expected, total = code_identity(), len(cases)

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_identity(expected)
        context = TaskContext.get()
        retry = context is not None and context.attemptNumber() > 0
        positions = (row for batch in batches for row in batch.to_pylist())
        with memory_limit(limits.memory), watchdog() as start_timer:

            def row(place: Mapping[str, Any]) -> dict[str, object]:
                position, document = place["id"], place.get("document")
                case = cases[case_index(position, total)]
                if document is not None:
                    case = case.with_document(document)
                if retry:  # this case may have killed the worker of an earlier attempt
                    record = run_isolated(judge, case, limits=limits)
                else:
                    start_timer(limits.group)
                    record = judge(case)
                return case_row(record, position=position, study=study)

            yield from record_batches(map(row, positions), CASES, size=_ROWS_PER_BATCH)

    if tasks is None:
        enough = -(-batch.size // _CASES_PER_TASK)
        tasks = min(batch.size, max(enough, _TASKS_PER_CORE * cores_of(spark)))
    places = spark.range(batch.first, batch.end, 1, tasks)
    if documents is not None:
        indexed = places.withColumn("index", F.expr(f"id * {index_factor(total)}L % {total}L"))
        places = indexed.join(documents, "index", "left").select("id", "document")
        places = places.repartition(tasks, "id")
    return places.mapInArrow(evaluate, from_arrow_schema(CASES))


def _evaluate(case: Case, *, limits: CaseLimits, drawn: int | None) -> CaseRecord:
    return evaluate_case(case, limits=limits, drawn=drawn is None or case.seed < drawn)


def write_study(
    spark: SparkSession,
    cases: Cases,
    output: str,
    *,
    manifest: Callable[[dict[str, int]], Mapping[str, object]],
    documents: DataFrame | None = None,
    largest_batch: int = BATCH_CASES,
    drawn: int | None = None,
    limits: CaseLimits = LIMITS,
    tasks: int | None = None,
    judge: Evaluator | None = None,
) -> None:
    """Run a study: write the missing batches, the summary and then the manifest.

    A batch is complete if one of its runs has each of its cases exactly once. An interrupted study
    continues with the missing batches; several drivers can run the same study with one output
    directory, and each driver uses the batches of the others. The function ``manifest`` builds the
    manifest from the number of rows per table.
    """
    digest, run = study_digest(cases, limits=limits, drawn=drawn), new_run()
    folder, summary = f"{CASES_FOLDER}/{digest}", f"{SUMMARY_FOLDER}/run={run}"
    root = f"{uri_of(output)}/{folder}"
    batches = list(batches_of(len(cases), largest=largest_batch))

    def write(batch: Batch) -> None:
        path = f"{root}/batch={batch.number}"
        if complete_runs(spark, path, [batch], digest, without=changed):
            return  # another driver wrote the batch
        frame = evaluate_cases(
            spark,
            cases,
            batch,
            documents=documents,
            study=digest,
            tasks=tasks,
            limits=limits,
            judge=judge,
            drawn=drawn,
        )
        # Shuffle the rows, because one large file contains the rows of many tasks.
        files = -(-batch.size // _CASES_PER_FILE)
        frame.repartition(files).write.options(**PARQUET_OPTIONS).parquet(f"{path}/run={run}")

    changed = changed_folders(spark, output)
    runs = complete_runs(spark, root, batches, digest, without=changed)
    missing = [batch for batch in batches if batch.number not in runs]
    # Drivers that share an output start with different batches.
    missing[1:] = Random(run).sample(missing[1:], len(missing[1:]))  # noqa: S311
    if missing:
        _run_batches(spark, write, missing, total=len(cases))
        runs = complete_runs(spark, root, batches, digest, without=changed)
    absent = [str(batch.number) for batch in batches if batch.number not in runs]
    if absent:
        raise RunError(f"batches {', '.join(absent)} are incomplete; run the same study again")
    paths = [f"batch={number}/run={name}" for number, name in sorted(runs.items())]
    rows = write_summary(read_cases(spark, root, paths), f"{uri_of(output)}/{summary}")
    folders = [*(f"{folder}/{path}" for path in paths), summary]
    document = {**manifest(rows), "digest": digest, "summary": summary}
    write_manifest(spark, output, run, document, folders=folders)


def _run_batches(
    spark: SparkSession, write: Callable[[Batch], None], missing: Sequence[Batch], *, total: int
) -> None:
    """Write the missing batches of a study, `_CONCURRENT_BATCHES` at the same time."""
    counts = CaseCounts(total, total - sum(batch.size for batch in missing))

    def run(batch: Batch) -> None:
        counts.running += batch.size
        write(batch)
        counts.running -= batch.size
        counts.finished += batch.size

    with with_progress(spark, counts), ThreadPoolExecutor(_CONCURRENT_BATCHES) as pool:
        try:
            list(pool.map(run, missing))
        except BaseException as error:
            with suppress(Exception):  # the Java process may be dead
                spark.interruptAll()
            mismatch = _MISMATCH.search(str(error))
            if mismatch is not None:
                raise RunError(mismatch[1]) from None
            raise


def read_cases(spark: SparkSession, root: str, paths: Sequence[str]) -> DataFrame:
    """Read the evaluated cases of a study from the folders of runs, and verify checksums."""
    return (
        spark.read.schema(from_arrow_schema(CASES))
        .option("parquet.page.verify-checksum.enabled", "true")
        .parquet(*(f"{root}/{path}" for path in paths))
    )


def complete_runs(
    spark: SparkSession,
    root: str,
    batches: Sequence[Batch],
    digest: str,
    *,
    without: Container[str] = (),
) -> dict[int, str]:
    """Map the number of each complete batch to the name of its first complete run.

    All columns of all files are read, with their page checksums. A run is complete if it has
    the rows of this study at exactly the positions of its batch, and no unreadable file. The
    folders in ``without`` are ignored.
    """
    try:
        frame = _readable_rows(spark, root)
        names = frame.inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return {}
        raise
    listed = [match.groups() for name in names if (match := re.search(_RUN_OF_FILE, name))]
    path = F.col("_metadata.file_path")
    found = (
        frame.groupBy(
            F.regexp_extract(path, _RUN_OF_FILE, 1).alias("batch"),
            F.regexp_extract(path, _RUN_OF_FILE, 2).alias("run"),
        )
        .agg(
            F.count("*").alias("rows"),
            F.count_distinct(POSITION).alias("positions"),
            F.min(POSITION).alias("first"),
            F.max(POSITION).alias("last"),
            F.count_if(F.col(STUDY) == digest).alias("own"),
            F.count_distinct(path).alias("files"),
            F.bit_xor(F.xxhash64("*")).alias("read"),  # reads all columns
        )
        .collect()
    )
    sizes = {str(batch.number): batch for batch in batches}
    runs: dict[int, str] = {}
    for row in sorted(found, key=lambda row: str(row["run"])):
        batch = sizes.get(row["batch"])
        folder = f"{CASES_FOLDER}/{digest}/batch={row['batch']}/run={row['run']}"
        if batch is None or folder in without:
            continue
        if tuple(row)[2:8] == (
            *(batch.size, batch.size, batch.first, batch.end - 1, batch.size),
            listed.count((row["batch"], row["run"])),
        ):
            runs.setdefault(batch.number, row["run"])
    return runs


def _readable_rows(spark: SparkSession, root: str) -> DataFrame:
    """Read the rows of all files below a directory; skip unreadable parts of damaged files."""
    return (
        spark.read.schema(from_arrow_schema(CASES))
        .option("recursiveFileLookup", "true")
        .option("ignoreCorruptFiles", "true")
        .option("ignoreMissingFiles", "true")
        .option("parquet.page.verify-checksum.enabled", "true")
        .parquet(root)
    )


def study_digest(cases: Cases, *, limits: CaseLimits, drawn: int | None = None) -> str:
    """Return a digest of the study's cases, its limits and kassay's code."""
    described = json.dumps([code_identity(), drawn, repr(limits), repr(cases)])
    return hashlib.sha256(described.encode()).hexdigest()[:32]
