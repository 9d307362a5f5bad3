"""Create the tables of a study report: per assignor, per pair of assignors, per family."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from kassay.experiments.plotting.page_templates import NUMBER
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.schemas import (
    APART,
    GENERATED,
    HINDSIGHT,
    OPTIMUM,
    assignors_of,
    families_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Table of a report page. ``name`` is the name of its CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    csv: str

    @classmethod
    def of(
        cls,
        name: str,
        columns: Iterable[str],
        rows: Iterable[tuple[Any, ...]],
        *,
        data: pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    ) -> "ReportTable":
        """Create a table and its CSV file."""
        titles, cells = tuple(columns), tuple(rows)
        frame = pd.DataFrame(cells, columns=titles) if data is None else pd.DataFrame(data)
        return cls(name=name, columns=titles, rows=cells, csv=frame.to_csv(index=False))


def number_text(value: float, sign: str = "") -> str:
    """Format a number with three significant digits, or more if its integer part has more."""
    size = abs(value)
    if not size or math.isnan(value):
        return "–" if size else "0"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    text = f"{value:{sign},.{digits}f}" if size >= 0.001 else f"{value:{sign}.1g}"
    return text.replace("-", "−")


def interval_text(value: float, low: float, high: float, sign: str = "") -> str:
    """Format a value, with its confidence interval if the ends of the interval differ."""
    if low == high:  # the resampled streams all have this value
        return number_text(value, sign)
    return f"{number_text(value, sign)} ({number_text(low, sign)} to {number_text(high, sign)})"


def short_number(value: float | None) -> str:
    """Format a number with three significant digits, or as an integer if it is at least 100."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Proportion:
    r"""Share of groups that have a property, with a confidence interval."""

    count: int
    total: int
    is_sample: bool = True

    @property
    def value(self) -> float | None:
        """Return the share from 0 to 1, or None if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def percent(self) -> str:
        """Format the share in per cent. The texts 0% and 100% are used only for exact values."""
        if not self.total:
            return "–"
        return _percent_text(100 * self.count / self.total, self._decimals) + "%"

    @property
    def percent_of_total(self) -> str:
        """Format the share in per cent, with the total number of groups."""
        return f"{self.percent} of {self.total:,}" if self.total else self.percent

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95% confidence interval of Wilson, or None if the groups are not a sample."""
        if not self.total or not self.is_sample:
            return None
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)

    @property
    def percent_with_interval(self) -> str:
        """Format the share and its confidence interval in per cent."""
        text = self.interval_text
        return self.percent if text is None else f"{self.percent} ({text})"

    @property
    def interval_text(self) -> str | None:
        """Format the confidence interval in per cent, or return None without an interval."""
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
        """Return the number of decimals that distinguishes the share from 0% and 100%."""
        nearest = 100 * min(self.count, self.total - self.count) / self.total
        return 1 if nearest == 0 or nearest >= 0.1 else 1 - math.floor(math.log10(nearest))


def _percent_text(percent: float, decimals: int) -> str:
    text = f"{percent:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class AssignorSummary:
    """Results of an assignor on groups with a proven optimum.

    Groups on which the assignor fails or does not terminate have no result, and are in no other
    category. Values about moves refer to groups with owned partitions.
    """

    sums: Mapping[str, int]  # of the columns of the table `outcomes`, see `study_summary`
    is_sample: bool  # whether the groups are a sample, so that shares have an interval
    largest_excess: int | None  # of the maximum load, in partitions or units of weight
    largest_excess_percent: float | None  # of the minimum
    failure: str | None = None  # case and detail of a failure

    @property
    def minimum_imbalance(self) -> Proportion:
        """Return the share of groups with minimum imbalance among all groups."""
        reached = self.sums["answered"] - self.sums["missed"]
        return Proportion(reached, self.sums["groups"], self.is_sample)

    @property
    def missed(self) -> Proportion:
        """Return the share of groups above minimum imbalance, among groups with a result."""
        return Proportion(self.sums["missed"], self.sums["answered"], self.is_sample)

    @property
    def missed_maximum(self) -> Proportion:
        """Return the share of groups above the minimum makespan, among groups with a result."""
        return Proportion(self.sums["missed_maximum"], self.sums["answered"], self.is_sample)

    @property
    def with_unnecessary_moves(self) -> Proportion:
        """Return the share of groups with unnecessary moves, among groups with a known number."""
        return Proportion(self.sums["wasteful"], self.sums["known"], self.is_sample)

    def share(self, column: str) -> Proportion:
        """Return the share of the groups that a column counts, among all groups."""
        return Proportion(self.sums[column], self.sums["groups"], self.is_sample)

    @property
    def mean_excess(self) -> float | None:
        """Return the mean excess of the makespan, in per cent of its minimum."""
        return self.ratio("excess_ppm", "answered", 1e-4)

    def ratio(self, column: str, per: str, factor: float = 1) -> float | None:
        """Return ``factor`` times the sum of a column divided by another, or None for divisor 0."""
        return factor * self.sums[column] / self.sums[per] if self.sums[per] else None


