import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from kassay.experiments.study.statistics.random_effects import (
    FamilyEffect,
    combine,
    mean_effect,
    moment_effect,
    share_effect,
)

# Trials of the BCG vaccine: cases and others among the vaccinated, and in the control group.
BCG = """
4 119 11 128   6 300 29 274   3 228 11 209   62 13536 248 12619   33 5036 47 5761
180 1361 372 1079   8 2537 10 619   505 87886 499 87892   29 7470 45 7232
17 1699 65 1600   186 50448 141 27197   5 2493 3 2338   27 16886 29 17825
"""


def effects(values, variances, **changes):
    return [
        FamilyEffect(family=str(place), groups=10, value=value, variance=variance, **changes)
        for place, (value, variance) in enumerate(zip(values, variances, strict=True))
    ]


def test_a_meta_analysis_of_the_literature_is_reproduced():
    numbers = np.array(BCG.split(), dtype=float).reshape(-1, 4)
    case, other, control, rest = numbers.T
    ratios = np.log(case / (case + other) / (control / (control + rest)))
    variances = 1 / case - 1 / (case + other) + 1 / control - 1 / (control + rest)
    found = combine(effects(ratios, variances))
    # Viechtbauer, "Conducting meta-analyses in R with the metafor package", 2010: method DL.
    assert found.value == pytest.approx(-0.7141, abs=5e-5)
    assert found.tau**2 == pytest.approx(0.3088, abs=5e-5)
    assert found.i_squared == pytest.approx(0.9212, abs=5e-5)
    assert found.q == pytest.approx(152.233, abs=5e-4)
    assert (found.families, found.groups) == (13, 130)
    assert found.low < found.value - 2.17 * 0.1787 < found.value < found.high < 0


def test_equal_families_have_no_heterogeneity_and_the_weighted_mean():
    found = combine(effects([1.0, 1.1, 0.9], [0.5, 0.5, 1.0]))
    assert (found.tau, found.i_squared) == (0.0, 0.0)
    assert found.value == pytest.approx((2 * 1.0 + 2 * 1.1 + 0.9) / 5)
    # The interval is not narrower than that of the sampling errors.
    assert found.high - found.value == pytest.approx(4.3027 * math.sqrt(1 / 5), rel=1e-4)
    assert found.p_homogeneous > 0.9


def test_families_without_variance_are_left_out():
    assert combine(effects([1.0, 2.0, 3.0], [0.0, 0.0, 1.0])) is None
    assert combine(effects([1.0, 2.0, 3.0], [0.0, 1.0, 1.0])).families == 2
    assert combine(effects([1.0, 2.0], [1.0, 1.0])).predicted is None


def test_means_and_variances_equal_those_of_the_single_values():
    values = np.array([0, 0, 3, 1, 0, 7])
    counts = pd.Series(values).value_counts()
    for found in (mean_effect("one", counts), moment_effect("one", 6, 11, 59)):
        assert found.value == pytest.approx(values.mean())
        assert found.variance == pytest.approx(values.var(ddof=1) / len(values))
    assert mean_effect("one", pd.Series([1], index=[4])) is None


def test_intervals_of_shares_cover_the_share_with_their_probability():
    rng = np.random.default_rng(4)
    for share, groups in product((0.01, 0.1, 0.5), (400, 2000)):
        counts = rng.binomial(groups, share, 400)
        ends = [share_effect("one", int(count), groups).shown for count in counts]
        covered = sum(low <= 100 * share <= high for _, low, high in ends)
        assert 0.91 <= covered / 400 <= 0.99


def test_a_share_of_many_families_is_in_per_cent():
    found = combine([share_effect(str(count), count, 1000) for count in (90, 100, 110)])
    assert found.value == pytest.approx(10.0, abs=0.1)
    assert 0 < found.predicted[0] < found.low < 10 < found.high < found.predicted[1] < 100
