"""Sections of the study report: figures, paired comparisons and groups with racks."""

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd

from kassay.experiments.plotting.matplotlib_figures import (
    Plot,
    cumulative_shares,
    dot_plot,
    stacked_bars,
)
from kassay.experiments.plotting.page_templates import BLUE, ORANGE, digits_in_groups
from kassay.experiments.report.assignor_results import (
    AssignorSummary,
    Proportion,
    main_scope,
    scope_rows,
)
from kassay.experiments.report.report_table import ReportTable, number_text
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.result_statistics import (
    PROFILED,
    PairedComparison,
    compare_pairs,
    distribution,
    profile,
)
from kassay.experiments.study.tables import APART, SumColumn, assignors_of, families_of

_SUBSCRIPTIONS = {"equal": BLUE, "mixed": ORANGE}
_OUTCOMES: dict[str, str] = {SumColumn.MISSED: BLUE, SumColumn.WASTEFUL: ORANGE}


_NO_RESULT = "no result"
GAP_BINS = {"0": 0, "1–2": 1, "3–8": 3, "9–32": 9, "33 or more": 33, _NO_RESULT: sys.maxsize}
MOVE_BINS = {"0": 0, "1": 1, "2–3": 2, "4–7": 4, "8 or more": 8, _NO_RESULT: sys.maxsize}
"""Lowest number of unnecessary moves in each histogram bin, by the label of the bin.

The last bin contains the groups on which the assignor has no result.
"""


