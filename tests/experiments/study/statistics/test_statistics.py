import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from kassay.experiments.study.statistics.paired_comparison import (
    compare_pairs,
    mcnemar,
    mean_interval,
)
from kassay.experiments.study.statistics.parameter_effects import (
    effects,
    levels,
    rank_correlation,
    within_families,
)
from kassay.experiments.study.statistics.performance_profiles import (
    RATIOS,
    distribution,
    profile,
)
from kassay.experiments.study.statistics.rank_stability import agreement, mean_gaps
from kassay.reference.model.metrics import MEASURES

PAIRS = pd.DataFrame(
    [
        ("sticky", "uniform", True, True, 0, 1),
        ("sticky", "uniform", True, False, -2, 1),
        ("sticky", "uniform", False, True, 3, 1),
        ("sticky", "uniform", False, True, None, 1),
        ("range", "uniform", False, True, -1, 9),
    ],
    columns=["before", "after", "least_before", "least_after", "difference", "groups"],
).astype({"difference": "Int64"})


def test_groups_are_counted_by_the_results_of_both_assignors():
    found = compare_pairs(PAIRS, "sticky", "uniform")
    assert (found.both, found.only_before, found.only_after, found.neither) == (1, 1, 2, 0)
    assert found.groups == 4


def test_moves_are_compared_if_both_are_known():
    found = compare_pairs(PAIRS, "sticky", "uniform")
    assert (found.moves_known, found.fewer, found.same, found.more) == (3, 1, 1, 1)
    assert found.mean_difference == pytest.approx(1 / 3)


def test_assignors_without_common_groups_have_no_differences():
    found = compare_pairs(PAIRS, "sticky", "range")
    assert (found.groups, found.p_value, found.mean_difference, found.interval) == (
        0,
        None,
        None,
        None,
    )


def test_mcnemar_is_twice_the_binomial_tail():
    assert mcnemar(1, 9) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(0, 0) is None


def test_the_bootstrap_interval_of_many_values_is_the_normal_interval():
    values = np.random.default_rng(1).integers(0, 7, 20_000)
    distinct, counts = np.unique(values, return_counts=True)
    low, high = mean_interval(distinct, counts, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=half / 10)
    assert high == pytest.approx(values.mean() + half, abs=half / 10)
    assert mean_interval(distinct, counts, seed=0) == (low, high)


def test_a_profile_has_the_share_of_groups_within_each_ratio():
    counts = {f"within_{place}": [place, 2] for place in range(len(RATIOS))}
    rows = pd.DataFrame(
        {"measure": "makespan", "assignor": ["a", "b"], "groups": [20, 4], **counts}
    )
    found = profile(rows, "makespan", assignors=["a", "b", "absent"])
    assert found.index.tolist() == list(RATIOS)
    assert found["a"].tolist() == [place / 20 for place in range(len(RATIOS))]
    assert set(found["b"]) == {0.5}
    assert found["absent"].isna().all()


def test_a_distribution_ends_at_one():
    rows = pd.DataFrame({"gap": "gap", "assignor": "a", "value": [3, 0], "groups": [1, 2]})
    found = distribution(rows, "gap", assignors=["a", "absent"])
    assert found["gap"].tolist() == [0, 3]
    assert found["share"].tolist() == pytest.approx([2 / 3, 1])


def test_mean_gaps_are_sums_divided_by_groups():
    sums = {f"{name}_gap": [4, 10] for name in MEASURES}
    rows = pd.DataFrame({"assignor": ["b", "a"], "groups": [2, 2], **sums})
    found = mean_gaps(rows, assignors=["a", "b"])
    assert found["makespan"].tolist() == [5, 2]
    assert agreement(found).loc["spread", "makespan"] == 1


def test_a_measure_with_equal_ranks_has_no_rank_agreement():
    found = agreement(pd.DataFrame({"one": [1, 1], "two": [1, 2]}))
    assert found["one"].isna().all()
    assert found.loc["two", "two"] == 1


def counts(parameter, values, *, missed, groups=1, known=0, wasteful=0):
    rows = {"family": "demo", "assignor": "range", "parameter": parameter, "value": values}
    return pd.DataFrame(
        {**rows, "groups": groups, "missed": missed, "known": known, "wasteful": wasteful}
    )


def test_rank_correlations_of_counts_are_those_of_the_groups():
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = rng.integers(0, 6, 80)
        outcome = rng.random(80) < 0.2 + 0.1 * values
        table = pd.DataFrame({"value": values, "outcome": outcome}).groupby("value")["outcome"]
        found = rank_correlation(
            pd.Series(table.sum().index),
            table.count().reset_index(drop=True),
            table.sum().reset_index(drop=True),
        )
        assert found == pytest.approx(tuple(spearmanr(values, outcome)))


def test_a_constant_parameter_has_no_effect():
    rows = pd.concat(
        [
            counts("all members", [1.0, 2.0, 3.0, 4.0], missed=[0, 0, 1, 1]),
            counts("all partitions", [7.0], missed=2, groups=4),
        ]
    )
    outcomes = pd.DataFrame({"assignor": ["range"], "mixed": [False], "groups": [4], "missed": [2]})
    found = effects(rows, outcomes, assignors=["range"])
    assert np.isnan(found.loc["range", "partitions"])
    assert np.isnan(found.loc["range", "mixed"])
    assert found.loc["range", "members"] == pytest.approx(0.894, abs=1e-3)


OUTCOMES = pd.DataFrame(
    {"family": ["mixed-join", "equal-join"], "assignor": "range", "mixed": [True, False]}
).assign(groups=[4, 6], missed=[3, 0], known=[2, 0], wasteful=[1, 0])


def test_parameters_of_families_have_levels():
    families = [{"name": "mixed-join", "event": "join"}]
    empty = counts("members", [], missed=[])
    found = levels(empty, OUTCOMES, families=families, assignors=["range"])
    columns = ["parameter", "level", "outcome", "count", "groups"]
    assert found[columns].to_numpy().tolist() == [
        ["event", "join", "missed", 3, 4],
        ["event", "join", "wasteful", 1, 2],
        ["mixed", "no", "missed", 0, 6],
        ["mixed", "yes", "missed", 3, 4],
        ["mixed", "yes", "wasteful", 1, 2],
    ]


def test_levels_of_counts_are_octaves_and_levels_of_shares_are_quarters():
    rows = pd.concat(
        [
            counts("members", [2.0, 3.0, 9.0], missed=[0, 1, 1]),
            counts("owned", [0.0, 0.25, 0.3], missed=[1, 1, 0]),
        ]
    )
    found = levels(rows, OUTCOMES.iloc[:0], assignors=["range"])
    assert found[["level", "count", "groups"]].to_numpy().tolist() == [
        ["2–3", 1, 2],
        ["8–15", 1, 1],
        ["0 %", 1, 1],
        ["0–25 %", 1, 1],
        ["25–50 %", 0, 1],
    ]


def test_parameters_are_correlated_with_outcomes_within_a_family():
    rows = counts("members", [2.0, 3.0, 4.0, 5.0], missed=[0, 0, 1, 1])
    found = within_families(rows, assignors=["range"])
    assert found[["family", "parameter", "outcome"]].to_numpy().tolist() == [
        ["demo", "members", "missed"]
    ]
    assert found["rho"].tolist() == pytest.approx([0.894], abs=1e-3)
