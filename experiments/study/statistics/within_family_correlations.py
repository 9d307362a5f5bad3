"""Correlations of group parameters with results of assignors, within each family.

Tables of counts have the columns ``groups`` with a proven optimum; ``missed``, of these groups
without minimum imbalance; ``known``, of these groups with owned partitions and known unnecessary
moves; ``wasteful``, of the known groups with unnecessary moves. Groups without a result of the
assignor are in none of them.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from kassay.experiments.study.statistics.significance import holm

MEASURED = ("members", "topics", "partitions", "partitions per member", "overlap", "owned")
"""Parameters that are numbers of a group.

``overlap`` is the mean share of members that subscribe to a topic; ``owned`` is the share of
partitions with an owner.
"""
OUTCOMES = {"missed": "groups", "wasteful": "known"}
"""Outcomes of an assignor, with the column that counts the groups with this information."""


def within_families(parameters: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of parameters with outcomes, for each family.

    Groups of one family differ in their seeds only, so that the choice of families does not
    affect the correlation. Combinations without variation are omitted. ``p_adjusted`` is the
    p-value adjusted for the number of rows. ``parameters`` has counts by ``family``,
    ``assignor``, ``parameter`` and ``value``.
    """
    columns = ["family", "parameter", "assignor", "outcome", "groups", "rho", "p_value"]
    result: list[tuple[object, ...]] = []
    for (family, assignor), own in parameters.groupby(["family", "assignor"], observed=True):
        if assignor not in assignors:
            continue
        parts = dict(iter(own.groupby("parameter")))
        for outcome, parameter in itertools.product(OUTCOMES, MEASURED):
            if parameter not in parts:
                continue
            part = parts[parameter]
            groups = int(part[OUTCOMES[outcome]].sum())
            rho, p_value = rank_correlation(part["value"], part[OUTCOMES[outcome]], part[outcome])
            if not math.isnan(rho):
                result.append((family, parameter, assignor, outcome, groups, rho, p_value))
    table = pd.DataFrame(result, columns=columns)
    return table.assign(p_adjusted=holm(table["p_value"].tolist()))


def rank_correlation(values: pd.Series, groups: pd.Series, ones: pd.Series) -> tuple[float, float]:
    """Return Spearman's correlation of values with a binary outcome, and the p-value.

    The groups with a value have the same mean rank, and so have the groups with an outcome.
    NaN if the value or the outcome is the same for all groups.

    Parameters
    ----------
    values, groups, ones
        Values, the number of groups with each value, and how many of them have the outcome.

    Examples
    --------
    >>> rank_correlation(pd.Series([1, 2, 3]), pd.Series([2, 1, 1]), pd.Series([0, 1, 1]))[0]
    0.9...
    """
    counts = pd.DataFrame({"n": groups.astype(float), "ones": ones.astype(float)})
    counts = counts.groupby(values.astype(float).to_numpy()).sum()
    counts = counts[counts["n"] > 0]
    n, yes = float(counts["n"].sum()), float(counts["ones"].sum())
    if len(counts) < 2 or yes in (0.0, n):
        return math.nan, math.nan
    # Deviations of the ranks from their mean (n + 1) / 2.
    ranks = counts["n"].cumsum() - counts["n"] / 2 - n / 2
    low, high = -yes / 2, (n - yes) / 2
    covariance = float(
        (ranks * ((counts["n"] - counts["ones"]) * low + counts["ones"] * high)).sum()
    )
    variance = float((counts["n"] * ranks**2).sum()) * ((n - yes) * low**2 + yes * high**2)
    rho = max(-1.0, min(1.0, covariance / math.sqrt(variance)))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = rho * np.sqrt(np.float64(n - 2) / ((1 + rho) * (1 - rho)))
    return rho, float(2 * t.sf(abs(statistic), n - 2))
