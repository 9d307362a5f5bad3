"""Paired comparison of two assignors on the same groups."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.study.statistics.parameter_effects import CONFIDENCE, proven_rows

RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Numbers of groups by the results of two assignors.

    Parameters
    ----------
    before, after
        The assignors.
    groups
        Groups with a proven optimum and rows of both assignors.
    both, only_before, only_after, neither
        Groups in which they reach the minimum imbalance; the sum is ``groups``.
    p_value
        McNemar's exact test of equal frequencies; None if they differ in no group.
    moves_known
        Groups with owned partitions and known unnecessary moves of both assignors.
    fewer, same, more
        Groups of ``moves_known`` in which ``after`` makes fewer, equal or more unnecessary moves.
    mean_difference
        Mean of the unnecessary moves of ``after`` minus ``before``; None without groups.
    interval
        95 % bootstrap interval of the mean.
    """

    before: str
    after: str
    groups: int
    both: int
    only_before: int
    only_after: int
    neither: int
    p_value: float | None
    moves_known: int
    fewer: int
    same: int
    more: int
    mean_difference: float | None
    interval: tuple[float, float] | None


def compare_pairs(
    rows: pd.DataFrame, before: str, after: str, *, seed: int = 0
) -> PairedComparison:
    """Compare two assignors on their common groups.

    Parameters
    ----------
    rows
        Comparisons, with the column ``owned`` of their groups.
    seed
        Seed of the bootstrap.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     {
    ...         "case": ["x", "y", "x", "y"],
    ...         "assignor": ["sticky", "sticky", "uniform", "uniform"],
    ...         "proven": True,
    ...         "least_imbalance": [True, False, True, True],
    ...         "owned": 3,
    ...         "unnecessary_moves": [0, 2, 1, 0],
    ...     }
    ... )
    >>> found = compare_pairs(rows, "sticky", "uniform")
    >>> found.only_after, found.fewer, found.more, found.mean_difference
    (1, 1, 1, -0.5)
    """
    columns = ["case", "least_imbalance", "unnecessary_moves", "owned"]
    proven = proven_rows(rows)
    one, two = (
        proven.loc[proven["assignor"] == name, columns].set_index("case")
        for name in (before, after)
    )
    pairs = one.join(two, how="inner", lsuffix="_before", rsuffix="_after")
    least = [
        pairs[f"least_imbalance_{side}"].fillna(value=False).astype(bool)
        for side in ("before", "after")
    ]
    only_before = int((least[0] & ~least[1]).sum())
    only_after = int((least[1] & ~least[0]).sum())
    moves = pairs[pairs["owned_before"] > 0]
    moves = moves.dropna(subset=["unnecessary_moves_before", "unnecessary_moves_after"])
    difference = (
        (moves["unnecessary_moves_after"] - moves["unnecessary_moves_before"])
        .to_numpy()
        .astype(np.int64)
    )
    return PairedComparison(
        before=before,
        after=after,
        groups=len(pairs),
        both=int((least[0] & least[1]).sum()),
        only_before=only_before,
        only_after=only_after,
        neither=int((~least[0] & ~least[1]).sum()),
        p_value=mcnemar(only_before, only_after),
        moves_known=len(difference),
        fewer=int((difference < 0).sum()),
        same=int((difference == 0).sum()),
        more=int((difference > 0).sum()),
        mean_difference=float(difference.mean()) if len(difference) else None,
        interval=mean_interval(difference, seed=seed) if len(difference) else None,
    )


def mcnemar(only_before: int, only_after: int) -> float | None:
    """Return the p-value of McNemar's exact test from the counts of discordant pairs.

    Examples
    --------
    >>> mcnemar(0, 5)
    0.0625
    """
    discordant = only_before + only_after
    return float(binomtest(only_before, discordant).pvalue) if discordant else None


def mean_interval(values: np.typing.NDArray[np.int64], *, seed: int) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean.

    Resampling the counts of distinct integers is equivalent to resampling the values, and
    fast for a million values, for which ``scipy.stats.bootstrap`` needs gigabytes.

    Examples
    --------
    >>> mean_interval(np.array([1, 1, 1]), seed=0)
    (1.0, 1.0)
    """
    distinct, counts = np.unique(values, return_counts=True)
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled @ distinct / total, [tail, 1 - tail])
    return float(low), float(high)
