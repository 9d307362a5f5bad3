"""Statistics for reports: paired differences of assignors, and rates of event streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kassay.experiments.study.tables import OPTIMUM

CONFIDENCE = 0.95
UPPER_QUANTILE = (1 + CONFIDENCE) / 2
"""Quantile at the upper end of a confidence interval."""
_GROUP_RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Comparison of two assignors by numbers of groups and of families.

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
    interval: tuple[float, float] | None  # 95% bootstrap interval of the mean


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
    """Return the bootstrap confidence interval of the mean of values that occur ``counts`` times.

    Resampling the counts of distinct values is equivalent to resampling the values.
    """
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(
        total, counts / total, size=_GROUP_RESAMPLES
    )
    low, high = np.quantile(resampled @ values / total, [1 - UPPER_QUANTILE, UPPER_QUANTILE])
    return float(low), float(high)


_STREAM_RESAMPLES = 2000
OPTIMAL_MOVES = "optimal_moves"
"""Column with the moves of the optimum at each rebalance of the same streams."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Ratio of two sums over streams, times a factor.

    The numerator is the sum of a column minus the sum of another column, if there is one.
    """

    column: str
    per: str
    factor: float = 1.0
    minus: str | None = None

    def parts(self, sums: pd.DataFrame) -> tuple["pd.Series[float]", "pd.Series[float]"]:
        """Return numerator (without the factor) and denominator of the rate, per row of sums."""
        above = sums[self.column].astype(float)
        if self.minus is not None:
            above = above - sums[self.minus].astype(float)
        return above, sums[self.per].astype(float)

    def of(self, sums: pd.DataFrame) -> "pd.Series[float]":
        """Return the rate per row of sums, NaN if the denominator is 0."""
        above, below = self.parts(sums)
        return self.factor * above / below.where(below > 0)


ABOVE_HINDSIGHT = "moves above hindsight, relative"
"""Name of the rate of moves above hindsight, in per cent of the hindsight moves."""

RATES: Mapping[str, Rate] = {
    "fullest member above the minimum": Rate("above_least_makespan", "rebalances", 100),
    "sum of squares above the minimum": Rate("above_least_squares", "rebalances", 100),
    "excess of the fullest member": Rate("excess", "least_makespan", 100),
    "owned": Rate("owned", "rebalances"),
    "moves": Rate("moves", "rebalances"),
    "unnecessary moves": Rate("unnecessary_moves", "known"),
    "unnecessary moves per owned partition": Rate("unnecessary_moves", "known_owned", 100),
    "with unnecessary moves": Rate("with_unnecessary_moves", "known", 100),
    "moves above the fewest at each rebalance": Rate("moves", "rebalances", minus=OPTIMAL_MOVES),
    "moves above hindsight": Rate("above_hindsight", "with_hindsight"),
    ABOVE_HINDSIGHT: Rate("above_hindsight", "hindsight_moves", 100),
}
"""Rates of the report by name, in per cent or per rebalance."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Value of a rate or of a difference of rates, with a 95% interval."""

    value: float
    low: float
    high: float


class StreamPair(NamedTuple):
    """Comparison of two assignors on the same streams by one rate."""

    lower: int  # streams in which the second assignor has the lower value
    equal: int
    higher: int
    difference: Estimate | None  # None if an assignor has no result


class StreamTotals:
    """Sums per stream and assignor, with the weights of the bootstrap."""

    def __init__(self, rows: pd.DataFrame, *, seed: int = 0) -> None:
        """Sum the rows of the summary table ``trajectories`` per stream and assignor."""
        keys = ["family", "seed", "assignor"]
        sums = rows.drop(columns=["mixed", "start_members"]).groupby(keys, sort=True).sum()
        self._streams = sums.index.droplevel("assignor").unique()
        self._columns = {
            str(name): part.droplevel("assignor").reindex(self._streams, fill_value=0)
            for name, part in sums.groupby("assignor")
        }
        if OPTIMUM in self._columns:
            optimal = self._columns[OPTIMUM]["moves"]
            for part in self._columns.values():
                part[OPTIMAL_MOVES] = optimal
        count = len(self._streams)
        shares = np.full(count, 1 / max(count, 1))
        self._weights = np.zeros((_STREAM_RESAMPLES, count))
        if count:
            self._weights += np.random.default_rng(seed).multinomial(
                count, shares, _STREAM_RESAMPLES
            )

    @property
    def streams(self) -> int:
        """Return the number of event streams."""
        return len(self._streams)

    def total(self, assignor: str, column: str) -> int:
        """Return the sum of a column over all streams."""
        return int(self._columns[assignor][column].sum())

    def estimate(self, assignor: str, rate: Rate) -> Estimate | None:
        """Estimate a rate of an assignor. Return None if the denominator is 0."""
        above, below = self._parts(assignor, rate)
        if not below.sum():
            return None
        return _estimate(
            rate.factor * above.sum() / below.sum(), self._resampled(rate, above, below)
        )

    def compare(self, before: str, after: str, rate: Rate) -> StreamPair:
        """Compare two assignors by a rate on the same streams."""
        parts = [self._parts(assignor, rate) for assignor in (before, after)]
        (above, below), (above_after, below_after) = parts
        if not below.sum() * below_after.sum():
            return StreamPair(0, 0, 0, None)
        # Products instead of quotients: a stream can have the denominator 0.
        sign = np.sign(above_after * below - above * below_after)
        value = above_after.sum() / below_after.sum() - above.sum() / below.sum()
        one, two = (self._resampled(rate, *part) for part in parts)
        lower, equal, higher = (int((sign == side).sum()) for side in (-1, 0, 1))
        return StreamPair(lower, equal, higher, _estimate(rate.factor * value, two - one))

    def _parts(self, assignor: str, rate: Rate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        above, below = rate.parts(self._columns[assignor])
        return np.asarray(above, np.float64), np.asarray(below, np.float64)

    def _resampled(
        self, rate: Rate, above: NDArray[np.float64], below: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        divisor = self._weights @ below
        ratios = np.full(len(divisor), np.nan)
        np.divide(rate.factor * (self._weights @ above), divisor, out=ratios, where=divisor > 0)
        return ratios


def _estimate(value: float, resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.nanquantile(resampled, [1 - UPPER_QUANTILE, UPPER_QUANTILE])
    return Estimate(float(value), float(low), float(high))
