"""Rates over the rebalances of event streams, with bootstrap intervals over the streams.

The rebalances of one stream depend on each other. The bootstrap therefore draws whole streams, and
all assignors of a draw have the same streams.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from kassay.experiments.study.evaluate_event_stream import OPTIMUM
from kassay.experiments.study.statistics.significance import UPPER_QUANTILE
from kassay.experiments.study.statistics.unowned_time import UNOWNED_SECONDS
from kassay.reference.assignors import RebalanceProtocol

RESAMPLES = 2000
OPTIMAL_MOVES = "optimal_moves"
"""Moves on the same streams, with the fewest moves at each rebalance."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Ratio of two sums over streams, times a factor.

    The numerator is the sum of a column minus the sum of another column, if there is one.
    """

    column: str
    per: str
    factor: float = 1.0
    minus: str | None = None

    def of(self, sums: "pd.Series[float]") -> float:
        """Return the rate for given sums of columns, NaN if the denominator is 0.

        Examples
        --------
        >>> Rate("moves", "rebalances", 100).of(pd.Series({"moves": 3, "rebalances": 4}))
        75.0
        """
        above = float(sums[self.column]) - (0.0 if self.minus is None else float(sums[self.minus]))
        below = float(sums[self.per])
        return self.factor * above / below if below else math.nan


ABOVE_HINDSIGHT = "moves above hindsight, relative"
"""Name of the rate in per cent of the moves of the hindsight optimum."""

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
    "unowned time, eager": Rate("owned", "rebalances", UNOWNED_SECONDS[RebalanceProtocol.EAGER]),
    "unowned time, cooperative": Rate(
        "moves", "rebalances", UNOWNED_SECONDS[RebalanceProtocol.COOPERATIVE]
    ),
    "unowned time, KIP-848": Rate(
        "moves", "rebalances", UNOWNED_SECONDS[RebalanceProtocol.CONSUMER]
    ),
}
"""Rates of the report: percentages, or numbers and seconds per rebalance."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Value of a rate or of a difference of rates, with a 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPair:
    """Comparison of two assignors on the same streams by one rate."""

    before: str
    after: str
    rate: str
    streams: int
    lower: int  # streams in which the second assignor has the lower value
    equal: int
    higher: int
    difference: Estimate
    p_value: float  # of equal rates, from the standard error of the bootstrap; NaN if it is 0


class StreamTotals:
    """Sums per stream and assignor, with the weights of the bootstrap."""

    def __init__(self, rows: pd.DataFrame, *, seed: int = 0) -> None:
        """Index the rows of the summary table ``trajectories``."""
        keys = ["family", "seed", "assignor"]
        sums = rows.drop(columns=["mixed", "start_members"]).groupby(keys, sort=True).sum()
        self._streams = sums.index.droplevel("assignor").unique()
        self._columns = {
            str(name): part.droplevel("assignor").reindex(self._streams, fill_value=0)
            for name, part in sums.groupby("assignor")
        }
        self.assignors = tuple(self._columns)
        if OPTIMUM in self._columns:
            optimal = self._columns[OPTIMUM]["moves"]
            for part in self._columns.values():
                part[OPTIMAL_MOVES] = optimal
        count = len(self._streams)
        shares = np.full(count, 1 / max(count, 1))
        self._weights = np.zeros((RESAMPLES, count))
        if count:
            self._weights += np.random.default_rng(seed).multinomial(count, shares, RESAMPLES)

    @property
    def streams(self) -> int:
        """Number of event streams."""
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

    def compare(self, before: str, after: str, name: str) -> StreamPair:
        """Compare two assignors by a rate of `RATES` on the same streams."""
        rate = RATES[name]
        parts = [self._parts(assignor, rate) for assignor in (before, after)]
        (above, below), (above_after, below_after) = parts
        # Products instead of quotients: a stream can have the denominator 0.
        sign = np.sign(above_after * below - above * below_after)
        value = above_after.sum() / below_after.sum() - above.sum() / below.sum()
        one, two = (self._resampled(rate, *part) for part in parts)
        error = float(np.nanstd(two - one))
        return StreamPair(
            before=before,
            after=after,
            rate=name,
            streams=self.streams,
            lower=int((sign < 0).sum()),
            equal=int((sign == 0).sum()),
            higher=int((sign > 0).sum()),
            difference=_estimate(rate.factor * value, two - one),
            p_value=float(2 * norm.sf(abs(rate.factor * value) / error)) if error else math.nan,
        )

    def _parts(self, assignor: str, rate: Rate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        columns = self._columns[assignor]
        above = columns[rate.column].to_numpy(np.float64)
        if rate.minus is not None:
            above = above - columns[rate.minus].to_numpy(np.float64)
        return above, columns[rate.per].to_numpy(np.float64)

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
