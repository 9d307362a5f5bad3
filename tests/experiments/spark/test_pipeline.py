import json

import pyarrow.dataset
import pytest

from experiments.families import Case, cases_of, imported_cases
from experiments.report.load import load_tables
from experiments.spark.pipeline import sweep, write_tables
from experiments.spark.tables import TABLES, record_row
from experiments.study import study

pytestmark = pytest.mark.spark

ASSIGNORS = ("range", "roundrobin")
GOOD = json.dumps({"id": "mine", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]})
CASES = [
    *imported_cases([GOOD, "{}"], assignors=ASSIGNORS),
    *cases_of(["named", "equal-join", "mixed-churn"], seeds=6, assignors=ASSIGNORS),
    Case(family="no-such-family", seed=0, assignors=ASSIGNORS),
]


def timeless(value):
    """Leave out what no two runs share."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key != "seconds"}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def by_case(rows):
    return sorted((timeless(row) for row in rows), key=lambda row: row["groups"][0]["case"])


@pytest.fixture(scope="module")
def expected():
    return by_case(record_row(study(case)) for case in CASES)


@pytest.mark.parametrize("tasks", [1, 5])
def test_the_sweep_returns_what_study_returns_over_any_number_of_tasks(spark, expected, tasks):
    rows = sweep(spark, CASES, tasks=tasks).toArrow().to_pylist()
    assert by_case(rows) == expected


def test_tables_are_written_whole_and_again_over_an_earlier_run(spark, expected, tmp_path):
    def manifest(rows):
        return {"rows": rows}

    (tmp_path / "mine.txt").write_text("not a table")
    write_tables(spark, CASES[:3], tmp_path, manifest=manifest)
    counts = write_tables(spark, CASES, tmp_path, manifest=manifest)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*TABLES, "manifest.json", "mine.txt"]
    )
    assert json.loads((tmp_path / "manifest.json").read_text()) == {"rows": counts}
    for name, schema in TABLES.items():
        table = pyarrow.dataset.dataset(tmp_path / name, exclude_invalid_files=True).to_table()
        assert table.schema.names == schema.names
        assert table.schema.types == schema.types
        rows = [row for record in expected for row in record[name]]
        assert timeless(table.to_pylist()) == rows
        assert counts[name] == len(rows)
    assert len(load_tables(tmp_path).groups) == len(CASES)


def test_a_bad_group_gives_a_row_that_says_so(expected):
    groups = {row["groups"][0]["case"]: row["groups"][0] for row in expected}
    assert "missing key 'topics'" in groups["imported/1"]["error"]
    assert "no family 'no-such-family'" in groups["no-such-family/0"]["error"]
    assert groups["imported/0"]["error"] is None
