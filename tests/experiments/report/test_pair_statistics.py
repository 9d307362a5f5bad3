import numpy as np
import pandas as pd
import pytest

from kassay.experiments.report.study_tables import compare_pairs, mean_interval

PAIRS = pd.DataFrame(
    [
        ("one", "sticky", "uniform", True, True, 0, 1),
        ("one", "sticky", "uniform", True, False, -2, 1),
        ("two", "sticky", "uniform", False, True, 3, 1),
        ("three", "sticky", "uniform", False, True, None, 1),
        ("three", "range", "uniform", False, True, -1, 9),
    ],
    columns=["family", "before", "after", "least_before", "least_after", "difference", "groups"],
).astype({"difference": "Int64"})


def test_groups_are_counted_by_the_results_of_both_assignors():
    found = compare_pairs(PAIRS, "sticky", "uniform")
    assert (found.both, found.only_before, found.only_after, found.neither) == (1, 1, 2, 0)
    assert found.groups == 4
    assert (found.families_better, found.families_worse) == (2, 1)


def test_moves_are_compared_if_both_are_known():
    found = compare_pairs(PAIRS, "sticky", "uniform")
    assert (found.moves_known, found.fewer, found.same, found.more) == (3, 1, 1, 1)
    assert found.mean_difference == pytest.approx(1 / 3)


def test_the_bootstrap_interval_of_many_values_is_the_normal_interval():
    values = np.random.default_rng(1).integers(0, 7, 20_000)
    distinct, counts = np.unique(values, return_counts=True)
    low, high = mean_interval(distinct, counts, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=half / 10)
    assert high == pytest.approx(values.mean() + half, abs=half / 10)
    assert mean_interval(distinct, counts, seed=0) == (low, high)
