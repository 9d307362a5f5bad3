import pytest

from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.cases import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.families.all_families import FAMILIES

CASE = Case(family="mixed-join", seed=1, assignors=("range", "roundrobin"))


def fail(*_, **__):
    raise RuntimeError("injected failure")


def test_rows_of_different_tables_agree():
    record = evaluate_case(CASE)
    for assignment, comparison in zip(record.assignments, record.comparisons, strict=True):
        assert assignment.sum_of_squares == comparison.imbalance["sum_of_squares"].value
        assert assignment.moved == comparison.movement.value
        assert record.optimum.imbalance_value == comparison.imbalance["sum_of_squares"].optimum
        assert assignment.kept + assignment.moved == record.group.owned
        assert assignment.kept + assignment.moved + assignment.placed == record.group.partitions


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(
        "import kassay\n\ndef assign(group):\n    return kassay.assign(group, 'range')\n"
    )
    return f"own=python:{tmp_path}/own.py:assign"


def test_an_own_assignor_with_an_alias_is_compared_in_groups_with_racks(own):
    record = evaluate_case(Case(family="racks-equal", seed=0, assignors=(own, "range")))
    one, other = record.comparisons
    assert (one.assignor, one.ending, other.ending) == ("own", "ok", "ok")
    assert one.movement == other.movement


def test_the_first_run_of_an_assignor_is_timed_apart_also_if_it_made_the_past(own):
    points = FAMILIES["kafka-grid-small"].points
    stable = next(n for n, point in enumerate(points) if point.event == "stable")
    cases = [Case(family="kafka-grid-small", seed=stable, assignors=(own,), start=own)] * 2
    timings = [evaluate_case(case).timings for case in cases]
    first = [[row.is_first for row in rows if row.contestant == "own"] for rows in timings]
    assert first == [[True, False], [False]]


def test_a_group_that_cannot_be_built_has_only_a_group_row():
    record = evaluate_case(Case(family="nope", seed=0, assignors=("range",)))
    assert "unknown family 'nope'" in record.group.error
    assert (record.optimum, record.assignments, record.comparisons) == (None, (), ())


def test_a_broken_assignor_is_an_error_row_and_the_others_still_run(monkeypatch):
    monkeypatch.setattr(
        "kassay.experiments.implementations.run_assignor.run_until_stable",
        lambda group, name: fail() if name == "range" else run_until_stable(group, name),
    )
    record = evaluate_case(CASE)
    assert [row.ending for row in record.assignments] == ["error", "ok"]
    assert record.assignments[0].detail == "RuntimeError: injected failure"
    assert [row.ending for row in record.comparisons] == ["error", "ok"]


def test_a_broken_solver_is_an_error_row_without_gaps(monkeypatch):
    monkeypatch.setattr("kassay.experiments.study.evaluate_case.solve_optimum", fail)
    record = evaluate_case(CASE)
    assert (record.optimum.status, record.optimum.detail) == (
        "error",
        "RuntimeError: injected failure",
    )
    assert [row.proven for row in record.comparisons] == [None, None]
    assert [row.ending for row in record.assignments] == ["ok", "ok"]
