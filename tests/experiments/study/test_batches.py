from kassay.experiments.study.batches import batches_of, expected_seconds, tasks_of
from kassay.experiments.study.case import Case, cases_of
from kassay.experiments.study.families.registry import FAMILIES

CASES = list(cases_of(["mixed-join", "mixed-churn"], seeds=40, assignors=["range", "sticky"]))


def test_waves_hold_every_case_once_and_differ_by_one_case_at_most():
    waves = batches_of(CASES, wave=7)
    assert sorted(c.name for w in waves for c in w) == sorted(c.name for c in CASES)
    assert len({len(wave) for wave in waves}) <= 2
    assert max(map(len, waves)) <= 7


def test_no_cases_are_no_waves_and_no_tasks():
    assert batches_of([]) == []
    assert tasks_of([]) == []


def test_tasks_hold_every_place_once_however_many_there_are():
    for tasks in (None, 1, 3, 1000):
        placed = [here for task in tasks_of(CASES, tasks=tasks) for here in task]
        assert sorted(here.place for here in placed) == list(range(len(CASES)))
        assert all(CASES[here.place] == here.case for here in placed)


def test_costly_groups_come_first_and_alone():
    heavy = Case(family="jmh", seed=FAMILIES["jmh"].size - 1, assignors=("range",) * 9)
    assert expected_seconds(heavy) > 1
    tasks = tasks_of([*CASES, heavy])
    assert [here.case for here in tasks[0]] == [heavy]


def test_a_task_lasts_about_as_long_as_asked_and_the_last_ones_less():
    tasks = tasks_of(CASES * 20, seconds=0.1)
    costs = [sum(expected_seconds(here.case) for here in task) for task in tasks]
    dearest = max(map(expected_seconds, CASES))
    assert all(0.01 <= cost < 0.1 + dearest for cost in costs[:-1])
    assert costs[0] >= 0.1
    assert costs[-1] < costs[0] / 2
