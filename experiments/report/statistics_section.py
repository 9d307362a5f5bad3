"""Statistics section of the study report: paired comparisons and performance profiles."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

import pandas as pd

from kassay.experiments.plotting.page_figures import Plot, cumulative_shares
from kassay.experiments.report.assignor_summary import main_scope, scope_rows
from kassay.experiments.report.report_table import ReportTable
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.statistics.paired_comparison import PairedComparison, compare_pairs
from kassay.experiments.study.statistics.performance_profiles import (
    PROFILED,
    distribution,
    profile,
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
