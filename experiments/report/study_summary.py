"""Summary of a study: results per assignor and per family, computed from its tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.report.table_reader import NO_COPIES, Tables
from kassay.reference.assignors import ASSIGNORS, Goal, Release

COMPARED_ASSIGNORS = tuple(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
"""Ports of the newest release that aim at balance and at few moves."""
NAMED_FAMILY = "named"
"""The family of hand-picked groups, which count in no share."""
CONFIDENCE = 0.95
_SUMMARISED = (
    *("ending", "proven", "least_imbalance", "owned"),
    *("unnecessary_moves", "makespan_gap", "movement_greedy"),
)
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
    """A table of a report page. ``name`` is the file name of its CSV."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    csv: str


@dataclass(frozen=True, slots=True)
class Proportion:
    r"""Number of groups with a property out of a total, with its confidence interval.

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
        """Return the proportion in per cent. Show 0 % and 100 % only for exact values."""
        if not self.total:
            return "–"
        exact = 100 * self.count / self.total
        shown = exact if self.count in (0, self.total) else min(max(exact, 0.1), 99.9)
        return f"{shown:.1f}".removesuffix(".0") + "\u00a0%"

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's confidence interval at 95 %, or (0, 1) if the total is 0."""
        if not self.total:
            return (0.0, 1.0)
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorSummary:
    """Results of an assignor over the groups with a proven optimum.

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
        """Return the share of groups without minimum imbalance, failed runs included."""
        reached = self.minimum_imbalance
        return Proportion(reached.total - reached.count, reached.total)


def join_groups(tables: Tables) -> pd.DataFrame:
    """Join comparisons with their groups. Skip groups on which kassay itself failed."""
    rows = tables.comparisons[tables.comparisons["ending"] != "error"]
    groups = tables.groups.drop(columns=["group_id", "error", "document"])
    cases = sorted(groups["case"])
    rows = rows.assign(case=_categories(rows["case"], cases)).merge(
        groups.assign(case=_categories(groups["case"], cases)),
        on="case",
        how="left",
        validate="many_to_one",
    )
    names = ("family", "assignor")
    return rows.assign(**{name: _categories(rows[name], sorted(set(rows[name]))) for name in names})


def _categories(values: pd.Series, names: list[str]) -> pd.Series:
    return values.astype("category").cat.set_categories(names)


def without_named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without the hand-written groups."""
    return rows[rows["family"] != NAMED_FAMILY]


def summarise_rows(rows: pd.DataFrame) -> AssignorSummary:
    """Summarise the comparisons of one assignor."""
    rows = rows[list(_SUMMARISED)]
    proven = rows[rows["proven"].fillna(value=False)]
    reached = proven["least_imbalance"].fillna(value=False)
    owned = proven[(proven["owned"] > 0) & proven["unnecessary_moves"].notna()]
    excess = proven["makespan_gap"].max()
    return AssignorSummary(
        groups=len(proven),
        minimum_imbalance=Proportion(int(reached.sum()), len(proven)),
        with_unnecessary_moves=Proportion(int((owned["unnecessary_moves"] > 0).sum()), len(owned)),
        moves=int(owned["movement_greedy"].sum()),
        unnecessary_moves=int(owned["unnecessary_moves"].sum()),
        largest_excess=None if pd.isna(excess) else int(excess),
        nonterminating=int((rows["ending"] == "nonterminating").sum()),
        failed=int(rows["ending"].isin(["failed", "invalid"]).sum()),
    )


def by_assignor(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, AssignorSummary]:
    """Return one summary per assignor."""
    return {name: summarise_rows(rows[rows["assignor"] == name]) for name in names}


@pd.option_context(*NO_COPIES)
def totals(tables: Tables) -> dict[str, AssignorSummary]:
    """Return one summary per assignor over all groups except hand-written groups."""
    rows = without_named(join_groups(tables))
    return by_assignor(rows, assignors_of(rows))


def by_family(rows: pd.DataFrame) -> dict[str, dict[str, AssignorSummary]]:
    """Return one summary per family and assignor."""
    parts = rows[["family", "assignor", *_SUMMARISED]].groupby(
        ["family", "assignor"], observed=True
    )
    found = {key: summarise_rows(part) for key, part in parts}
    empty = summarise_rows(rows.iloc[:0])
    return {
        family: {name: found.get((family, name), empty) for name in assignors_of(rows)}
        for family in families_of(rows)
    }


def assignors_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the assignors in a study's rows, in the order of their goals."""
    return _ordered(rows["assignor"].unique().tolist(), _ASSIGNOR_ORDER)


def compared_assignors(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the `COMPARED_ASSIGNORS` in a study's rows, or else the first three assignors."""
    names = assignors_of(rows)
    return tuple(name for name in COMPARED_ASSIGNORS if name in names) or names[:3]


def families_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the families in a study's rows: basic families first, then the others by name."""
    return _ordered(rows["family"].unique().tolist(), _FAMILY_ORDER)


def _ordered(names: Sequence[str], order: tuple[str, ...]) -> tuple[str, ...]:
    rank = {name: position for position, name in enumerate(order)}
    return tuple(sorted(names, key=lambda name: (rank.get(name, len(rank)), name)))
