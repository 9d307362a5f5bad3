import gc
import json
import shutil
from functools import partial
from types import SimpleNamespace

import pyarrow.dataset
import pytest

from kassay.experiments.compare import CaseLimits
from kassay.experiments.report.table_reader import load_tables
from kassay.experiments.spark import study_pipeline as pipeline
from kassay.experiments.spark.code_distribution import code_identity
from kassay.experiments.spark.committed_batches import directory_lock
from kassay.experiments.spark.study_pipeline import evaluate_cases, write_study
from kassay.experiments.spark.table_schemas import PLACE, TABLES, record_row
from kassay.experiments.study.case import Case, cases_of, imported_cases
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.reference.model.errors import InputError
from tests.experiments.spark import faults

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
        return {key: timeless(item) for key, item in value.items() if key not in ("seconds", PLACE)}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def by_case(rows):
    return sorted((timeless(row) for row in rows), key=lambda row: row["groups"][0]["case"])


@pytest.fixture(scope="module")
def expected():
    return by_case(record_row(evaluate_case(case)) for case in CASES)


@pytest.mark.parametrize("tasks", [1, 5])
def test_the_sweep_returns_what_study_returns_over_any_number_of_tasks(spark, expected, tasks):
    rows = evaluate_cases(spark, CASES, tasks=tasks).to_pylist()
    assert by_case(rows) == expected


def is_collected(thing):
    return any(thing is tracked for tracked in gc.get_objects())


def test_what_modules_hold_is_kept_from_the_collector_once_they_are_imported(monkeypatch):
    modules = {"first": None}
    monkeypatch.setattr(pipeline, "sys", SimpleNamespace(modules=modules))
    monkeypatch.setitem(pipeline._spared, "modules", 0)
    try:
        older = ["what the first module holds"]
        pipeline._spare_collector()
        assert not is_collected(older)
        newer = ["what a task made, or the second module holds"]
        pipeline._spare_collector()
        assert is_collected(newer)
        modules["second"] = None
        pipeline._spare_collector()
        assert not is_collected(newer)
    finally:
        gc.unfreeze()


def test_tables_are_written_whole_and_again_over_another_study(spark, expected, tmp_path):
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
        found = sorted(timeless(table.to_pylist()), key=lambda row: row["case"])
        assert found == rows
        assert counts[name] == len(rows)
    assert len(load_tables(tmp_path).groups) == len(CASES)


def test_what_is_done_is_not_done_again_and_the_tables_are_the_same_to_the_byte(spark, tmp_path):
    cases = CASES[2:12]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    write_study(spark, cases, whole, manifest=dict, wave=3)
    with pytest.raises(InterruptedStudyError):
        write_study(spark, cases, broken, manifest=interrupt, wave=3)
    assert not (broken / "manifest.json").exists()
    shutil.rmtree(broken / ".parts" / "wave-00002")
    write_study(spark, cases, broken, manifest=dict, wave=3)
    assert contents(broken) == contents(whole)
    kept = {path: path.stat().st_mtime_ns for path in broken.rglob("*.parquet")}
    write_study(spark, cases, broken, manifest=interrupt, wave=3)
    assert {path: path.stat().st_mtime_ns for path in broken.rglob("*.parquet")} == kept


def test_two_runs_do_not_share_a_directory(spark, tmp_path):
    with directory_lock(tmp_path), pytest.raises(InputError, match="another study is at work"):
        write_study(spark, CASES, tmp_path, manifest=dict)


def test_groups_that_take_their_process_down_are_rows_and_no_other_is_lost(spark, expected):
    cases = CASES[2:10]
    bad = {cases[1].name: "abort", cases[3].name: "segfault", cases[6].name: "eat"}
    judge = partial(faults.judge, bad=bad)
    rows = evaluate_cases(spark, cases, tasks=2, limits=CaseLimits(memory=8192), judge=judge)
    found = {row["groups"][0]["case"]: row for row in rows.to_pylist()}
    assert len(found) == len(cases)
    errors = {fault: found.pop(name)["groups"][0]["error"] for name, fault in bad.items()}
    died = "the process that studied this group died of"
    assert errors["abort"] == f"{died} SIGABRT"
    assert errors["segfault"] == f"{died} SIGSEGV"
    assert errors["eat"].startswith("MemoryError: Unable to allocate")
    assert by_case(found.values()) == [r for r in expected if r["groups"][0]["case"] in found]


@pytest.mark.slow
def test_a_group_that_hangs_in_native_code_is_ended(spark):
    cases = CASES[2:5]
    judge = partial(faults.judge, bad={cases[1].name: "hang"})
    rows = evaluate_cases(spark, cases, tasks=1, limits=CaseLimits(group=8.0), judge=judge)
    errors = {row["groups"][0]["case"]: row["groups"][0]["error"] for row in rows.to_pylist()}
    assert errors == {case.name: None for case in cases} | {cases[1].name: "took more than 8 s"}


def test_workers_that_run_other_code_are_refused(spark, tmp_path, monkeypatch):
    other = (("kassay", "0123"), *code_identity()[1:])
    monkeypatch.setattr("kassay.experiments.spark.study_pipeline.code_identity", lambda: other)
    with pytest.raises(InputError, match=r"has kassay .*, the driver 0123"):
        write_study(spark, CASES[:1], tmp_path, manifest=dict)


class InterruptedStudyError(Exception):
    pass


def interrupt(_):
    raise InterruptedStudyError


def contents(directory):
    """All tables but the timings, file by file."""
    return {
        path.relative_to(directory): path.read_bytes()
        for name in TABLES
        if name != "timings"
        for path in sorted((directory / name).iterdir())
    }


def test_a_bad_group_gives_a_row_that_says_so(expected):
    groups = {row["groups"][0]["case"]: row["groups"][0] for row in expected}
    assert "missing key 'topics'" in groups["imported/1"]["error"]
    assert "no family 'no-such-family'" in groups["no-such-family/0"]["error"]
    assert groups["imported/0"]["error"] is None
