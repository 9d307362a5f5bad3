"""Summarise the results of a study per assignor and per family."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.study.statistics.significance import CONFIDENCE
from kassay.experiments.study.summary_columns import (
    APART,
    GENERATED,
    SumColumn,
    assignors_of,
    families_of,
)


@dataclass(frozen=True, slots=True)
class Proportion:
    r"""Proportion of groups that have a property, with a confidence interval.

    Examples
    --------
    >>> Proportion(45, 50).percent
    '90\xa0%'
    >>> low, high = Proportion(45, 50).interval
    >>> round(low, 3), round(high, 3)
    (0.786, 0.957)
    """

    count: int
    total: int
    is_sample: bool = True

    @property
    def value(self) -> float | None:
        """Return the proportion, from 0 to 1, or None if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def percent(self) -> str:
        """Format the proportion in per cent. Only exact values appear as 0 % or 100 %."""
        if not self.total:
            return "–"
        return _percent_text(100 * self.count / self.total, self._decimals) + "\u00a0%"

    @property
    def percent_of_total(self) -> str:
        r"""Format the proportion in per cent, with the number of groups that it refers to.

        Examples
        --------
        >>> Proportion(900, 1000).percent_of_total
        '90\xa0% of 1,000'
        """
        return f"{self.percent} of {self.total:,}" if self.total else self.percent

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return Wilson's 95 % confidence interval, or None if the groups are not a sample."""
        if not self.total or not self.is_sample:
            return None
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)

    @property
    def percent_with_interval(self) -> str:
        r"""Format the proportion and its confidence interval in per cent.

        Examples
        --------
        >>> Proportion(45, 50).percent_with_interval
        '90\xa0% (78.6 to 95.7)'
        """
        text = self.interval_text
        return self.percent if text is None else f"{self.percent} ({text})"

    @property
    def interval_text(self) -> str | None:
        """Format the ends of the confidence interval in per cent, or return None without one."""
        if self.interval is None:
            return None
        decimals = self._decimals
        if self.count in (0, self.total):  # the end of the interval that differs from the value
            nearest = 100 * (self.interval[1] - self.interval[0])
            decimals = max(decimals, 1 - math.floor(math.log10(nearest)))
        low, high = (_percent_text(100 * end, decimals) for end in self.interval)
        return f"{low} to {high}"

    @property
    def _decimals(self) -> int:
        """Return the number of decimals that show a value near 0 % or 100 % as not exact."""
        nearest = 100 * min(self.count, self.total - self.count) / self.total
        return 1 if nearest == 0 or nearest >= 0.1 else 1 - math.floor(math.log10(nearest))


def _percent_text(percent: float, decimals: int) -> str:
    text = f"{percent:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorSummary:
    """Aggregated results of an assignor on the groups of one scope with a proven optimum.

    An assignor has no result on the groups on which it fails or does not terminate. They are in
    no other category. The measures of moves refer to the groups with owned partitions.

    Parameters
    ----------
    groups, answered
        Groups, and groups on which the assignor has a result.
    minimum_imbalance
        Groups with minimum imbalance, of all groups.
    missed, missed_maximum
        Of the groups with a result, groups with a sum of squared loads above its minimum, and
        groups with a maximum load above its minimum. With weights, both numbers are equal and
        refer to the maximum load.
    mean_excess, largest_excess
        Excess of the maximum load over its minimum, in per cent of the minimum.
    largest_excess_units
        Largest excess of the maximum load in partitions or units of weight.
    excess_ppm, owned_partitions, moves, unnecessary_moves
        Sums: the excess in millionths of the minimum, and partitions of the groups in
        `with_unnecessary_moves`.
    unnecessary_moves_per_rebalance, unnecessary_moves_per_owned
        Unnecessary moves per rebalance, and per owned partition.
    failed
        Groups on which the assignor has no result although it terminates.
    invalid, crashed
        Failed groups with an invalid assignment, and failed groups on which a signal ended the
        process of the assignor. None if an earlier version of kassay wrote the summary.
    """

    groups: int
    answered: int
    minimum_imbalance: Proportion
    missed: Proportion
    missed_maximum: Proportion
    mean_excess: float | None
    largest_excess: float | None
    largest_excess_units: int | None
    with_unnecessary_moves: Proportion
    excess_ppm: int
    owned_partitions: int
    moves: int
    unnecessary_moves: int
    unnecessary_moves_per_rebalance: float | None
    unnecessary_moves_per_owned: float | None
    nonterminating: int
    failed: int
    invalid: int | None
    crashed: int | None


