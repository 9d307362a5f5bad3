"""Evaluate and summarise the cases of a study on Spark, or search them for counterexamples.

`kassay report` computes all figures and statistics from the tables of the summary. The queries of
these tables are in study_summary.sql.
"""

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from kassay.experiments.counterexamples.find_counterexample import (
    CaseSearch,
    CounterexampleOptions,
    find_counterexample,
)
from kassay.experiments.spark import job_helpers, progress, session
from kassay.experiments.spark.job_helpers import map_rows
from kassay.experiments.spark.progress import CaseCounts, with_progress
from kassay.experiments.spark.session import PARQUET_OPTIONS
from kassay.experiments.study import evaluate_case, schemas
from kassay.experiments.study import schemas as table_schemas
from kassay.experiments.study.cases import (
    IMPORTED,
    Batch,
    Cases,
    ImportedCases,
    batches_of,
    case_index,
)
from kassay.experiments.study.configuration import DEFAULT_SETTINGS, StudySettings
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.output_reader import read_manifest
from kassay.reference.model.errors import InputError, RunError

_RUN_OF_FILE = r"/batch=(\d+)/run=([^/]+)/[^/]+$"


def read_cases(spark: SparkSession, root: str, paths: Sequence[str], **options: str) -> DataFrame:
    """Read evaluated cases of a study from folders, with the check of checksums by Spark."""
    checks = {"parquet.page.verify-checksum.enabled": "true", **options}
    frames = spark.read.schema(from_arrow_schema(table_schemas.CASES)).options(**checks)
    return frames.parquet(*(f"{root}/{path}" for path in paths))


def complete_runs(
    spark: SparkSession,
    root: str,
    batches: Sequence[Batch],
    digest: str,
    *,
    without: Container[str] = (),
) -> dict[int, str]:
    """Return the name of the first complete run of each batch, by batch number.

    All columns of all files are read, with their page checksums. A run is complete if it has
    the rows of this study at exactly the positions of its batch, and no unreadable file. The
    folders in ``without`` are ignored.
    """
    # Skip unreadable parts of damaged files: their rows are then missing.
    skipped = dict.fromkeys(("ignoreCorruptFiles", "ignoreMissingFiles"), "true")
    try:
        frame = read_cases(spark, root, [""], recursiveFileLookup="true", **skipped)
        names = frame.inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return {}
        raise
    listed = [match.groups() for name in names if (match := re.search(_RUN_OF_FILE, name))]
    path = F.col("_metadata.file_path")
    found = (
        frame.groupBy(
            F.regexp_extract(path, _RUN_OF_FILE, 1).try_cast("int").alias("batch"),
            F.regexp_extract(path, _RUN_OF_FILE, 2).alias("run"),
        )
        .agg(
            F.count("*"),
            F.count_distinct(table_schemas.POSITION),
            F.min(table_schemas.POSITION),
            F.max(table_schemas.POSITION),
            F.count_if(F.col(table_schemas.STUDY) == digest),
            *(F.count(name) for name in table_schemas.TABLES),  # reads all columns
        )
        .collect()
    )
    by_number = {batch.number: batch for batch in batches}
    runs: dict[int, str] = {}
    for number, run, *counts in sorted(found, key=lambda row: str(row["run"])):
        batch = by_number.get(number)
        if batch is None or f"{_batch_folder(digest, number)}/run={run}" in without:
            continue
        expected = [batch.size, batch.size, batch.first, batch.end - 1, batch.size]
        if listed.count((str(number), run)) == 1 and counts[:5] == expected:
            runs.setdefault(number, run)
    return runs


def _batch_folder(digest: str, number: int) -> str:
    return f"{session.CASES_FOLDER}/{digest}/batch={number}"


def study_tables(spark: SparkSession, output: str) -> dict[str, DataFrame]:
    """Return the tables of a finished study as DataFrames, by table name.

    A damaged file raises an error when its rows are read.
    """
    with session.local_copy(spark, output) as (directory, _):
        folders = read_manifest(directory)["folders"]
    paths = [folder for folder in folders if folder.startswith("cases/")]
    cases = read_cases(spark, session.uri_of(output), paths)
    key = F.col(f"groups.{table_schemas.KEY}").alias(table_schemas.KEY)
    optima = cases.where("optima IS NOT NULL").select(key, "optima.*")
    tables = {name: cases.select(key, F.inline(name)) for name in table_schemas.LISTS}
    return {"groups": cases.select("groups.*"), "optima": optima, **tables}


