"""Summarise the results of a study per assignor and per family."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from kassay.reference.assignors import ASSIGNORS, Goal, Release

COMPARED_ASSIGNORS = tuple(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
"""Assignors of the newest Kafka release that aim at balance and at few moves."""
NAMED_FAMILY = "named"
"""Name of the family of hand-written groups, which are excluded from all statistics."""
WORST_CANDIDATES = 16
"""Number of stored candidates for the worst groups, per assignor and kind of shortcoming."""
CONFIDENCE = 0.95
_ASSIGNOR_ORDER = tuple(
    sorted(
        ASSIGNORS,
        key=lambda name: (
            ASSIGNORS[name].release is Release.ZOOKEEPER_CONSUMER,
            ASSIGNORS[name].goal,
        ),
    )
)
_FAMILY_ORDER = tuple(
    f"{subscriptions}-{event}"
    for subscriptions in ("equal", "mixed")
    for event in ("fresh", "join", "leave", "resubscribe", "grow", "churn")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Table of a report page. ``name`` is the name of the table's CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    csv: str


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

    @property
    def value(self) -> float | None:
        """Return the proportion, from 0 to 1, or None if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def percent(self) -> str:
        """Format the proportion in per cent. Only exact values appear as 0 % or 100 %."""
        if not self.total:
            return "–"
        exact = 100 * self.count / self.total
        shown = exact if self.count in (0, self.total) else min(max(exact, 0.1), 99.9)
        return f"{shown:.1f}".removesuffix(".0") + "\u00a0%"

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % confidence interval, or (0, 1) if the total is 0."""
        if not self.total:
            return (0.0, 1.0)
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorSummary:
    """Aggregated results of an assignor on the groups with a proven optimum.

    ``with_unnecessary_moves`` is a share of the groups with owned partitions.
    ``largest_excess`` is the largest excess of the maximum load over its minimum.
    """

    groups: int
    minimum_imbalance: Proportion
    with_unnecessary_moves: Proportion
    moves: int
    unnecessary_moves: int
    largest_excess: int | None
    nonterminating: int
    failed: int

    @property
    def missed(self) -> Proportion:
        """Return the proportion of groups on which the assignor misses the minimum imbalance."""
        reached = self.minimum_imbalance
        return Proportion(reached.total - reached.count, reached.total)


def without_named(rows: pd.DataFrame) -> pd.DataFrame:
    """Remove the rows of hand-written groups from a table of a study."""
    return rows[rows["family"] != NAMED_FAMILY]


def summarise_rows(outcomes: pd.DataFrame) -> AssignorSummary:
    """Sum the outcome counts of several table rows into one summary."""
    sums = {
        str(name): int(total)
        for name, total in outcomes.drop(
            columns=["family", "mixed", "assignor", "largest_excess"], errors="ignore"
        )
        .sum()
        .items()
    }
    excess = outcomes["largest_excess"].max()
    groups, known = sums["groups"], sums["known"]
    return AssignorSummary(
        groups=groups,
        minimum_imbalance=Proportion(groups - sums["missed"], groups),
        with_unnecessary_moves=Proportion(sums["wasteful"], known),
        moves=sums["moves"],
        unnecessary_moves=sums["unnecessary_moves"],
        largest_excess=None if pd.isna(excess) else int(excess),
        nonterminating=sums["nonterminating"],
        failed=sums["failed"],
    )


def by_assignor(outcomes: pd.DataFrame, names: Sequence[str]) -> dict[str, AssignorSummary]:
    """Summarise the outcome counts of each assignor."""
    return {name: summarise_rows(outcomes[outcomes["assignor"] == name]) for name in names}


def totals(outcomes: pd.DataFrame) -> dict[str, AssignorSummary]:
    """Summarise each assignor over all groups except hand-written groups."""
    rows = without_named(outcomes)
    return by_assignor(rows, assignors_of(rows["assignor"]))


def by_family(outcomes: pd.DataFrame) -> dict[str, dict[str, AssignorSummary]]:
    """Summarise the outcome counts of each family and assignor."""
    names = assignors_of(outcomes["assignor"])
    return {
        family: by_assignor(outcomes[outcomes["family"] == family], names)
        for family in families_of(outcomes["family"])
    }


def assignors_of(names: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicate assignor names, and sort the names for tables of the report."""
    return _ordered(names, _ASSIGNOR_ORDER)


def compared_assignors(names: Iterable[str]) -> tuple[str, ...]:
    """Select, from the assignors of a study, those that the report compares in pairs."""
    ordered = assignors_of(names)
    return tuple(name for name in COMPARED_ASSIGNORS if name in ordered) or ordered[:3]


def families_of(names: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicate family names, and sort the names: equal-* first, then mixed-*."""
    return _ordered(names, _FAMILY_ORDER)


def _ordered(names: Iterable[str], order: tuple[str, ...]) -> tuple[str, ...]:
    rank = {name: position for position, name in enumerate(order)}
    return tuple(sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name)))