_LARGEST = ["largest_excess", "largest_excess_ppm"]


def scope_rows(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Select the rows of a study's table that belong to a scope."""
    return rows[rows["scope"] == scope]


def main_scope(outcomes: pd.DataFrame) -> str:
    """Return the scope of the totals: `GENERATED` if it has groups, else the next scope."""
    present = set(outcomes.loc[outcomes["groups"] > 0, "scope"])
    return next((scope for scope in (GENERATED, *APART.values()) if scope in present), GENERATED)


def summarise_rows(outcomes: pd.DataFrame) -> AssignorSummary:
    """Sum the outcome counts of several table rows into one summary."""
    keys = ["family", "scope", "mixed", "assignor", "failure", *_LARGEST]
    sums = outcomes.drop(columns=keys, errors="ignore").sum()
    units, ppm = (None if pd.isna(one) else int(one) for one in outcomes[_LARGEST].max())
    return AssignorSummary(
        sums={str(name): int(total) for name, total in sums.items()},
        is_sample=set(outcomes["scope"]) <= {GENERATED, APART["weights"], APART["racks"]},
        largest_excess=units,
        largest_excess_percent=None if ppm is None else ppm / 10_000,
        failure=next(iter(outcomes.get("failure", pd.Series()).dropna()), None),
    )


Summaries = dict[str, AssignorSummary]
"""Summary of results by assignor."""
Halves = Mapping[str, tuple[AssignorSummary, AssignorSummary]]
"""Summaries for equal and for mixed subscriptions, by assignor."""


def by_assignor(outcomes: pd.DataFrame, names: Sequence[str]) -> Summaries:
    """Summarise the outcome counts of each assignor."""
    return {name: summarise_rows(outcomes[outcomes["assignor"] == name]) for name in names}


def by_subscriptions(outcomes: pd.DataFrame, names: Sequence[str]) -> Halves:
    """Summarise the results of each assignor for equal and for mixed subscriptions."""
    equal, mixed = (
        by_assignor(outcomes[outcomes["mixed"] == flag], names) for flag in (False, True)
    )
    return {name: (equal[name], mixed[name]) for name in names}


def by_scope(outcomes: pd.DataFrame) -> dict[str, Summaries]:
    """Summarise the outcome counts of each scope and assignor."""
    main = main_scope(outcomes)
    order = (main, *(scope for scope in (GENERATED, *APART.values()) if scope != main))
    return {
        scope: by_assignor(rows, assignors_of(rows["assignor"]))
        for scope in order
        if scope != APART["named"] or scope == main
        if (rows := scope_rows(outcomes, scope))["groups"].sum()
    }


def by_family(outcomes: pd.DataFrame) -> dict[str, Summaries]:
    """Summarise the outcome counts of each family and assignor."""
    names = assignors_of(outcomes["assignor"])
    return {
        family: by_assignor(outcomes[outcomes["family"] == family], names)
        for family in families_of(outcomes["family"])
    }


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{short_number(value)}%"


_SQUARES = "sum of squares above the minimum"
_COLUMNS: dict[str, Callable[[AssignorSummary], object]] = {
    "groups": lambda found: found.sums["groups"],
    "mean excess of the maximum load": lambda found: _percent(found.mean_excess),
    "maximum load above the minimum": lambda found: found.missed_maximum.percent_with_interval,
    "unnecessary moves per rebalance": lambda found: short_number(
        found.ratio("unnecessary_moves", "known")
    ),
    "with unnecessary moves": lambda found: found.with_unnecessary_moves.percent_with_interval,
    "does not terminate": lambda found: found.sums["nonterminating"],
    "fails": lambda found: found.sums["failed"],
    # A page shows the columns above. The sums of the others are in the CSV file.
    "with a result": lambda found: found.sums["answered"],
    "largest excess": lambda found: _percent(found.largest_excess_percent),
    "unnecessary moves per owned partition": lambda found: _percent(
        found.ratio("unnecessary_moves", "owned_partitions", 100)
    ),
    _SQUARES: lambda found: found.missed.percent_with_interval,
    "groups with owned partitions": lambda found: found.sums["known"],
}
_SUBSCRIPTIONS = ("equal", "mixed")


def _cells(
    summary: AssignorSummary, columns: Iterable[str] = _COLUMNS, *, blank: Collection[str] = ()
) -> Iterator[str]:
    for column in columns:
        value = "–" if column in blank else _COLUMNS[column](summary)
        yield NUMBER(value) if isinstance(value, int) else str(value)


_CSV_SUMS = (
    *("groups", "answered", "nonterminating", "failed", "missed", "missed_maximum"),
    *("excess_ppm", "known", "wasteful", "owned_partitions", "moves", "unnecessary_moves"),
)
"""Names of the sums in the CSV files of the tables."""


def _csv_row(summary: AssignorSummary, **keys: str) -> dict[str, object]:
    return {**keys, **{name: summary.sums[name] for name in _CSV_SUMS}}


def assignor_table(scope: str, summaries: Summaries) -> ReportTable:
    """Create the table of results per assignor on the groups of one scope.

    The column for sums of squares is missing for groups with weights, as they do not minimise it.
    """
    hidden = {_SQUARES} if scope == APART["weights"] else set()
    columns = [title for title in _COLUMNS if title not in hidden]
    return ReportTable.of(
        "assignors" if scope not in APART.values() else f"assignors-{scope.replace(' ', '-')}",
        ("assignor", *columns),
        ((name, *_cells(summary, columns)) for name, summary in summaries.items()),
        data=[
            _csv_row(summary, assignor=name) | {"largest_excess_%": summary.largest_excess_percent}
            for name, summary in summaries.items()
        ],
    )


def run_time_table(results: StudySummary) -> ReportTable:
    """Create the table of run times per group."""
    quantiles = ("median", "upper", "first")
    times = results.run_times.set_index("contestant").astype(dict.fromkeys(quantiles, float))
    rows: Mapping[Any, Any] = times.to_dict("index")
    names = [name for name in assignors_of(rows) if name not in (OPTIMUM, HINDSIGHT)]
    names += [name for name in (OPTIMUM, HINDSIGHT) if name in rows]
    return ReportTable.of(
        "run-times",
        ("assignor", "groups", "median, ms", "95% of the groups, ms", "first group, ms"),
        (
            (
                name,
                NUMBER(int(rows[name]["runs"])),
                *(number_text(1000 * rows[name][one]) for one in quantiles),
            )
            for name in names
        ),
        data=[{"assignor": name, **rows[name]} for name in names],
    )


def headline_table(summaries: Summaries, halves: Halves) -> ReportTable:
    """Create the table of the main results per assignor, such as the mean excess in per cent."""
    excess, above = "mean excess of the maximum load, %", "maximum load above the minimum, %"
    columns = ["assignor"]
    for kind in _SUBSCRIPTIONS:
        columns += [f"{kind} subscriptions: groups", f"{kind}: {excess}", f"{kind}: {above}"]
    columns += ["groups with owned partitions", "unnecessary moves per rebalance"]
    columns += ["unnecessary moves per owned partition, %"]
    rows = []
    for name, summary in summaries.items():
        cells = [name]
        for found in halves[name]:
            cells += [str(found.sums["answered"]), short_number(found.mean_excess)]
            cells += [short_number(found.ratio("missed_maximum", "answered", 100))]
        cells += [str(summary.sums["known"])]
        cells += [short_number(summary.ratio("unnecessary_moves", "known"))]
        cells += [short_number(summary.ratio("unnecessary_moves", "owned_partitions", 100))]
        rows.append(tuple(cells))
    return ReportTable.of("headline", columns, rows)


def subscriptions_table(halves: Halves) -> ReportTable:
    """Create the table of results per assignor, for equal and for mixed subscriptions."""
    found = [
        (name, kind, summary)
        for name, both in halves.items()
        for kind, summary in zip(_SUBSCRIPTIONS, both, strict=True)
        if summary.sums["groups"]
    ]
    return ReportTable.of(
        "assignors-by-subscriptions",
        ("assignor", "subscriptions", *_COLUMNS),
        ((name, kind, *_cells(summary)) for name, kind, summary in found),
        data=[
            _csv_row(summary, assignor=name, subscriptions=kind)
            | {"largest_excess_%": summary.largest_excess_percent}
            for name, kind, summary in found
        ],
    )


def family_results(
    families: Mapping[str, Summaries], counted: pd.DataFrame, *, weighted: Collection[str]
) -> ReportTable:
    """Create the table of results per family and assignor.

    Cells for sums of squares are empty in ``weighted`` families, which do not minimise it. The CSV
    file has the exact sums, and the SHA-256 of the results of each family.
    """
    digests = dict(zip(counted["family"], counted["sha256"], strict=True))
    rows = [
        (family, name, summary)
        for family, own in families.items()
        for name, summary in own.items()
        if summary.sums["groups"]
    ]
    data = [
        _csv_row(summary, family=family, assignor=name) | {"sha256": digests.get(family)}
        for family, name, summary in rows
    ]
    cells = (
        (family, name, *_cells(summary, blank={_SQUARES} if family in weighted else ()))
        for family, name, summary in rows
    )
    columns = ("family", "assignor", *_COLUMNS)
    return ReportTable.of("results-by-family", columns, cells, data=data)


def share_grid(name: str, families: Mapping[str, Summaries], field: str) -> ReportTable:
    """Create a table of shares of groups per family (row) and assignor (column)."""
    columns = tuple(next(iter(families.values()), {}))
    rows = (
        (family, *(getattr(summaries[one], field).percent_of_total for one in columns))
        for family, summaries in families.items()
    )
    return ReportTable.of(name, ("family", *columns), rows)


_COUNTS = {
    "compared": "groups",
    "seeds": "seeds",
    "distinct": "structurally different groups, at least",
    "with_owners": "with owned partitions",
    "forced": "without choice",
}


def family_table(counted: pd.DataFrame, families: Iterable[str]) -> ReportTable:
    """Create the table of families with their numbers of groups."""
    counts = counted.set_index("family")
    rows = (
        (name, *(str(int(counts[column].get(name, 0))) for column in _COUNTS)) for name in families
    )
    return ReportTable.of("families", ("family", *_COUNTS.values()), rows)


MAIN_MEASURES = (
    *("slots", "sum_of_squares", "movement"),
    *("task_sum_of_squares", "task_topic_spread", "task_movement", "task_stopped_ms"),
    *("task_starts", "state_moves", "standby_moves", "probing_ms", "rebalances"),
)
"""Names of the measures in findings and in published tables."""
_NAMES_AND_SHARE = ("family", "assignor", "measure", "above the minimum")
_MEASURE_COLUMNS = (*_NAMES_AND_SHARE, "mean excess of those", "mean value")
_PRICE_COLUMNS = (*_NAMES_AND_SHARE, "mean excess of all", "largest excess")

_MeasureRow = Mapping[str, Any]


class MeasureSection(NamedTuple):
    """Section of a report on measures: number of cases, findings and table."""

    cases: int
    findings: tuple[str, ...]
    table: ReportTable


def measure_section(results: StudySummary, *, only_main: bool = False) -> MeasureSection | None:
    """Create the report section on measures, or return None if the study has no measures.

    The table has all measures, or the `MAIN_MEASURES` if ``only_main`` is true.
    """
    rows = _ordered_measures(results)
    if not rows:
        return None
    # Standbys are not configured in families without moves of standbys.
    main = [
        row
        for row in rows
        if row["measure"] in MAIN_MEASURES and (row["value"] or row["measure"] != "standby_moves")
    ]
    families = results.families[results.families["family"].isin(DOCUMENT_FAMILIES)]
    shown = main if only_main else rows
    return MeasureSection(
        cases=int(families["groups"].sum()),
        findings=tuple(_measure_findings(main)),
        table=ReportTable.of("measures", _MEASURE_COLUMNS, map(_measure_cells, shown), data=rows),
    )


def _ordered_measures(results: StudySummary) -> list[_MeasureRow]:
    families, main = list(DOCUMENT_FAMILIES), list(MAIN_MEASURES)
    own = results.measures[results.measures["family"].isin(families)]
    records: list[Any] = own.to_dict("records")

    def place(row: _MeasureRow) -> tuple[object, ...]:
        name = row["measure"]
        rank = main.index(name) if name in main else len(main)
        return families.index(row["family"]), row["assignor"], rank, name

    return sorted(records, key=place)


def _measure_cells(row: _MeasureRow) -> tuple[str, ...]:
    name, unit = row["measure"], 1
    if name.endswith("_ms"):
        name, unit = f"{name.removesuffix('_ms')}_s", 1000
    above = "–"
    if row["proven"]:
        share = Proportion(row["above"], row["proven"])
        above = f"{share.percent_with_interval}, {_count(row['above'])} of {_count(row['proven'])}"
    excess = number_text(row["excess"] / unit / row["above"]) if row["above"] else "–"
    return (
        *(row["family"], row["assignor"], name, above, excess),
        number_text(row["value"] / unit / row["answers"]),
    )


def price_table(results: StudySummary) -> ReportTable | None:
    """Create the table of prices: loads, topic spreads and moves above their minimum.

    The difference from the minimum is in per cent of the minimum. For moves, it is a number, as
    their minimum is often 0. The mean is over all groups with a proven minimum.
    """
    prices = results.measures[~results.measures["family"].isin(DOCUMENT_FAMILIES)]
    ranks = {name: place for place, name in enumerate(assignors_of(prices["assignor"]))}
    ranks[OPTIMUM] = -1
    rows: list[Any] = prices.to_dict("records")
    rows.sort(key=lambda row: (row["family"], ranks[row["assignor"]], row["measure"]))
    if not rows:
        return None
    return ReportTable.of("prices", _PRICE_COLUMNS, map(_price_cells, rows), data=rows)


def _price_cells(row: _MeasureRow) -> tuple[str, ...]:
    share, total = Proportion(row["above"], row["proven"], is_sample=False), row["proven"]
    name, factor, unit = row["assignor"], 1e-4, "%"
    mean, most = row["excess_ppm"], row["largest_ppm"]
    if "moves" in row["measure"]:
        mean, most, factor, unit = row["excess"], row["largest_excess"], 1, ""
    return (
        *(row["family"], "every assignor" if name == OPTIMUM else name, row["measure"]),
        f"{share.percent}, {_count(row['above'])} of {_count(total)}" if total else "–",
        short_number(factor * mean / total) + unit if total else "–",
        short_number(factor * most) + unit if total else "–",
    )


def _measure_findings(rows: list[_MeasureRow]) -> Iterator[str]:
    for family, assignor in dict.fromkeys((row["family"], row["assignor"]) for row in rows):
        parts = []
        for row in rows:
            if (row["family"], row["assignor"]) == (family, assignor) and row["above"]:
                share = Proportion(row["above"], row["proven"]).percent_with_interval
                parts.append(f"{row['measure']} in {share} of {_count(row['proven'])} cases")
        if parts:
            yield f"{family}: {assignor} is above the proven minimum of {', '.join(parts)}."
        else:
            yield f"{family}: {assignor} reaches the minimum of each compared measure."


def _count(number: int) -> str:
    return NUMBER(int(number))


CONFIDENCE = 0.95
UPPER_QUANTILE = (1 + CONFIDENCE) / 2
"""Quantile at the upper end of a confidence interval."""
_GROUP_RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Comparison of two assignors by numbers of groups and of families.

    A statistical test over all groups would have no meaning, because the mix of families is chosen.
    The numbers of families show whether the families agree.
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
    and ``difference``: the unnecessary moves of ``after`` minus those of ``before``.
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
    """Return a bootstrap confidence interval of the mean of values with frequencies ``counts``.

    Resampling the counts of distinct values is equivalent to resampling the values.
    """
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(
        total, counts / total, size=_GROUP_RESAMPLES
    )
    low, high = np.quantile(resampled @ values / total, [1 - UPPER_QUANTILE, UPPER_QUANTILE])
    return float(low), float(high)
