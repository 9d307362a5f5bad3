import json
import shutil
from functools import partial

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.spark.session import code_identity
from kassay.experiments.spark.study_pipeline import evaluate_cases, write_study
from kassay.experiments.study.cases import (
    Batch,
    Case,
    JoinedCases,
    case_index,
    cases_of,
    document_id,
    imported_cases,
)
from kassay.experiments.study.configuration import StudySettings
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.output_reader import load_summary, read_manifest
from kassay.experiments.study.schemas import CASES as CASE_SCHEMA
from kassay.experiments.study.schemas import case_row
from tests.experiments.conftest import stored_rows
from tests.experiments.spark import crashing_evaluations as faults

pytestmark = pytest.mark.spark

ASSIGNORS = ("range", "roundrobin")
VALID = json.dumps({"id": "mine", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]})
CASES = JoinedCases(
    (
        imported_cases([VALID, "{}"], assignors=ASSIGNORS),
        cases_of(["named", "equal-join", "mixed-churn"], seeds=6, assignors=ASSIGNORS),
        cases_of(["trajectories"], seeds=1, assignors=ASSIGNORS, first_seed=2),
        (Case(family="no-such-family", seed=0, assignors=ASSIGNORS),),
    )
)
ALL = Batch(0, 0, len(CASES))


def without_timings(rows):
    kept = [{name: row[name] for name in row if name != "timings"} for row in rows]
    return sorted(kept, key=lambda row: row["position"])


@pytest.fixture(scope="module")
def expected():
    total = len(CASES)
    records = (evaluate_case(CASES[case_index(position, total)]) for position in range(total))
    rows = [case_row(record, position=p, study="") for p, record in enumerate(records)]
    return without_timings(pa.Table.from_pylist(rows, schema=CASE_SCHEMA).to_pylist())


@pytest.mark.parametrize("tasks", [1, 5])
def test_the_rows_do_not_depend_on_the_number_of_tasks(spark, expected, tasks):
    rows = evaluate_cases(spark, CASES, ALL, tasks=tasks).toArrow().to_pylist()
    assert without_timings(rows) == expected


def test_a_study_stores_each_case_once(spark, expected, tmp_path):
    write_study(
        spark,
        CASES,
        str(tmp_path),
        manifest=lambda rows: {"rows": rows},
        settings=StudySettings(batch_cases=12),
    )
    written = read_manifest(tmp_path)
    rows = stored_rows(tmp_path, written)
    assert {row.pop("study") for row in rows} == {written["digest"]}
    assert rows == [{k: v for k, v in row.items() if k != "study"} for row in expected]
    assert written["rows"]["groups"] == len(CASES)
    assert written["rows"]["comparisons"] == sum(len(row["comparisons"]) for row in expected)
    summary = load_summary(tmp_path)
    assert summary.families["groups"].sum() == len(CASES)
    assert set(summary.trajectories["assignor"]) == {*ASSIGNORS, "optimum"}
    rebalances = [row for case in expected for row in case["rebalances"] if row["rebalance"]]
    for table in (summary.trajectories, summary.events):
        assert table["rebalances"].sum() == len(rebalances)
        assert table["moves"].sum() == sum(row["moves"] for row in rebalances)
        assert table["unnecessary_moves"].sum() == sum(
            row["moves"] - row["fewest_moves_within"]
            for row in rebalances
            if row["fewest_moves_within"] is not None
        )


@pytest.mark.long
def test_only_missing_batches_are_evaluated_again(spark, tmp_path):
    cases = cases_of(["equal-join"], seeds=6, assignors=ASSIGNORS)
    write_study(spark, cases, str(tmp_path), manifest=dict, settings=StudySettings(batch_cases=2))
    before = stored_rows(tmp_path, read_manifest(tmp_path))
    files = set(tmp_path.rglob("cases/**/*.parquet"))
    lost = next(path for path in files if "batch=2" in str(path))
    shutil.rmtree(lost.parent)
    bad = {case.name: "abort" for case in cases if case.seed not in _seeds_of(Batch(2, 4, 6), 6)}
    evaluator = partial(faults.evaluate_with_crashes, bad=bad)
    write_study(
        spark,
        cases,
        str(tmp_path),
        manifest=dict,
        settings=StudySettings(batch_cases=2),
        evaluator=evaluator,
    )
    assert stored_rows(tmp_path, read_manifest(tmp_path)) == before
    new = set(tmp_path.rglob("cases/**/*.parquet")) - files
    assert ["batch=2" in str(path) for path in new] == [True]


def _seeds_of(batch, total):
    return {case_index(position, total) for position in range(batch.first, batch.end)}


@pytest.mark.long
def test_crashes_of_the_evaluating_process_become_rows(spark, expected):
    by_name = {row["groups"]["case"]: row for row in expected}
    names = list(by_name)[2:10]
    bad = {names[1]: "abort", names[3]: "segfault", names[6]: "exhaust_memory"}
    cases = tuple(case for case in CASES if case.name in names)
    evaluator = partial(faults.evaluate_with_crashes, bad=bad)
    frame = evaluate_cases(
        spark,
        cases,
        Batch(0, 0, 8),
        tasks=2,
        settings=StudySettings(limits=CaseLimits(memory=8192)),
        evaluator=evaluator,
    )
    found = {row["groups"]["case"]: row for row in frame.toArrow().to_pylist()}
    assert len(found) == len(names)
    errors = {fault: found.pop(name)["groups"]["error"] for name, fault in bad.items()}
    died = "the process that evaluated this group was killed by"
    assert errors["abort"] == f"{died} SIGABRT"
    assert errors["segfault"] == f"{died} SIGSEGV"
    assert errors["exhaust_memory"].startswith("MemoryError: Unable to allocate")
    for name, row in found.items():
        assert row["comparisons"] == by_name[name]["comparisons"]


@pytest.mark.long
def test_the_time_limit_applies_to_native_code(spark):
    cases = tuple(CASES)[2:5]
    names = [case.name for case in cases]
    evaluator = partial(faults.evaluate_with_crashes, bad={names[1]: "hang"})
    settings = StudySettings(limits=CaseLimits(group=8.0))
    frame = evaluate_cases(
        spark, cases, Batch(0, 0, 3), tasks=1, settings=settings, evaluator=evaluator
    )
    errors = {row["groups"]["case"]: row["groups"]["error"] for row in frame.collect()}
    assert errors == dict.fromkeys(names) | {names[1]: "the evaluation took more than 8 s"}


def test_workers_with_another_version_are_rejected(spark, tmp_path, monkeypatch):
    other = (("kassay", "0123"), *code_identity()[1:])
    monkeypatch.setattr("kassay.experiments.spark.session.code_identity", lambda: other)
    with pytest.raises(
        PySparkException, match=r"has kassay .*, the driver has 0123|the driver 0123"
    ):
        write_study(spark, tuple(CASES)[2:3], str(tmp_path), manifest=dict)


def test_invalid_groups_become_rows_with_an_error(expected):
    groups = {row["groups"]["case"]: row["groups"] for row in expected}
    assert "missing key 'topics'" in groups[f"imported/{document_id('{}')}"]["error"]
    assert "unknown family 'no-such-family'" in groups["no-such-family/0"]["error"]
    assert groups[f"imported/{document_id(VALID)}"]["error"] is None
