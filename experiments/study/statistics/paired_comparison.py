"""Paired comparison of two assignors on the same groups."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.study.statistics.parameter_effects import CONFIDENCE, proven_rows

RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Counts of the groups on which one assignor beats the other, and the mean differences."""

    before: str
    after: str
    groups: int
    # Groups in which the assignors reach the minimum imbalance:
    both: int
    only_before: int
    only_after: int
    neither: int
    p_value: float | None  # McNemar's exact test; None if the assignors differ in no group
    moves_known: int  # groups with owned partitions and known unnecessary moves of both
    # Groups of `moves_known`, by the unnecessary moves of `after` relative to `before`:
    fewer: int
    same: int
    more: int
    mean_difference: float | None
    interval: tuple[float, float] | None  # 95 % bootstrap interval of the mean


def compare_pairs(
    rows: pd.DataFrame, before: str, after: str, *, seed: int = 0
) -> PairedComparison:
    """Compare two assignors on their common groups. ``seed`` sets the bootstrap's samples."""
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
    """Return the p-value of McNemar's exact test from the counts of discordant pairs."""
    discordant = only_before + only_after
    return float(binomtest(only_before, discordant).pvalue) if discordant else None


def mean_interval(values: np.typing.NDArray[np.int64], *, seed: int) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean.

    Resampling the counts of distinct integers is equivalent to resampling the values, and
    fast for a million values, for which ``scipy.stats.bootstrap`` needs gigabytes.
    """
    distinct, counts = np.unique(values, return_counts=True)
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled @ distinct / total, [tail, 1 - tail])
    return float(low), float(high)