_ROWS_PER_BATCH = 64  # bounds the memory of a worker
_CASES_PER_TASK = 1_000  # about 10 seconds
_TASKS_PER_CORE = 3
_CONCURRENT_BATCHES = 2  # the next batch keeps cores busy during the last tasks of a batch
_COMPILATION = "spark.sql.codegen.wholeStage"
_COMPILED_CASES = 100_000
"""Minimum number of cases for which Spark compiles stages of queries, which takes seconds."""
_DOCUMENT_ID = "conv(substring(sha2(document, 256), 1, 15), 16, 10)"
"""SQL expression that computes `document_id` of the column ``document``."""


def read_documents(
    spark: SparkSession, documents: Sequence[str], uris: Sequence[str], *, assignors: Sequence[str]
) -> tuple[DataFrame, ImportedCases]:
    """Return the group documents as a DataFrame with case indices, and the study's cases.

    The columns are ``index`` and ``document``. Each line of the files at ``uris`` is a document.
    Documents are sorted by a digest of their content, so that the index does not depend on the
    division into files and tasks. Equal documents are one case.
    """
    frames = [spark.createDataFrame([(document,) for document in documents], "document string")]
    if uris:
        lines = spark.read.text(list(uris)).select(F.trim("value").alias("document"))
        frames.append(lines.where("document <> ''"))
    found = reduce(DataFrame.unionAll, frames).withColumn("id", F.expr(_DOCUMENT_ID).cast("long"))
    distinct = found.dropDuplicates(["id"]).persist(StorageLevel.DISK_ONLY)
    order = F.row_number().over(Window.orderBy("id")) - 1
    indices = distinct.select("id", order.cast("long").alias("index"))  # sorts only the ids
    [row] = distinct.agg(F.count("*").alias("number"), F.bit_xor("id").alias("digest")).collect()
    cases = ImportedCases(row["number"], row["digest"] or 0, tuple(assignors))
    return distinct.join(indices, "id").select("index", "document"), cases


