"""Results of a study per assignor and per family, as summaries and as tables."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.report_table import ReportTable, short_number
from kassay.experiments.study.result_statistics import CONFIDENCE
from kassay.experiments.study.tables import (
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


_SQUARES = "sum of squares above the minimum"
_COLUMNS: dict[str, Callable[[AssignorSummary], object]] = {
    "groups": lambda found: found.groups,
    "mean excess of the maximum load": lambda found: _percent(found.mean_excess),
    "maximum load above the minimum": lambda found: found.missed_maximum.percent_with_interval,
    "unnecessary moves per rebalance": lambda found: short_number(
        found.unnecessary_moves_per_rebalance
    ),
    "with unnecessary moves": lambda found: found.with_unnecessary_moves.percent_with_interval,
    "does not terminate": lambda found: found.nonterminating,
    "fails": lambda found: found.failed,
    # A page shows the columns above; the CSV file also has those below.
    "with a result": lambda found: found.answered,
    "largest excess": lambda found: _percent(found.largest_excess),
    "unnecessary moves per owned partition": lambda found: _percent(
        found.unnecessary_moves_per_owned, 100
    ),
    _SQUARES: lambda found: found.missed.percent_with_interval,
    "groups with owned partitions": lambda found: found.with_unnecessary_moves.total,
}
_SUBSCRIPTIONS = ("equal", "mixed")


def assignor_table(scope: str, summaries: Mapping[str, AssignorSummary]) -> ReportTable:
    """Create the table of results per assignor on the groups of one scope.

    The sums of squares of groups with weights are not minimised, so their column is missing.
    """
    hidden = {_SQUARES} if scope == APART["weights"] else set()
    columns = [title for title in _COLUMNS if title not in hidden]
    data = [{"assignor": name, **_csv_columns(summary)} for name, summary in summaries.items()]
    return ReportTable.of(
        "assignors" if scope not in APART.values() else f"assignors-{scope.replace(' ', '-')}",
        ("assignor", *columns),
        ((name, *_cells(summary, columns)) for name, summary in summaries.items()),
        data=data,
    )


def headline_table(
    summaries: Mapping[str, AssignorSummary],
    by_subscriptions: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> ReportTable:
    """Create the short table in practical units, with the numbers of groups of each value.

    The cells of the CSV file are those of the table.
    """
    excess, above = "mean excess of the maximum load, %", "maximum load above the minimum, %"
    columns = ["assignor"]
    for kind in _SUBSCRIPTIONS:
        columns += [f"{kind} subscriptions: groups", f"{kind}: {excess}", f"{kind}: {above}"]
    columns += ["groups with owned partitions", "unnecessary moves per rebalance"]
    columns += ["unnecessary moves per owned partition, %"]
    rows = []
    for name, summary in summaries.items():
        cells = [name]
        for found in by_subscriptions[name]:
            share = found.missed_maximum.value
            cells += [str(found.answered), short_number(found.mean_excess)]
            cells += [short_number(None if share is None else 100 * share)]
        owned = summary.unnecessary_moves_per_owned
        cells += [str(summary.with_unnecessary_moves.total)]
        cells += [short_number(summary.unnecessary_moves_per_rebalance)]
        cells += [short_number(None if owned is None else 100 * owned)]
        rows.append(tuple(cells))
    return ReportTable.of("headline", columns, rows)


def subscriptions_table(
    summaries: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> ReportTable:
    """Create the table of results per assignor, for equal and for mixed subscriptions."""
    pairs = [
        (name, kind, summary)
        for name, both in summaries.items()
        for kind, summary in zip(_SUBSCRIPTIONS, both, strict=True)
        if summary.groups
    ]
    data = [
        {"assignor": name, "subscriptions": kind, **_csv_columns(summary)}
        for name, kind, summary in pairs
    ]
    return ReportTable.of(
        "assignors-by-subscriptions",
        ("assignor", "subscriptions", *_COLUMNS),
        ((name, kind, *_cells(summary)) for name, kind, summary in pairs),
        data=data,
    )


def family_results(
    summaries: Mapping[str, Mapping[str, AssignorSummary]],
    counted: pd.DataFrame,
    compared: Sequence[str],
    *,
    weighted: Collection[str],
) -> ReportTable:
    """Create the table of results per family and compared assignor.

    The sums of squares of ``weighted`` families are not minimised, so they have no cells. The CSV
    file has the exact sums of all assignors, and the SHA-256 of the family's results.
    """
    digests = dict(zip(counted["family"], counted["sha256"], strict=True))
    rows = [
        (family, name, summary)
        for family, own in summaries.items()
        for name, summary in own.items()
        if summary.groups
    ]
    data = [
        {"family": family, "assignor": name, **_sums(summary), "sha256": digests.get(family)}
        for family, name, summary in rows
    ]
    cells = (
        (family, name, *_cells(summary, blank={_SQUARES} if family in weighted else ()))
        for family, name, summary in rows
        if name in compared
    )
    columns = ("family", "assignor", *_COLUMNS)
    return ReportTable.of("results-by-family", columns, cells, data=data)


def _sums(summary: AssignorSummary) -> dict[str, int]:
    return {
        "groups": summary.groups,
        "answered": summary.answered,
        "nonterminating": summary.nonterminating,
        "failed": summary.failed,
        "missed": summary.missed.count,
        "missed_maximum": summary.missed_maximum.count,
        "excess_ppm": summary.excess_ppm,
        "known": summary.with_unnecessary_moves.total,
        "wasteful": summary.with_unnecessary_moves.count,
        "owned_partitions": summary.owned_partitions,
        "moves": summary.moves,
        "unnecessary_moves": summary.unnecessary_moves,
    }


def _csv_columns(summary: AssignorSummary) -> dict[str, object]:
    """Return the CSV columns of a summary: counts and interval of each proportion."""
    columns: dict[str, object] = {}
    for name, value in asdict(summary).items():
        share = getattr(summary, name)
        if not isinstance(share, Proportion):
            columns[name] = value
            continue
        columns |= {f"{name}_count": share.count, f"{name}_total": share.total}
        low, high = share.interval or (None, None)
        columns |= {f"{name}_low": low, f"{name}_high": high}
    return columns


def _cells(
    summary: AssignorSummary, columns: Iterable[str] = _COLUMNS, *, blank: Collection[str] = ()
) -> Iterator[str]:
    for column in columns:
        value = "–" if column in blank else _COLUMNS[column](summary)
        yield digits_in_groups(value) if isinstance(value, int) else str(value)


def _percent(value: float | None, factor: float = 1) -> str:
    return "–" if value is None else f"{short_number(factor * value)}\u00a0%"


_COUNTS = {
    "compared": "groups",
    "seeds": "seeds",
    "distinct": "different up to names, at least",
    "with_owners": "with owned partitions",
    "forced": "without choice",
}


def describe_family(family: Mapping[str, object]) -> str:
    """Describe the parameters of a family in one line of text.

    Examples
    --------
    >>> describe_family({"name": "demo", "mixed": True, "event": None, "members": [3, 20]})
    'mixed, members 3 to 20'
    """
    parts: list[str] = []
    for key, value in family.items():
        label = key.replace("_", " ")
        match value:
            case None | False:
                continue
            case True:
                parts.append(label)
            case [int(low), int(high)] if key in ("members", "topics", "partitions"):
                parts.append(f"{label} {low} to {high}")
            case list():
                parts.append(f"{label} {'/'.join(map(_value_text, value))}")
            case dict():
                parts.append(describe_family(value))
            case _ if key != "name":
                parts.append(f"{label} {value}")
    return ", ".join(part for part in parts if part)


def _value_text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def family_table(counted: pd.DataFrame, families: Iterable[Mapping[str, object]]) -> ReportTable:
    """Create the table of the families: numbers of groups, and parameters."""
    counts = counted.set_index("family")
    table = pd.DataFrame(
        [
            (
                name,
                *(int(counts[column].get(name, 0)) for column in _COUNTS),
                describe_family(family),
            )
            for family in families
            for name in (str(family["name"]),)
        ],
        columns=["family", *_COUNTS.values(), "parameters"],
    )
    rows = [tuple(map(str, row)) for row in table.to_numpy()]
    return ReportTable.of("families", table.columns, rows)