def subscription_plots(
    summaries: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> tuple[Plot, ...]:
    """Draw the results of each assignor, separately for equal and mixed subscriptions."""
    return tuple(
        _dot_plot(
            {
                (assignor, kind): getattr(summary, field)
                for assignor, pair in summaries.items()
                for kind, summary in zip(_SUBSCRIPTIONS, pair, strict=True)
            },
            _SUBSCRIPTIONS,
            series="subscriptions",
            name=name,
            title=title,
        )
        for field, name, title in (
            ("minimum_imbalance", "minimum-imbalance", "Groups with minimum imbalance"),
            ("with_unnecessary_moves", "unnecessary-moves", "Groups with unnecessary moves"),
        )
    )


def family_plots(families: Mapping[str, Mapping[str, AssignorSummary]]) -> Iterator[Plot]:
    """Draw one figure per family: how often each assignor misses the optimum."""
    for family, summaries in families.items():
        shares = {
            (assignor, outcome): share
            for assignor, summary in summaries.items()
            for outcome, share in zip(
                _OUTCOMES, (summary.missed, summary.with_unnecessary_moves), strict=True
            )
        }
        if any(share.total for share in shares.values()):
            yield _dot_plot(
                shares, _OUTCOMES, series="outcome", name=f"family-{family}", title=family
            )


def distributions(
    gaps: pd.DataFrame, gap: str, bins: Mapping[str, int], *, name: str
) -> Iterator[Plot]:
    """Draw one figure per assignor: the distribution of a heuristic gap in each family.

    ``gaps`` counts ``groups`` by ``gap``, ``family``, ``assignor`` and ``value``. The value is
    missing if the assignor has no result.
    """
    rows = gaps[gaps["gap"] == gap]
    for assignor in assignors_of(rows["assignor"]):
        counts = _count_in_bins(rows[rows["assignor"] == assignor], bins)
        yield Plot(
            name=f"{name}-{assignor}",
            title=assignor,
            caption="x: share of groups in %. y: family.",
            draw=partial(
                stacked_bars, counts, label=f"{name.replace('-', ' ')}, {assignor}, by family"
            ),
            csv=counts.to_csv(index_label="family"),
        )


def _dot_plot(
    shares: Mapping[tuple[str, str], Proportion],
    colours: Mapping[str, str],
    *,
    series: str,
    name: str,
    title: str,
) -> Plot:
    table = pd.DataFrame(
        [
            {
                "assignor": assignor,
                "series": kind,
                "groups": share.total,
                "count": share.count,
                "share": share.value,
                **dict(zip(("low", "high"), share.interval or (None, None), strict=True)),
            }
            for (assignor, kind), share in shares.items()
        ]
    )
    return Plot(
        name=name,
        title=title,
        caption="x: share of groups in %, with its 95 % confidence interval if the groups are a "
        "sample. y: assignor.",
        draw=partial(dot_plot, table, colours, label=f"{title}, by assignor"),
        csv=table.rename(columns={"series": series}).to_csv(index=False),
    )


def _count_in_bins(rows: pd.DataFrame, bins: Mapping[str, int]) -> pd.DataFrame:
    """Count the groups per family (rows) and histogram bin (columns)."""
    values = rows["value"].fillna(sys.maxsize).astype("int64")
    bin_of = pd.cut(values, [*bins.values(), math.inf], right=False, labels=list(bins))
    counts = pd.crosstab(
        rows["family"], bin_of, values=rows["groups"].astype("int64"), aggfunc="sum", dropna=False
    )
    return counts.fillna(0).astype(int).reindex(list(families_of(rows["family"])))


_PAIR_COLUMNS = (
    *("from → to", "groups", "minimum imbalance: won", "tied", "lost"),
    *("families: better", "worse", "groups with owned partitions"),
    *("unnecessary moves: fewer", "same", "more", "mean difference (95 %)"),
)


def statistics_section(
    results: StudySummary, names: Sequence[str], compared: Sequence[str]
) -> Mapping[str, object]:
    """Create the tables and figures of the statistics section of a study report."""
    pairs = itertools.combinations(compared, 2)
    scope = main_scope(results.outcomes)
    gaps, counts, profiles = (
        scope_rows(table, scope) for table in (results.gaps, results.pairs, results.profiles)
    )
    owned = gaps[gaps["owned"].fillna(value=False).astype(bool)]
    return {
        "pairs": _pair_table([compare_pairs(counts, one, two) for one, two in pairs]),
        "profiles": tuple(_profile_plot(profiles, each, names) for each in PROFILED),
        "distributions": tuple(
            _distribution_plot(rows, column, title, names)
            for rows, column, title in (
                (gaps, "sum_of_squares_gap", "Gap of the sum of squares"),
                (owned, "unnecessary_moves", "Unnecessary moves"),
            )
        ),
    }


def _pair_table(pairs: Sequence[PairedComparison]) -> ReportTable:
    rows = tuple(
        (
            f"{pair.before} → {pair.after}",
            *map(str, (pair.groups, pair.only_after, pair.both + pair.neither, pair.only_before)),
            *map(str, (pair.families_better, pair.families_worse, pair.moves_known)),
            *map(str, (pair.fewer, pair.same, pair.more)),
            _mean_difference(pair),
        )
        for pair in pairs
    )
    return ReportTable.of("migration", _PAIR_COLUMNS, rows, data=[asdict(pair) for pair in pairs])


def _mean_difference(pair: PairedComparison) -> str:
    if pair.mean_difference is None or pair.interval is None:
        return "–"
    low, high = pair.interval
    return f"{pair.mean_difference:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")


def _profile_plot(profiles: pd.DataFrame, measure: str, names: Sequence[str]) -> Plot:
    table = profile(profiles, measure, assignors=names)
    ratios = table.index.tolist()
    title = f"Performance profile: {measure.replace('_', ' ')}"
    return Plot(
        name=f"profile-{measure.replace('_', '-')}",
        title=title,
        caption="x: ratio to the minimum, as (value + 1) / (minimum + 1), logarithmic. "
        "y: share of groups in % with at most this ratio.",
        draw=partial(
            cumulative_shares,
            {str(name): (ratios, table[name].astype(float).tolist()) for name in table.columns},
            label=title,
            xlabel="(value + 1) / (minimum + 1)",
            scale="log",
            ticks=(1, 1.5, 2, 3, 5, 10),
        ),
        csv=table.to_csv(),
    )


def _distribution_plot(gaps: pd.DataFrame, column: str, title: str, names: Sequence[str]) -> Plot:
    table = distribution(gaps, column, assignors=names)
    series = {
        str(name): (part[column].tolist(), part["share"].tolist())
        for name, part in table.groupby("assignor", sort=False)
    }
    unit = "partitions" if column == "unnecessary_moves" else "squared partitions"
    return Plot(
        name=f"distribution-{column.replace('_', '-')}",
        title=title,
        caption=f"x: {title[0].lower()}{title[1:]} in {unit}, logarithmic above 1. "
        "y: share of groups in % with a result of at most this value.",
        draw=partial(
            cumulative_shares,
            series,
            label=title,
            xlabel=unit,
            scale="symlog",
            ticks=(0, 1, 10, 100, 1000),
        ),
        csv=table.to_csv(index=False),
    )