_LARGEST = (SumColumn.LARGEST_EXCESS, SumColumn.LARGEST_EXCESS_PPM)


def scope_rows(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Select the rows of one scope from a table of a study."""
    return rows[rows["scope"] == scope]


def main_scope(outcomes: pd.DataFrame) -> str:
    """Return the scope of the totals: `GENERATED`, or the first scope that has groups."""
    present = set(outcomes.loc[outcomes["groups"] > 0, "scope"])
    return next((scope for scope in (GENERATED, *APART.values()) if scope in present), GENERATED)


def summarise_rows(outcomes: pd.DataFrame) -> AssignorSummary:
    """Sum the outcome counts of several table rows into one summary."""
    keys = ["family", "scope", "mixed", "assignor", *_LARGEST]
    sums = {
        str(name): int(total)
        for name, total in outcomes.drop(columns=keys, errors="ignore").sum().items()
    }
    is_sample = set(outcomes["scope"]) <= {GENERATED, APART["weights"], APART["racks"]}
    units, largest = (outcomes[name].max() for name in _LARGEST)
    answered, known, extra = (
        sums[SumColumn.ANSWERED],
        sums[SumColumn.KNOWN],
        sums[SumColumn.UNNECESSARY_MOVES],
    )

    def share(count: int, total: int) -> Proportion:
        return Proportion(count, total, is_sample)

    return AssignorSummary(
        groups=sums[SumColumn.GROUPS],
        answered=answered,
        minimum_imbalance=share(answered - sums[SumColumn.MISSED], sums[SumColumn.GROUPS]),
        missed=share(sums[SumColumn.MISSED], answered),
        missed_maximum=share(sums[SumColumn.MISSED_MAXIMUM], answered),
        mean_excess=_ratio(sums[SumColumn.EXCESS_PPM] / 10_000, answered),
        largest_excess=None if pd.isna(largest) else int(largest) / 10_000,
        largest_excess_units=None if pd.isna(units) else int(units),
        with_unnecessary_moves=share(sums[SumColumn.WASTEFUL], known),
        excess_ppm=sums[SumColumn.EXCESS_PPM],
        owned_partitions=sums[SumColumn.OWNED_PARTITIONS],
        moves=sums[SumColumn.MOVES],
        unnecessary_moves=extra,
        unnecessary_moves_per_rebalance=_ratio(extra, known),
        unnecessary_moves_per_owned=_ratio(extra, sums[SumColumn.OWNED_PARTITIONS]),
        nonterminating=sums[SumColumn.NONTERMINATING],
        failed=sums[SumColumn.FAILED],
        invalid=sums.get(SumColumn.INVALID),
        crashed=sums.get(SumColumn.CRASHED),
    )


def _ratio(value: float, total: int) -> float | None:
    return value / total if total else None


def by_assignor(outcomes: pd.DataFrame, names: Sequence[str]) -> dict[str, AssignorSummary]:
    """Summarise the outcome counts of each assignor."""
    return {name: summarise_rows(outcomes[outcomes["assignor"] == name]) for name in names}


def by_subscriptions(
    outcomes: pd.DataFrame, names: Sequence[str]
) -> dict[str, tuple[AssignorSummary, AssignorSummary]]:
    """Summarise each assignor twice: on groups with equal and with mixed subscriptions."""
    equal, mixed = (
        by_assignor(outcomes[outcomes["mixed"] == flag], names) for flag in (False, True)
    )
    return {name: (equal[name], mixed[name]) for name in names}


def by_scope(outcomes: pd.DataFrame) -> dict[str, dict[str, AssignorSummary]]:
    """Summarise each assignor per scope; the scope of the totals is first."""
    main = main_scope(outcomes)
    order = (main, *(scope for scope in (GENERATED, *APART.values()) if scope != main))
    return {
        scope: by_assignor(rows, assignors_of(rows["assignor"]))
        for scope in order
        if scope != APART["named"] or scope == main
        if (rows := scope_rows(outcomes, scope))["groups"].sum()
    }


def by_family(outcomes: pd.DataFrame) -> dict[str, dict[str, AssignorSummary]]:
    """Summarise the outcome counts of each family and assignor."""
    names = assignors_of(outcomes["assignor"])
    return {
        family: by_assignor(outcomes[outcomes["family"] == family], names)
        for family in families_of(outcomes["family"])
    }
