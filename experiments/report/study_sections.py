"""Sections of the study report: figures, paired comparisons and groups with racks."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd

from kassay.experiments.plotting.matplotlib_figures import Plot, cumulative_shares, dot_plot
from kassay.experiments.plotting.page_templates import BLUE, ORANGE, digits_in_groups
from kassay.experiments.report.assignor_results import Halves, Proportion, main_scope, scope_rows
from kassay.experiments.report.report_table import ReportTable, number_text
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.result_statistics import (
    PROFILED,
    PairedComparison,
    compare_pairs,
    profile,
)
from kassay.experiments.study.tables import APART, assignors_of, families_of

_SUBSCRIPTIONS = {"equal": BLUE, "mixed": ORANGE}


def subscription_plots(halves: Halves) -> tuple[Plot, ...]:
    """Draw the results of each assignor, separately for equal and mixed subscriptions."""
    return tuple(
        _dot_plot(halves, *plot)
        for plot in (
            ("minimum_imbalance", "minimum-imbalance", "Groups with minimum imbalance"),
            ("with_unnecessary_moves", "unnecessary-moves", "Groups with unnecessary moves"),
        )
    )


def _dot_plot(halves: Halves, field: str, name: str, title: str) -> Plot:
    rows = []
    for assignor, pair in halves.items():
        for kind, summary in zip(_SUBSCRIPTIONS, pair, strict=True):
            share: Proportion = getattr(summary, field)
            low, high = share.interval or (None, None)
            row = {"assignor": assignor, "subscriptions": kind, "groups": share.total}
            rows.append(
                row | {"count": share.count, "share": share.value, "low": low, "high": high}
            )
    table = pd.DataFrame(rows)
    return Plot(
        name=name,
        title=title,
        caption="x: share of groups in %, with its 95 % confidence interval if the groups are a "
        "sample. y: assignor.",
        draw=partial(dot_plot, table, _SUBSCRIPTIONS, label=f"{title}, by assignor"),
        csv=table.to_csv(index=False),
    )


_PAIR_COLUMNS = (
    *("from → to", "groups", "minimum imbalance: won", "tied", "lost"),
    *("families: better", "worse", "groups with owned partitions"),
    *("unnecessary moves: fewer", "same", "more", "mean difference (95 %)"),
)


def statistics_section(
    results: StudySummary, names: Sequence[str], compared: Sequence[str]
) -> Mapping[str, object]:
    """Create the tables and figures of the statistics section of a study report."""
    scope = main_scope(results.outcomes)
    counts, profiles = (scope_rows(table, scope) for table in (results.pairs, results.profiles))
    pairs = [compare_pairs(counts, *pair) for pair in itertools.combinations(compared, 2)]
    return {
        "pairs": ReportTable.of(
            "migration", _PAIR_COLUMNS, map(_pair_cells, pairs), data=list(map(asdict, pairs))
        ),
        "profiles": tuple(_profile_plot(profiles, each, names) for each in PROFILED),
    }


def _pair_cells(pair: PairedComparison) -> tuple[str, ...]:
    difference = "–"
    if pair.mean_difference is not None and pair.interval is not None:
        low, high = pair.interval
        difference = f"{pair.mean_difference:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")
    return (
        f"{pair.before} → {pair.after}",
        *map(str, (pair.groups, pair.only_after, pair.both + pair.neither, pair.only_before)),
        *map(str, (pair.families_better, pair.families_worse, pair.moves_known)),
        *map(str, (pair.fewer, pair.same, pair.more)),
        difference,
    )


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
            ticks=(1, 1.5, 2, 3, 5, 10),
        ),
        csv=table.to_csv(),
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
    name: str, columns: Mapping[str, Callable[[_Row], str]], rows: Mapping[tuple[str, str], _Row]
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
