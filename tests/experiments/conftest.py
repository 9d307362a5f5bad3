"""Spark session and study that tests share."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession

from kassay.experiments.report.study_report import Report, render
from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_pipeline import write_study
from kassay.experiments.study.cases import Case, Cases, ImportedCases, JoinedCases, cases_of
from kassay.experiments.study.configuration import StudyConfig, StudySettings, manifest
from kassay.experiments.study.output_reader import StudySummary, load_summary, read_manifest

ASSIGNORS = ("range", "roundrobin")
FAMILIES = ("named", "equal-join", "mixed-fresh", "mixed-join", "mixed-churn")


# Tests have few rows and many different queries. Without generated Java code and without new
# plans during a query, a study takes half of the processor time.
_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(master="local[2]", settings=_FEW_ROWS) as session:
        yield session


@pytest.fixture
def commands_share_spark(spark, monkeypatch) -> None:
    """Let ``kassay study`` use the session of the tests, instead of a new one."""
    monkeypatch.setattr(
        "kassay.experiments.cli.commands.study.spark_session", lambda **_: nullcontext(spark)
    )


@pytest.fixture(scope="session")
def study_cases() -> Cases:
    """The generated cases of a study, and a case that cannot be built."""
    broken = Case(family="no-such-family", seed=0, assignors=ASSIGNORS)
    generated = cases_of(FAMILIES, seeds=20, assignors=ASSIGNORS)
    return JoinedCases((generated, (broken,)))


@pytest.fixture(scope="session")
def study_directory(spark, study_cases, tmp_path_factory) -> Path:
    """Output of a study; tests must not change it."""
    described = StudyConfig(
        families=dict.fromkeys(FAMILIES), seeds=20, assignors=ASSIGNORS
    ).described(ImportedCases())
    directory = tmp_path_factory.mktemp("study")
    write_study(
        spark,
        study_cases,
        str(directory),
        settings=StudySettings(batch_cases=20),
        manifest=lambda rows: manifest(described, rows=rows, run={"seconds": 1.0}),
    )
    return directory


def stored_rows(directory: Path, manifest: dict) -> list[dict]:
    """Return the case rows of a study by position, without the timings."""
    files = [directory / name for name in manifest["files"] if name.startswith("cases/")]
    table = pyarrow.dataset.dataset([str(path) for path in files], format="parquet").to_table()
    return table.drop_columns("timings").sort_by("position").to_pylist()


@pytest.fixture(scope="session")
def results(study_directory) -> StudySummary:
    return load_summary(study_directory)


@pytest.fixture(scope="session")
def report(results) -> Report:
    return render(results)


@pytest.fixture(scope="session")
def comparisons(study_directory) -> list[dict]:
    """The columns of each comparison and of its group."""
    rows = stored_rows(study_directory, read_manifest(study_directory))
    return [{**row["groups"], **each} for row in rows for each in row["comparisons"]]
