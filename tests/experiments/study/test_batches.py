import pytest

from kassay.experiments.study.cases import batches_of, case_index, cases_of


@pytest.mark.parametrize("total", [1, 2, 3, 12, 997, 1000, 2048])
def test_each_position_has_another_index(total):
    assert sorted(case_index(p, total) for p in range(total)) == list(range(total))


@pytest.mark.parametrize(("total", "largest"), [(0, 5), (1, 5), (12, 5), (999_999, 100_000)])
def test_batches_contain_every_position_once(total, largest):
    batches = list(batches_of(total, largest=largest))
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [batch.first for batch in batches] == [0, *(batch.end for batch in batches)][:-1]
    assert sum(batch.size for batch in batches) == total
    assert all(0 < batch.size <= largest for batch in batches)


def test_the_first_batch_is_small_and_mixes_the_families():
    families = ["equal-join", "mixed-join", "mixed-churn", "overlap-random"]
    cases = cases_of(families, seeds=200_000, assignors=["range", "sticky"])
    first, *others = batches_of(len(cases))
    assert first.size <= 1_000 < min(batch.size for batch in others)
    found = [cases[case_index(p, len(cases))].family for p in range(first.end)]
    shares = {name: found.count(name) for name in families}
    assert all(150 < shares[name] < 250 for name in families[:2])
    assert 350 < shares["mixed-churn"] < 450


def test_each_assignor_has_cases_of_its_own_history():
    cases = cases_of(["mixed-churn"], seeds=2, assignors=["range", "sticky"], first_seed=5)
    assert [case.name.removeprefix("mixed-churn/") for case in cases] == [
        *("5@range", "5@sticky", "6@range", "6@sticky")
    ]