def evaluate_cases(
    spark: SparkSession,
    cases: Cases,
    batch: Batch,
    *,
    settings: StudySettings = DEFAULT_SETTINGS,
    documents: DataFrame | None = None,
    study: str = "",
    tasks: int | None = None,
    evaluator: evaluate_case.Evaluator | None = None,
) -> DataFrame:
    """Evaluate the cases of a batch on Spark, and return one row per case.

    The workers derive each case from its position; ``documents`` has the imported groups (see
    `read_documents`). The rows do not depend on the number of tasks; the default gives tasks of
    about 10 seconds. ``study`` is the `study_digest`, a column of each row. ``evaluator``
    evaluates one case, and must support pickle.
    """
    limits = settings.limits
    evaluator = evaluator or partial(
        evaluate_case.evaluate_case, limits=limits, drawn=settings.drawn
    )
    limits = replace(limits, memory=limits.memory or session.memory_per_task(spark))
    expected, total = session.code_identity(), len(cases)

    def case_rows(rows: Iterator[job_helpers.Row]) -> Iterator[job_helpers.Row]:
        session.check_identity(expected)
        context = TaskContext.get()
        retry = context is not None and context.attemptNumber() > 0
        with evaluate_case.memory_limit(limits.memory):
            for row in rows:
                case = cases[case_index(row["id"], total)]
                if row.get("document") is not None:
                    case = case.with_document(row["document"])
                if retry:  # this case may have killed the worker of an earlier attempt
                    record = evaluate_case.run_isolated(evaluator, case, limits=limits)
                else:
                    with evaluate_case.time_limit(limits.group):
                        record = evaluator(case)
                yield table_schemas.case_row(record, position=row["id"], study=study)

    if tasks is None:
        enough = -(-batch.size // _CASES_PER_TASK)
        tasks = min(batch.size, max(enough, _TASKS_PER_CORE * session.cores_of(spark)))
    places = spark.range(batch.first, batch.end, 1, tasks)
    if documents is not None:
        indexed = places.withColumn("index", case_index(F.col("id"), total))
        places = indexed.join(documents, "index", "left").select("id", "document")
        places = places.repartition(tasks, "id")
    return job_helpers.map_rows(places, case_rows, table_schemas.CASES, size=_ROWS_PER_BATCH)


def write_study(
    spark: SparkSession,
    cases: Cases,
    output: str,
    *,
    manifest: Callable[[dict[str, int]], Mapping[str, object]],
    settings: StudySettings = DEFAULT_SETTINGS,
    documents: DataFrame | None = None,
    evaluator: evaluate_case.Evaluator | None = None,
) -> None:
    """Run a study: write the missing batches, the summary and, at the end, the manifest.

    An interrupted study continues with the missing batches (see `complete_runs`). The function
    ``manifest`` creates the manifest from the number of rows per table.
    """
    total, digest, run = len(cases), study_digest(cases, settings), session.new_run()
    if not total:
        raise InputError("there is no group to study: the files of --groups contain no document")
    spark.conf.set(_COMPILATION, str(total >= _COMPILED_CASES).lower())
    batches = list(batches_of(total, largest=settings.batch_cases))
    changed = session.changed_folders(spark, output)
    root = f"{session.uri_of(output)}/{session.CASES_FOLDER}/{digest}"

    def write(batch: Batch) -> None:
        frame = evaluate_cases(
            spark,
            cases,
            batch,
            settings=settings,
            documents=documents,
            study=digest,
            evaluator=evaluator,
        )
        folder = f"{session.uri_of(output)}/{_batch_folder(digest, batch.number)}/run={run}"
        # Shuffle the rows, because one file contains the rows of many tasks.
        frame.repartition(1).write.options(**session.PARQUET_OPTIONS).parquet(folder)

    runs = complete_runs(spark, root, batches, digest, without=changed)
    if missing := [batch for batch in batches if batch.number not in runs]:
        _run_batches(spark, write, missing, total)
        runs = complete_runs(spark, root, batches, digest, without=changed)
    if incomplete := [str(batch.number) for batch in batches if batch.number not in runs]:
        raise RunError(f"batches {', '.join(incomplete)} are incomplete; run the same study again")
    folders = [f"{_batch_folder(digest, n)}/run={name}" for n, name in sorted(runs.items())]
    summary = f"{session.SUMMARY_FOLDER}/run={run}"
    rows = write_summary(
        read_cases(spark, session.uri_of(output), folders),
        f"{session.uri_of(output)}/{summary}",
        chosen=settings.compared,
    )
    document = {**manifest(rows), "cases": total, "digest": digest, "summary": summary}
    session.write_manifest(spark, output, run, document, folders=[*folders, summary])


def _run_batches(
    spark: SparkSession, write: Callable[[Batch], None], missing: Sequence[Batch], total: int
) -> None:
    counts = progress.CaseCounts(total, total - sum(batch.size for batch in missing))

    def run(batch: Batch) -> None:
        counts.running += batch.size
        write(batch)
        counts.running -= batch.size
        counts.finished += batch.size

    with progress.with_progress(spark, counts):
        runs = [partial(run, batch) for batch in missing]
        job_helpers.run_concurrently(spark, runs, _CONCURRENT_BATCHES)


def study_digest(cases: Cases, settings: StudySettings = DEFAULT_SETTINGS) -> str:
    """Return a digest of the study's cases, of its limits and of kassay's code."""
    described = [session.code_identity(), settings.drawn, repr(settings.limits), repr(cases)]
    described += settings.compared
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:32]


_CONCURRENT_TABLES = 2  # Spark plans and compiles a query on one core
_QUERIES = job_helpers.queries_of("study_summary.sql")
_DIGESTS = pa.schema([("family", pa.string()), ("sha256", pa.string())])
_CONSTANTS = {
    "named": schemas.NAMED_FAMILY,
    "imported": IMPORTED,
    "hindsight": schemas.HINDSIGHT,
    "candidates": schemas.WORST_CANDIDATES,
}
_LISTS = {"finite": [name for name, family in FAMILIES.items() if family.is_finite]}


def query(
    name: str, *, keys: str = "", compared: Sequence[str] = (), **frames: DataFrame
) -> DataFrame:
    """Run the query ``name`` of ``study_summary.sql`` on data frames."""
    spark = next(iter(frames.values())).sparkSession
    text = _QUERIES[name].replace("$keys", keys)
    lists: dict[str, Any] = {**_LISTS, "compared": list(compared)}
    used = {key: F.lit(value) for key, value in lists.items() if f":{key}" in text}
    return spark.sql(text, used, **_CONSTANTS, **frames)


