import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kassay.experiments.compare import LIMITS
from kassay.experiments.report.table_reader import Tables, load_tables
from kassay.experiments.spark.study_schemas import TABLES, record_row
from kassay.experiments.study.case import Case, cases_of
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.manifest import configuration, manifest

ASSIGNORS = ("range", "roundrobin")
FAMILIES = ("named", "equal-join", "mixed-fresh", "mixed-join", "mixed-churn")


@pytest.fixture(scope="session")
def study_directory(tmp_path_factory) -> Path:
    """Tables of a study, written without Spark."""
    cases = [
        *cases_of(FAMILIES, seeds=20, assignors=ASSIGNORS),
        Case(family="no-such-family", seed=0, assignors=ASSIGNORS),
    ]
    records = [record_row(evaluate_case(case)) for case in cases]
    directory = tmp_path_factory.mktemp("study")
    rows = {}
    for name, schema in TABLES.items():
        table = pa.Table.from_pylist([row for r in records for row in r[name]], schema=schema)
        (directory / name).mkdir()
        pyarrow.parquet.write_table(table, directory / name / "part-0.parquet")
        rows[name] = len(table)
    described = configuration(
        cases, families=FAMILIES, seeds=20, first_seed=0, assignors=ASSIGNORS, limits=LIMITS
    )
    document = manifest(described, rows=rows, run={"seconds": 1.0})
    (directory / "manifest.json").write_text(json.dumps(document))
    return directory


@pytest.fixture(scope="session")
def tables(study_directory) -> Tables:
    return load_tables(study_directory)
