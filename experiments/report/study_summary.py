"""The numbers: how often, how far, by assignor and by family."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.report.table_reader import SPARING, Tables

CONFIDENCE = 0.95
PICKED = "named"
_ABOUT = (
    "case",
    "family",
    "seed",
    "start",
    "mixed",
    "owned",
    "partitions",
    "members",
    "participants",
    "topics",
    "weighted",
    "consumed",
    "subscriptions",
)
_COUNTED = (
    "ending",
    "proven",
    "least_imbalance",
    "owned",
    "unnecessary_moves",
    "makespan_gap",
    "movement_greedy",
)


@dataclass(frozen=True, slots=True)
class Proportion:
    r"""A count of a total, with the interval that the true share lies in.

    Parameters
    ----------
    count, total
        The groups that have the property, and all that were looked at.

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
        """The share, from 0 to 1; None of nothing."""
        return self.count / self.total if self.total else None

    @property
    def percent(self) -> str:
        """The share in per cent; never rounded to all or nothing unless it is."""
        if not self.total:
            return "–"
        exact = 100 * self.count / self.total
        shown = exact if self.count in (0, self.total) else min(max(exact, 0.1), 99.9)
        return f"{shown:.1f}".removesuffix(".0") + "\u00a0%"

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval at 95 % confidence; everything, of nothing."""
        if not self.total:
            return (0.0, 1.0)
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What an assignor did over a set of groups.

    Parameters
    ----------
    groups
        Groups it was given whose optimum is proven.
    least
        Those in which it reached the least imbalance.
    wasteful
        Of those in which something was owned, those in which it moved more than any
        assignment as balanced as its own needs.
    moves, unnecessary
        Moves it made where the necessary number is proven, and how many of them were
        not needed.
    worst_makespan
        Most partitions that its fullest member had above the least possible.
    nonterminating, failed
        Groups on which it never ended, and on which the real class throws or gives a member
        what it does not subscribe to.
    """

    groups: int
    least: Proportion
    wasteful: Proportion
    moves: int
    unnecessary: int
    worst_makespan: int | None
    nonterminating: int
    failed: int

    @property
    def missed(self) -> Proportion:
        """Groups in which it did not reach the least imbalance, or anything at all."""
        return Proportion(self.least.total - self.least.count, self.least.total)


def joined(tables: Tables) -> pd.DataFrame:
    """Return the comparisons with what is known of their groups, our own errors left out.

    Groups picked for what they show are among them: `drawn` leaves those out.
    """
    rows = tables.comparisons[tables.comparisons["ending"] != "error"]
    # Studies made before subscriptions were counted lack the last two.
    about = tables.groups[[name for name in _ABOUT if name in tables.groups]]
    cases = sorted(about["case"])
    rows = rows.assign(case=_categories(rows["case"], cases)).merge(
        about.assign(case=_categories(about["case"], cases)),
        on="case",
        how="left",
        validate="many_to_one",
    )
    names = ("family", "assignor")
    return rows.assign(**{name: _categories(rows[name], sorted(set(rows[name]))) for name in names})


def _categories(values: pd.Series, names: list[str]) -> pd.Series:
    """Turn text into categories, which are compared and grouped by number."""
    return values.astype("category").cat.set_categories(names)


def drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out the groups that were picked by hand: they belong in no share of anything."""
    return rows[rows["family"] != PICKED]


def figures_of(rows: pd.DataFrame) -> Figures:
    """Add up the comparisons of one assignor over some groups."""
    rows = rows[list(_COUNTED)]
    proven = rows[rows["proven"].fillna(value=False)]
    least = proven["least_imbalance"].fillna(value=False)
    owned = proven[(proven["owned"] > 0) & proven["unnecessary_moves"].notna()]
    worst = proven["makespan_gap"].max()
    return Figures(
        groups=len(proven),
        least=Proportion(int(least.sum()), len(proven)),
        wasteful=Proportion(int((owned["unnecessary_moves"] > 0).sum()), len(owned)),
        moves=int(owned["movement_greedy"].sum()),
        unnecessary=int(owned["unnecessary_moves"].sum()),
        worst_makespan=None if pd.isna(worst) else int(worst),
        nonterminating=int((rows["ending"] == "nonterminating").sum()),
        failed=int(rows["ending"].isin(["failed", "invalid"]).sum()),
    )


def by_assignor(rows: pd.DataFrame) -> dict[str, Figures]:
    """Figures of each assignor over all groups, in the order of the study."""
    return {name: figures_of(rows[rows["assignor"] == name]) for name in assignors_of(rows)}


@pd.option_context(*SPARING)
def totals(tables: Tables) -> dict[str, Figures]:
    """Figures of each assignor over all groups that were not picked by hand."""
    return by_assignor(drawn(joined(tables)))


def by_family(rows: pd.DataFrame) -> dict[str, dict[str, Figures]]:
    """Figures by family, then by assignor."""
    parts = rows[["family", "assignor", *_COUNTED]].groupby(["family", "assignor"], observed=True)
    found = {key: figures_of(part) for key, part in parts}
    nothing = figures_of(rows.iloc[:0])
    return {
        family: {name: found.get((family, name), nothing) for name in assignors_of(rows)}
        for family in families_of(rows)
    }


ORDER = (
    "sticky",
    "cooperative-sticky",
    "uniform",
    "uniform-4.0",
    "roundrobin",
    "range",
    "server-range",
    "legacy-roundrobin",
    "legacy-range",
)


def assignors_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """Assignors that occur, those that aim at balance first."""
    return _ordered(rows["assignor"].unique().tolist(), ORDER)


FAMILY_ORDER = tuple(
    f"{subscriptions}-{event}"
    for subscriptions in ("equal", "mixed")
    for event in ("fresh", "join", "leave", "resubscribe", "grow", "churn")
)


def families_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """Families that occur: seeded ones, then others by name."""
    return _ordered(rows["family"].unique().tolist(), FAMILY_ORDER)


def _ordered(names: Sequence[str], order: tuple[str, ...]) -> tuple[str, ...]:
    rank = {name: position for position, name in enumerate(order)}
    return tuple(sorted(names, key=lambda name: (rank.get(name, len(rank)), name)))