_Row = Mapping[str, int]  # sums of one family and assignor
# How moves are judged, by the prefix of the columns of the table `fronts`.
_MOVES = {
    "same_racks": "no more off-rack reads",
    "any_racks": "any off-rack reads",
    "no_racks": "without racks",
}


def rack_section(results: StudySummary) -> Mapping[str, ReportTable] | None:
    """Create the tables about groups with racks and owned partitions, or None without groups."""
    if results.fronts.empty:
        return None
    fronts = _by_family(results.fronts)
    outcomes = scope_rows(results.outcomes, APART["racks"])
    totals = _by_family(outcomes[["family", "assignor", "groups", "answered"]])
    rows = {
        (family, assignor): {
            **fronts[family, assignor],
            "without_result": total["groups"] - total["answered"],
        }
        for family in families_of(family for family, _ in fronts)
        for assignor in assignors_of(name for other, name in fronts if other == family)
        for total in [totals[family, assignor]]
    }
    return {
        "front": _table("racks-front", _FRONT_COLUMNS, rows),
        "moves": _table("racks-moves", _MOVE_COLUMNS, rows),
    }


def _by_family(rows: pd.DataFrame) -> dict[tuple[str, str], _Row]:
    """Sum the numbers in the rows of each family and assignor."""
    sums = rows.groupby(["family", "assignor"]).sum(numeric_only=True)
    found: Mapping[Any, Mapping[Any, int]] = sums.astype(int).to_dict("index")
    return {key: {str(name): value for name, value in row.items()} for key, row in found.items()}


def _table(
    name: str,
    columns: Mapping[str, Callable[[_Row], str]],
    rows: Mapping[tuple[str, str], _Row],
) -> ReportTable:
    """Create a table with one row per family and assignor. Its CSV file has the exact sums."""
    return ReportTable.of(
        name,
        ("family", "assignor", *columns),
        ((*key, *(cell(row) for cell in columns.values())) for key, row in rows.items()),
        data=[
            {"family": family, "assignor": assignor, **row}
            for (family, assignor), row in rows.items()
        ],
    )


def _share(count: str, total: str) -> Callable[[_Row], str]:
    """Return a function that formats a share with its interval and its numbers of groups."""

    def cell(row: _Row) -> str:
        numbers = " of ".join(digits_in_groups(row[name]) for name in (count, total))
        return f"{Proportion(row[count], row[total]).percent_with_interval}, {numbers}"

    return cell


def _mean(value: str, total: str, factor: int = 1) -> Callable[[_Row], str]:
    """Return a function that formats a sum divided by another sum."""
    return lambda row: number_text(factor * row[value] / row[total]) if row[total] else "–"


def _number(name: str) -> Callable[[_Row], str]:
    return lambda row: digits_in_groups(row[name])


_FRONT_COLUMNS = {
    "groups": _number("groups"),
    "on the front": _share("on_front", "front_known"),
    "avoidable imbalance": _share("avoidable_imbalance_groups", "avoidable_imbalance_known"),
    "avoidable off-rack reads": _share("avoidable_reads_groups", "avoidable_reads_known"),
    "unnecessary moves": _share("same_racks_groups", "same_racks_known"),
    "off-rack reads, % of partitions": _mean("off_rack", "partitions", 100),
    "avoidable off-rack reads per group": _mean("avoidable_reads", "avoidable_reads_known"),
    "without a result": _number("without_result"),
}
_MOVE_COLUMNS = {
    "groups": _number("groups"),
    "moves per rebalance": _mean("moves", "groups"),
    **{
        f"groups with unnecessary moves: {title}": _share(f"{name}_groups", f"{name}_known")
        for name, title in _MOVES.items()
    },
    **{
        f"unnecessary moves per rebalance: {title}": _mean(name, f"{name}_known")
        for name, title in _MOVES.items()
    },
}
