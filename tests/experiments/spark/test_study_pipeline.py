import json
import shutil
from functools import partial

import pyarrow.dataset
import pytest

from kassay.experiments.compare import CaseLimits
from kassay.experiments.report.table_reader import load_tables
from kassay.experiments.spark.code_distribution import code_identity
from kassay.experiments.spark.output_directory import directory_lock
from kassay.experiments.spark.study_pipeline import evaluate_cases, write_study
from kassay.experiments.spark.study_schemas import PLACE, TABLES, record_row
from kassay.experiments.study.case import Case, cases_of, imported_cases
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.reference.model.errors import RunError
from tests.experiments.spark import crashing_evaluations
from tests.experiments.spark.conftest import table_files

pytestmark = pytest.mark.spark

ASSIGNORS = ("range", "roundrobin")
VALID = json.dumps({"id": "mine", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]})
CASES = [
    *imported_cases([VALID, "{}"], assignors=ASSIGNORS),
    *cases_of(["named", "equal-join", "mixed-churn"], seeds=6, assignors=ASSIGNORS),
    Case(family="no-such-family", seed=0, assignors=ASSIGNORS),
]


def comparable(value):
    """Remove values that differ between runs."""
    if isinstance(value, dict):
        return {
            key: comparable(item) for key, item in value.items() if key not in ("seconds", PLACE)
        }
    return [comparable(item) for item in value] if isinstance(value, list) else value


def by_case(rows):
    return sorted((comparable(row) for row in rows), key=lambda row: row["groups"][0]["case"])


@pytest.fixture(scope="module")
def expected():
    return by_case(record_row(evaluate_case(case)) for case in CASES)


@pytest.mark.parametrize("tasks", [1, 5])
def test_the_records_do_not_depend_on_the_number_of_tasks(spark, expected, tasks):
    rows = evaluate_cases(spark, CASES, tasks=tasks).to_pylist()
    assert by_case(rows) == expected


def test_the_tables_of_another_study_are_replaced(spark, expected, tmp_path):
    def manifest(rows):
        return {"rows": rows}

    (tmp_path / "mine.txt").write_text("not a table")
    write_study(spark, CASES[:3], tmp_path, manifest=manifest)
    counts = write_study(spark, CASES, tmp_path, manifest=manifest, wave=7)["rows"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*TABLES, ".lock", "manifest.json", "mine.txt"]
    )
    assert json.loads((tmp_path / "manifest.json").read_text())["rows"] == counts
    for name, schema in TABLES.items():
        table = pyarrow.dataset.dataset(tmp_path / name, exclude_invalid_files=True).to_table()
        assert table.schema.names == schema.names
        assert table.schema.types == schema.types
        rows = [row for record in expected for row in record[name]]
        found = sorted(comparable(table.to_pylist()), key=lambda row: row["case"])
        assert found == rows
        assert counts[name] == len(rows)
    assert len(load_tables(tmp_path).groups) == len(CASES)


def test_an_interrupted_study_resumes_with_identical_tables(spark, tmp_path):
    cases = CASES[2:12]
    complete, resumed = tmp_path / "complete", tmp_path / "resumed"
    write_study(spark, cases, complete, manifest=dict, wave=3)
    with pytest.raises(InterruptedStudyError):
        write_study(spark, cases, resumed, manifest=interrupt, wave=3)
    assert not (resumed / "manifest.json").exists()
    shutil.rmtree(resumed / ".parts" / "batch-00002")
    write_study(spark, cases, resumed, manifest=dict, wave=3)
    assert table_files(resumed) == table_files(complete)
    times = {path: path.stat().st_mtime_ns for path in resumed.rglob("*.parquet")}
    write_study(spark, cases, resumed, manifest=interrupt, wave=3)
    assert {path: path.stat().st_mtime_ns for path in resumed.rglob("*.parquet")} == times


def test_two_studies_cannot_use_one_directory(spark, tmp_path):
    with directory_lock(tmp_path), pytest.raises(RunError, match="another study is running"):
        write_study(spark, CASES, tmp_path, manifest=dict)


def test_crashes_of_the_evaluating_process_become_rows(spark, expected):
    cases = CASES[2:10]
    bad = {cases[1].name: "abort", cases[3].name: "segfault", cases[6].name: "exhaust_memory"}
    judge = partial(crashing_evaluations.evaluate_with_crashes, bad=bad)
    rows = evaluate_cases(spark, cases, tasks=2, limits=CaseLimits(memory=8192), judge=judge)
    found = {row["groups"][0]["case"]: row for row in rows.to_pylist()}
    assert len(found) == len(cases)
    errors = {fault: found.pop(name)["groups"][0]["error"] for name, fault in bad.items()}
    died = "the process that evaluated this group was killed by"
    assert errors["abort"] == f"{died} SIGABRT"
    assert errors["segfault"] == f"{died} SIGSEGV"
    assert errors["exhaust_memory"].startswith("MemoryError: Unable to allocate")
    assert by_case(found.values()) == [r for r in expected if r["groups"][0]["case"] in found]


@pytest.mark.slow
def test_the_time_limit_applies_to_native_code(spark):
    cases = CASES[2:5]
    judge = partial(crashing_evaluations.evaluate_with_crashes, bad={cases[1].name: "hang"})
    rows = evaluate_cases(spark, cases, tasks=1, limits=CaseLimits(group=8.0), judge=judge)
    errors = {row["groups"][0]["case"]: row["groups"][0]["error"] for row in rows.to_pylist()}
    assert errors == {case.name: None for case in cases} | {
        cases[1].name: "the evaluation took more than 8 s"
    }


def test_workers_with_another_version_are_rejected(spark, tmp_path, monkeypatch):
    other = (("kassay", "0123"), *code_identity()[1:])
    monkeypatch.setattr("kassay.experiments.spark.study_pipeline.code_identity", lambda: other)
    with pytest.raises(RunError, match=r"has kassay .*, the driver 0123"):
        write_study(spark, CASES[:1], tmp_path, manifest=dict)


class InterruptedStudyError(Exception):
    pass


def interrupt(_):
    raise InterruptedStudyError


def test_invalid_groups_become_rows_with_an_error(expected):
    groups = {row["groups"][0]["case"]: row["groups"][0] for row in expected}
    assert "missing key 'topics'" in groups["imported/1"]["error"]
    assert "unknown family 'no-such-family'" in groups["no-such-family/0"]["error"]
    assert groups["imported/0"]["error"] is None
