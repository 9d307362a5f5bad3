from kassay.experiments.study.case import batches_of, cases_of, tasks_of

CASES = list(cases_of(["mixed-join", "mixed-churn"], seeds=40, assignors=["range", "sticky"]))


def test_batches_contain_every_case_once_and_have_nearly_equal_sizes():
    batches = batches_of(CASES, wave=7)
    assert sorted(c.name for batch in batches for c in batch) == sorted(c.name for c in CASES)
    assert len({len(batch) for batch in batches}) <= 2
    assert max(map(len, batches)) <= 7


def test_without_cases_there_are_no_batches_and_no_tasks():
    assert batches_of([]) == []
    assert tasks_of([]) == []


def test_every_case_of_a_batch_is_in_one_task():
    for tasks in (None, 1, 3, 1000):
        placed = [batched for task in tasks_of(CASES, tasks=tasks) for batched in task]
        assert sorted(batched.place for batched in placed) == list(range(len(CASES)))
        assert all(CASES[batched.place] == batched.case for batched in placed)


def test_tasks_have_nearly_equal_sizes_and_mix_the_families():
    tasks = tasks_of(CASES)
    assert [len(task) for task in tasks] == [20, 20, 20]
    assert all(len({batched.case.family for batched in task}) == 2 for task in tasks)
