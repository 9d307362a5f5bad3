import numpy as np
import pandas as pd
import pytest

from kassay.experiments.study.statistics.marginal_effects import (
    MEMBERS,
    MIXED,
    NO_EVENT,
    PARTITIONS,
    marginal_effects,
)

MOVES = "unnecessary moves per rebalance"
KEYS = ["assignor", "stratum", "seed", "event", "mixed", "members", "partitions"]


def cells(rows):
    """Return cells of 100 groups each with a given number of unnecessary moves."""
    table = pd.DataFrame(rows, columns=[*KEYS, "unnecessary_moves"])
    return table.assign(answered=100, known=100)


def rate(stratum, event, mixed, members, partitions):
    """Return moves per group that double with the partitions and halve with the members."""
    base = {"one": 0.5, "two": 2.0}[stratum]
    factor = {"join": 1.0, "leave": 0.25, NO_EVENT: 1.0}[event]
    return base * factor * (3.0 if mixed else 1.0) * 2.0**partitions * 0.5**members


def grid(strata=("one", "two"), events=("join", "leave"), subscriptions=(False, True)):
    return [
        ("sticky", stratum, None, event, mixed, members, partitions)
        for stratum in strata
        for event in events
        for mixed in subscriptions
        for members in (1, 2, 3)
        for partitions in (2, 3)
    ]


def exact(keys):
    return cells([(*key, 100 * rate(*(key[1], *key[3:]))) for key in keys])


def test_effects_of_an_exact_model_equal_the_mean_changes_of_its_rates():
    keys = grid()
    found = marginal_effects(exact(keys), "sticky", MOVES)
    groups = [(key[1], *key[3:]) for key in keys]
    rates = np.array([rate(*group) for group in groups])
    effects = {effect.contrast: effect.value for effect in found.effects}
    assert found.mean == pytest.approx(rates.mean())
    assert (found.total, found.modelled) == (100 * len(keys), 100 * len(keys))
    assert effects[MEMBERS] == pytest.approx(-0.5 * rates.mean())
    assert effects[PARTITIONS] == pytest.approx(rates.mean())
    with_mixed = np.mean([rate(s, e, True, m, p) for s, e, _, m, p in groups])
    assert effects[MIXED] == pytest.approx(with_mixed * (1 - 1 / 3))
    joins = np.mean([rate(s, "join", x, m, p) for s, _, x, m, p in groups])
    assert effects["leave instead of join"] == pytest.approx(-0.75 * joins)


def test_strata_with_other_sizes_do_not_confound_an_effect():
    # The stratum with the higher rate has the larger groups, which hides the effect of members.
    keys = [k for k in grid(subscriptions=(True,)) if (k[1], k[5]) not in {("one", 3), ("two", 1)}]
    table = exact(keys)
    pooled = table.groupby("members")["unnecessary_moves"].mean()
    assert pooled[3] == pytest.approx(pooled[1])
    effects = {e.contrast: e.value for e in marginal_effects(table, "sticky", MOVES).effects}
    mean = table["unnecessary_moves"].sum() / table["known"].sum()
    assert effects[MEMBERS] == pytest.approx(-0.5 * mean)


def test_levels_without_the_outcome_are_not_in_the_model():
    table = exact(grid())
    table.loc[~table["mixed"], "unnecessary_moves"] = 0
    found = marginal_effects(table, "sticky", MOVES)
    assert (found.total, found.modelled) == (4800, 2400)
    assert MIXED not in {effect.contrast for effect in found.effects}
    nothing = marginal_effects(table.assign(unnecessary_moves=0), "sticky", MOVES)
    assert (nothing.modelled, nothing.effects) == (0, ())


def test_strata_without_events_are_in_no_contrast_of_events():
    keys = grid(strata=("one",)) + grid(strata=("two",), events=(NO_EVENT,))
    effects = marginal_effects(exact(keys), "sticky", MOVES).effects
    names = [effect.contrast for effect in effects]
    assert names == [MEMBERS, PARTITIONS, MIXED, "leave instead of join"]
    joins = [rate("one", "join", key[4], key[5], key[6]) for key in grid(strata=("one",))]
    assert effects[-1].value == pytest.approx(-0.75 * np.mean(joins))


def test_intervals_contain_the_effect_with_their_probability():
    rng = np.random.default_rng(5)
    keys = [(*key[:2], seed, *key[3:]) for key in grid(events=("join",)) for seed in range(8)]
    table = exact([(*key[:2], None, *key[3:]) for key in keys])
    table["seed"] = [key[2] for key in keys]
    expected = table["unnecessary_moves"].to_numpy(float) / 10
    covered = 0
    for _ in range(60):
        # Rebalances of one stream share a factor, so that they depend on each other.
        factors = rng.gamma(20, 1 / 20, (2, 8))
        place = (table["stratum"] == "two").to_numpy(int), table["seed"].to_numpy(int)
        drawn = table.assign(
            unnecessary_moves=rng.poisson(expected * factors[place]), known=10, answered=10
        )
        found = marginal_effects(drawn, "sticky", MOVES)
        effect = next(effect for effect in found.effects if effect.contrast == PARTITIONS)
        covered += effect.low <= expected.sum() / (10 * len(table)) <= effect.high
    assert covered >= 48


def test_a_single_stream_has_no_effects():
    table = exact(grid(strata=("one",), events=("join",))).assign(seed=7)
    found = marginal_effects(table, "sticky", MOVES)
    assert (found.modelled, found.effects) == (1200, ())
