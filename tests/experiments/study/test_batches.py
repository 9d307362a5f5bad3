from kassay.experiments.study.batches import batches_of, expected_seconds, tasks_of
from kassay.experiments.study.case import Case, cases_of
from kassay.experiments.study.families.registry import FAMILIES

CASES = list(cases_of(["mixed-join", "mixed-churn"], seeds=40, assignors=["range", "sticky"]))


def test_batches_contain_every_case_once_and_have_nearly_equal_sizes():
    batches = batches_of(CASES, wave=7)
    assert sorted(c.name for batch in batches for c in batch) == sorted(c.name for c in CASES)
    assert len({len(batch) for batch in batches}) <= 2
    assert max(map(len, batches)) <= 7


def test_without_cases_there_are_no_batches_and_no_tasks():
    assert batches_of([]) == []
    assert tasks_of([]) == []


def test_tasks_contain_every_place_once():
    for tasks in (None, 1, 3, 1000):
        placed = [batched for task in tasks_of(CASES, tasks=tasks) for batched in task]
        assert sorted(batched.place for batched in placed) == list(range(len(CASES)))
        assert all(CASES[batched.place] == batched.case for batched in placed)


def test_an_expensive_case_is_the_first_task():
    heavy = Case(family="jmh", seed=FAMILIES["jmh"].size - 1, assignors=("range",) * 9)
    assert expected_seconds(heavy) > 1
    tasks = tasks_of([*CASES, heavy])
    assert [batched.case for batched in tasks[0]] == [heavy]


def test_tasks_have_the_requested_length_and_the_last_ones_are_shorter():
    tasks = tasks_of(CASES * 20, seconds=0.1)
    costs = [sum(expected_seconds(batched.case) for batched in task) for task in tasks]
    largest = max(map(expected_seconds, CASES))
    assert all(0.01 <= cost < 0.1 + largest for cost in costs[:-1])
    assert costs[0] >= 0.1
    assert costs[-1] < costs[0] / 2
