"""Statistical comparison of two assignors on the same groups."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kassay.experiments.study.statistics.significance import UPPER_QUANTILE

RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Comparison of two assignors: numbers of groups and of families with better results.

    A test over all groups has no meaning, because the mix of families is chosen. The numbers of
    families show whether the families agree.
    """

    before: str
    after: str
    groups: int
    # Groups in which the assignors reach the minimum imbalance:
    both: int
    only_before: int
    only_after: int
    neither: int
    # Families in which the second assignor reaches the minimum imbalance in more or fewer groups:
    families_better: int
    families_worse: int
    moves_known: int  # groups with owned partitions and known unnecessary moves of both
    # Groups of `moves_known`, by the unnecessary moves of `after` relative to `before`:
    fewer: int
    same: int
    more: int
    mean_difference: float | None
    interval: tuple[float, float] | None  # 95 % bootstrap interval of the mean


def compare_pairs(
    pairs: pd.DataFrame, before: str, after: str, *, seed: int = 0
) -> PairedComparison:
    """Compare the results of two assignors on the same groups.

    ``pairs`` counts groups by ``family``, ``before``, ``after``, ``least_before``, ``least_after``
    and ``difference``, the unnecessary moves of the second assignor minus those of the first.
    """
    own = pairs[(pairs["before"] == before) & (pairs["after"] == after)]

    def groups(*, first: bool, second: bool) -> int:
        rows = own[(own["least_before"] == first) & (own["least_after"] == second)]
        return int(rows["groups"].sum())

    counts = own.dropna(subset=["difference"]).groupby("difference")["groups"].sum()
    values = counts.index.to_numpy(np.int64)
    numbers = counts.to_numpy(np.int64)
    known = int(numbers.sum())
    only_before, only_after = groups(first=True, second=False), groups(first=False, second=True)
    won = (own["least_after"].astype(int) - own["least_before"].astype(int)) * own["groups"]
    by_family = won.groupby(own["family"]).sum()
    return PairedComparison(
        before=before,
        after=after,
        groups=int(own["groups"].sum()),
        both=groups(first=True, second=True),
        only_before=only_before,
        only_after=only_after,
        neither=groups(first=False, second=False),
        families_better=int((by_family > 0).sum()),
        families_worse=int((by_family < 0).sum()),
        moves_known=known,
        fewer=int(numbers[values < 0].sum()),
        same=int(numbers[values == 0].sum()),
        more=int(numbers[values > 0].sum()),
        mean_difference=float(values @ numbers / known) if known else None,
        interval=mean_interval(values, numbers, seed=seed) if known else None,
    )


def mean_interval(
    values: np.typing.NDArray[np.int64], counts: np.typing.NDArray[np.int64], *, seed: int
) -> tuple[float, float]:
    """Return the bootstrap confidence interval of the mean of values with given counts.

    Resampling the counts of distinct values is equivalent to resampling the values.
    """
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    low, high = np.quantile(resampled @ values / total, [1 - UPPER_QUANTILE, UPPER_QUANTILE])
    return float(low), float(high)
