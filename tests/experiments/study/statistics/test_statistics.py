import numpy as np
import pandas as pd
import pytest

from kassay.experiments.study.statistics.paired_comparison import (
    compare_pairs,
    mcnemar,
    mean_interval,
)
from kassay.experiments.study.statistics.parameter_effects import (
    effects,
    levels,
    with_parameters,
    within_families,
)
from kassay.experiments.study.statistics.performance_profiles import distribution, profile
from kassay.experiments.study.statistics.rank_stability import agreement, mean_gaps
from kassay.reference.model.metrics import MEASURES


def comparisons(assignor: str, least: list[bool | None], moves: list[int | None]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "case": [f"g{place}" for place in range(len(least))],
            "assignor": assignor,
            "proven": pd.array([True] * len(least), dtype="boolean"),
            "least_imbalance": pd.array(least, dtype="boolean"),
            "unnecessary_moves": pd.array(moves, dtype="Int64"),
            "owned": pd.array([1] * len(least), dtype="Int64"),
        }
    )


ROWS = pd.concat(
    [
        comparisons("sticky", [True, True, False, None], [0, 2, 1, None]),
        comparisons("uniform", [True, False, True, True], [0, 0, 4, 0]),
    ]
)


def test_a_missing_result_counts_as_missing_the_minimum():
    found = compare_pairs(ROWS, "sticky", "uniform")
    assert (found.both, found.only_before, found.only_after, found.neither) == (1, 1, 2, 0)
    assert found.groups == 4


def test_moves_are_compared_if_both_are_known():
    found = compare_pairs(ROWS, "sticky", "uniform")
    assert (found.moves_known, found.fewer, found.same, found.more) == (3, 1, 1, 1)
    assert found.mean_difference == pytest.approx(1 / 3)


def test_swapping_the_assignors_swaps_the_numbers():
    forward, backward = (
        compare_pairs(ROWS, "sticky", "uniform"),
        compare_pairs(ROWS, "uniform", "sticky"),
    )
    assert (forward.only_before, forward.fewer) == (backward.only_after, backward.more)
    assert forward.mean_difference == -backward.mean_difference
    assert forward.p_value == backward.p_value


def test_assignors_without_common_groups_have_no_differences():
    found = compare_pairs(ROWS[ROWS["assignor"] == "sticky"], "sticky", "uniform")
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
    low, high = mean_interval(values, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=half / 10)
    assert high == pytest.approx(values.mean() + half, abs=half / 10)
    assert mean_interval(values, seed=0) == (low, high)


def test_an_assignor_without_a_result_has_no_ratio_to_the_optimum():
    rows = pd.DataFrame(
        {
            "case": ["x", "y", "x", "y"],
            "assignor": ["a", "a", "b", "b"],
            "proven": True,
            "makespan_greedy": pd.array([1, None, 1, 3], dtype="Int64"),
            "makespan_optimum": pd.array([1, None, 1, 3], dtype="Int64"),
        }
    )
    found = profile(rows, "makespan", assignors=["a", "b"], ratios=[1, 1000])
    assert found["a"].tolist() == [0.5, 0.5]
    assert found["b"].tolist() == [1, 1]


def test_a_distribution_ends_at_one():
    rows = pd.DataFrame({"assignor": "a", "gap": pd.array([3, 0, 0, None], dtype="Int64")})
    found = distribution(rows, "gap", assignors=["a", "absent"])
    assert found["gap"].tolist() == [0, 3]
    assert found["share"].tolist() == pytest.approx([2 / 3, 1])


def test_mean_gaps_use_groups_with_results_of_all_assignors():
    gaps = {f"{name}_gap": pd.array([2, 10, 4], dtype="Int64") for name in MEASURES}
    rows = pd.DataFrame({"case": ["x", "y", "x"], "assignor": ["a", "a", "b"], **gaps})
    found = mean_gaps(rows, assignors=["a", "b"])
    assert found["makespan"].tolist() == [2, 4]
    assert agreement(found).loc["spread", "makespan"] == 1


def test_a_measure_with_equal_ranks_has_no_rank_agreement():
    found = agreement(pd.DataFrame({"one": [1, 1], "two": [1, 2]}))
    assert found["one"].isna().all()
    assert found.loc["two", "two"] == 1


def test_a_constant_parameter_has_no_effect():
    rows = ROWS.assign(members=[1, 2, 3, 4] * 2, partitions=7, mixed=False)
    found = effects(rows, assignors=["sticky"])
    assert np.isnan(found.loc["sticky", "partitions"])
    assert found.loc["sticky", "members"] > 0


def test_groups_have_parameters_and_outcomes():
    row = {"family": "mixed-join", "participants": 4, "consumed": 2}
    row["assignor"] = "range"
    row |= {"subscriptions": 6, "partitions": 10, "owned": 5, "mixed": True}
    row |= {"proven": True, "least_imbalance": False, "unnecessary_moves": 0}
    rows = with_parameters(pd.DataFrame([row]), [{"name": "mixed-join", "event": "join"}])
    found = rows[["overlap", "owned", "event", "missed", "wasteful"]]
    assert found.to_numpy().tolist() == [[0.75, 0.5, "join", 1, 0]]


def test_counts_are_grouped_by_powers_of_two():
    rows = pd.DataFrame(
        {"assignor": "range", "members": [2, 3, 9], "missed": [0, 1, 1], "wasteful": None}
    )
    found = levels(rows, assignors=["range"])
    expected = [["2–3", 1, 2], ["8–15", 1, 1]]
    assert found[["level", "count", "groups"]].to_numpy().tolist() == expected


def test_parameters_are_correlated_with_outcomes_within_a_family():
    rows = pd.DataFrame({"family": "demo", "members": [2, 3, 4, 5], "missed": [0, 0, 1, 1]})
    found = within_families(rows.assign(assignor="range", wasteful=None), assignors=["range"])
    assert found[["family", "parameter"]].to_numpy().tolist() == [["demo", "members"]]
    assert found["rho"].tolist() == pytest.approx([0.894], abs=1e-3)