def write_summary(cases: DataFrame, uri: str, *, chosen: Sequence[str] = ()) -> dict[str, int]:
    """Write the summary tables of a study, and return the number of rows per table of the study.

    ``chosen`` are the assignors that the user selected for the comparison in pairs, if any.
    """
    scoped = query("scoped", cases=cases)
    rows = query("rows", scoped=scoped)
    outcomes = _written(query("outcomes", rows=rows), f"{uri}/outcomes").toPandas()
    compared = schemas.compared_assignors(outcomes["assignor"], chosen)
    rebalances = query("rebalances", cases=cases)
    sums = partial(query, "rebalance_sums", rebalances=rebalances)
    frames = {
        "pairs": query("pairs", scoped=scoped, compared=compared),
        "worst": query("worst", drawn=query("drawn", rows=rows), compared=compared),
        "fronts": query("fronts", cases=cases),
        "measures": query("measures", cases=cases),
        "run_times": query("run_times", cases=cases),
        "trajectories": sums(keys="seed, start_members"),
        "events": sums(keys="event, period"),
    }
    writes = [partial(_written, frame, f"{uri}/{name}") for name, frame in frames.items()]
    job_helpers.run_concurrently(cases.sparkSession, writes, _CONCURRENT_TABLES)
    counts = query("families", cases=cases).join(_family_digests(cases), "family")
    families = _written(counts, f"{uri}/families")
    totals = (F.expr(f"coalesce(sum({name}), 0) AS {name}") for name in schemas.TABLES)
    [found] = families.agg(*totals).collect()
    return found.asDict()


def _written(table: DataFrame, uri: str) -> DataFrame:
    table.coalesce(1).write.options(**PARQUET_OPTIONS).parquet(uri)
    return table.sparkSession.read.parquet(uri)


def _family_digests(cases: DataFrame) -> DataFrame:
    """Return, for each family, the SHA-256 of the sorted digests of its cases.

    Spark sorts the digests of the cases, so that no process has all digests of a family in memory.
    """
    family = F.col("groups.family").alias("family")
    digests = cases.select(family, _case_digest().alias("digest")).repartition("family")
    return job_helpers.map_rows(digests.sortWithinPartitions("family", "digest"), _digest, _DIGESTS)


def _digest(rows: Iterator[job_helpers.Row]) -> Iterator[job_helpers.Row]:
    for family, own in groupby(rows, key=itemgetter("family")):
        yield {"family": family, "sha256": schemas.sha256_of_lines(row["digest"] for row in own)}


def _case_digest() -> Column:
    """Return an expression for the SHA-256 of the sorted results of a case."""

    def text(row: str, names: Sequence[str]) -> str:
        values = (f"coalesce(cast({row}.{name} AS string), '')" for name in names)
        return f"concat_ws('\\t', {', '.join(values)})"

    rows = ", ".join(
        f"transform(filter(coalesce({table}, array()), "
        f"row -> row.assignor <> '{schemas.HINDSIGHT}'), row -> {text('row', names)})"
        for table, names in schemas.RESULT_FIELDS.items()
    )
    lines = f"{text('groups', schemas.GROUP_FIELDS)}, array_sort(concat({rows}))"
    return F.expr(f"sha2(concat_ws('\\n', {lines}), 256)")


_MAX_JOBS = 200
_MIN_CASES = 10
_RESULTS = table_schemas.schema_of(CaseSearch)


def search_cases(
    spark: SparkSession, cases: Cases, options: CounterexampleOptions, *, tasks: int | None = None
) -> Iterator[CaseSearch]:
    """Search each case for counterexamples, and yield results as soon as a Spark job ends.

    Each task is a job of its own, because a job returns its rows only when all its tasks have
    ended. Several jobs run at a time. The workers derive each case from its number.
    """
    total = len(cases)
    size = max(1, -(-total // tasks)) if tasks else max(_MIN_CASES, -(-total // _MAX_JOBS))

    def job(first: int) -> list[CaseSearch]:
        rows = map_rows(
            spark.range(first, min(total, first + size), 1, 1),
            lambda rows: (
                asdict(find_counterexample(cases[case_index(row["id"], total)], options))
                for row in rows
            ),
            _RESULTS,
        ).collect()
        return [CaseSearch(**row.asDict()) for row in rows]

    counts = CaseCounts(total)
    with with_progress(spark, counts), ThreadPoolExecutor(session.cores_of(spark) + 1) as pool:
        running = [pool.submit(job, first) for first in range(0, total, size)]
        try:
            for done in as_completed(running):
                found = done.result()
                counts.finished += len(found)
                yield from found
        finally:
            for future in running:
                future.cancel()
