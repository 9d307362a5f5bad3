"""Random-effects estimates over the families of a study.

The families of a study are a choice, and their results differ more than the sampling of groups
explains. A random-effects estimate therefore has the family as random effect. Its interval
takes the differences between the families into account; the prediction interval is for one more
family.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from kassay.experiments.study.statistics.significance import UPPER_QUANTILE


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyEffect:
    """Estimate for one family, and the variance of the estimate.

    A share is on the arcsine scale, on which its variance does not depend on the share.
    """

    family: str
    groups: int
    value: float
    variance: float
    share: float | None = None  # the share itself, from 0 to 1

    @property
    def shown(self) -> tuple[float, float, float]:
        """Return the value and its 95 % interval, in per cent if it is a share."""
        radius = float(norm.ppf(UPPER_QUANTILE)) * math.sqrt(self.variance)
        ends = self.value - radius, self.value + radius
        if self.share is None:
            return self.value, *ends
        low, high = map(_percent, ends)
        return 100 * self.share, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomEffects:
    """Estimate over families, with the heterogeneity of the families.

    Parameters
    ----------
    families, groups
        Families with an estimate of positive variance, and their groups.
    value, low, high
        Mean over families and its 95 % interval, in the unit of the measure.
    predicted
        95 % prediction interval for another family; None with fewer than three families.
    tau
        Standard deviation between families, on the scale of the estimates.
    i_squared, q
        Share of the variance between the estimates that sampling does not explain, from 0 to 1,
        and Cochran's Q.
    p_value, p_homogeneous
        p-values of the hypotheses that the mean is 0, and that all families are equal.
    """

    families: int
    groups: int
    value: float
    low: float
    high: float
    predicted: tuple[float, float] | None
    tau: float
    i_squared: float
    q: float
    p_value: float
    p_homogeneous: float


def mean_effect(family: str, counts: pd.Series) -> FamilyEffect | None:
    """Return the mean of the values in the index with the given counts. None without values.

    Examples
    --------
    >>> mean_effect("one", pd.Series([3, 1], index=[0, 4])).shown[0]
    1.0
    """
    values = counts.index.to_numpy(float)
    numbers = counts.to_numpy(float)
    groups = int(numbers.sum())
    if groups < 2:
        return None
    total, squares = float(values @ numbers), float(values**2 @ numbers)
    return moment_effect(family, groups, total, squares)


def moment_effect(family: str, groups: int, total: float, squares: float) -> FamilyEffect:
    """Return the mean of at least two values, from their sum and the sum of their squares."""
    mean = total / groups
    variance = max(0.0, squares / groups - mean**2) / (groups - 1)
    return FamilyEffect(family=family, groups=groups, value=mean, variance=variance)


def share_effect(family: str, count: int, groups: int) -> FamilyEffect:
    """Return a share on the arcsine scale, by Anscombe's formula.

    Examples
    --------
    >>> [round(number, 1) for number in share_effect("one", 0, 30).shown]
    [0.0, 0.0, 8.1]
    """
    value = math.asin(math.sqrt((count + 0.375) / (groups + 0.75)))
    return FamilyEffect(
        family=family,
        groups=groups,
        value=value,
        variance=1 / (4 * groups + 2),
        share=count / groups,
    )


def combine(effects: Sequence[FamilyEffect]) -> RandomEffects | None:
    """Combine the estimates of families by the method of DerSimonian and Laird.

    The interval is that of Hartung and Knapp, with at least the width of the interval of
    DerSimonian and Laird with Student's distribution. Estimates with the variance 0 cannot be
    weighted and are left out. Return None if fewer than two estimates are left.

    References
    ----------
    DerSimonian, Laird. "Meta-analysis in clinical trials". Controlled Clinical Trials 7, 1986.
    Röver, Knapp, Friede. "Hartung-Knapp-Sidik-Jonkman approach and its modification for
    random-effects meta-analysis with few studies". BMC Medical Research Methodology 15, 2015.
    """
    from statsmodels.stats.meta_analysis import combine_effects  # noqa: PLC0415

    used = [effect for effect in effects if effect.variance > 0]
    count = len(used)
    if count < 2:
        return None
    values, variances = (
        np.array([getattr(effect, name) for effect in used]) for name in ("value", "variance")
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # of a negative tau squared
        found: Any = combine_effects(values, variances, method_re="dl")
    mean, tau_squared = float(found.mean_effect_re), max(0.0, float(found.tau2))
    # combine_effects truncates neither tau squared nor the weights that follow from it.
    if float(found.tau2) < 0:
        mean, error = float(found.mean_effect_fe), float(found.sd_eff_w_fe)
        scale = float(found.scale_hksj_fe)
    else:
        error, scale = float(found.sd_eff_w_re), float(found.scale_hksj_re)
    error *= math.sqrt(max(1.0, scale))
    radius = float(t.ppf(UPPER_QUANTILE, count - 1)) * error
    shown = float if used[0].share is None else _percent
    value, low, high = map(shown, (mean, mean - radius, mean + radius))
    predicted = None
    if count > 2:
        wide = float(t.ppf(UPPER_QUANTILE, count - 2)) * math.hypot(error, math.sqrt(tau_squared))
        predicted = (shown(mean - wide), shown(mean + wide))
    q = float(found.q)
    return RandomEffects(
        families=count,
        groups=sum(effect.groups for effect in used),
        value=value,
        low=low,
        high=high,
        predicted=predicted,
        tau=math.sqrt(tau_squared),
        i_squared=max(0.0, 1 - (count - 1) / q) if q > 0 else 0.0,
        q=q,
        p_value=float(2 * t.sf(abs(mean) / error, count - 1)),
        p_homogeneous=float(found.test_homogeneity().pvalue),
    )


def _percent(angle: float) -> float:
    """Convert an angle of the arcsine scale to per cent."""
    return 100 * math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2
