"""What the statistics of a study say, as the page shows it."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from kassay.experiments.plotting import svg_figures as figures
from kassay.experiments.report import study_summary as summary
from kassay.experiments.study.statistics.paired_comparison import PairedComparison, compare_pairs
from kassay.experiments.study.statistics.performance_profiles import distribution, profile
from kassay.experiments.study.statistics.rank_stability import agreement, effects, mean_gaps

COMPARED = ("sticky", "cooperative-sticky", "uniform")
PROFILED = ("sum_of_squares", "makespan", "movement")
# Okabe and Ito's colours but for the yellow, which white paper swallows; dashes tell them
# apart without any colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00", "#000000")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionTable:
    """A table of the page, with its data.

    Parameters
    ----------
    name
        File name of its data, without the ending.
    columns
        Headings.
    rows
        Cells as shown, the heading of the row first.
    csv
        The exact figures.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    csv: str


def statistics_tables(rows: pd.DataFrame) -> Mapping[str, object]:
    """Return what the page tells of pairs, profiles, parameters and measures."""
    names = summary.assignors_of(rows)
    compared = [name for name in COMPARED if name in names] or list(names)
    pairs = [compare_pairs(rows, one, two) for one, two in itertools.combinations(compared, 2)]
    gaps = mean_gaps(rows, assignors=names)
    return {
        "pairs": _pairs(pairs),
        "effects": _numbers(effects(rows, assignors=names), "effect-of-parameters", "assignor"),
        "ranks": _numbers(agreement(gaps), "agreement-of-measures", "measure"),
        "profiles": tuple(
            _lines(
                profile(rows, measure, assignors=names),
                name=f"profile-{measure.replace('_', '-')}",
                title=f"Within a ratio of the least: {measure.replace('_', ' ')}",
                xlabel="(value + 1) / (least + 1), at most",
            )
            for measure in PROFILED
        ),
        "distributions": tuple(
            _steps(rows, column, title, names)
            for column, title in (
                ("sum_of_squares_gap", "Gap of the sum of squares, at most"),
                ("unnecessary_moves", "Unnecessary moves, at most"),
            )
        ),
    }


def _pairs(pairs: Sequence[PairedComparison]) -> SectionTable:
    shown = tuple(
        (
            f"{one.before} → {one.after}",
            str(one.groups),
            str(one.only_after),
            str(one.both + one.neither),
            str(one.only_before),
            "–" if one.p_value is None else f"{one.p_value:.2g}",
            str(one.fewer),
            str(one.same),
            str(one.more),
            _interval(one),
        )
        for one in pairs
    )
    headings = (
        "from → to",
        "groups",
        "least imbalance: won",
        "tied",
        "lost",
        "McNemar p",
        "unnecessary moves: fewer",
        "same",
        "more",
        "mean difference (95 %)",
    )
    csv = pd.DataFrame([asdict(one) for one in pairs]).to_csv(index=False)
    return SectionTable(name="migration", columns=headings, rows=shown, csv=csv)


def _interval(one: PairedComparison) -> str:
    if one.mean_difference is None or one.interval is None:
        return "–"
    low, high = one.interval
    return f"{one.mean_difference:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def _numbers(table: pd.DataFrame, name: str, label: str) -> SectionTable:
    return SectionTable(
        name=name,
        columns=(label, *(str(column).replace("_", " ") for column in table.columns)),
        rows=tuple(
            (
                str(index).replace("_", " "),
                *("–" if math.isnan(x) else f"{x:.2f}".replace("-", "−") for x in values),
            )
            for index, values in zip(table.index, table.to_numpy().tolist(), strict=True)
        ),
        csv=table.to_csv(index_label=label),
    )


def _lines(table: pd.DataFrame, *, name: str, title: str, xlabel: str) -> figures.Plot:
    series = {
        str(column): (table.index.tolist(), table[column].astype(float).tolist())
        for column in table.columns
    }
    svg = _draw(series, title, xlabel, scale="log", ticks=(1, 1.5, 2, 3, 5, 10))
    return figures.Plot(name=name, title=title, svg=svg, csv=table.to_csv())


def _steps(rows: pd.DataFrame, column: str, title: str, names: Sequence[str]) -> figures.Plot:
    table = distribution(rows, column, assignors=names)
    series = {
        str(name): (mine[column].tolist(), mine["share"].tolist())
        for name, mine in table.groupby("assignor", sort=False)
    }
    svg = _draw(series, title, "", scale="symlog", ticks=(0, 1, 10, 100, 1000))
    name = f"distribution-{column.replace('_', '-')}"
    return figures.Plot(name=name, title=title, svg=svg, csv=table.to_csv(index=False))


def _draw(
    series: Mapping[str, tuple[list[float], list[float]]],
    title: str,
    xlabel: str,
    *,
    scale: str,
    ticks: Sequence[float],
) -> str:
    with mpl.rc_context(figures.STYLE):
        figure = Figure(figsize=(figures.WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        for place, (name, (x, y)) in enumerate(series.items()):
            axes.step(
                x,
                y,
                where="post",
                label=name,
                color=COLOURS[place % len(COLOURS)],
                linestyle=DASHES[place % len(DASHES)],
                linewidth=1.6,
            )
        axes.set_xscale(scale)
        top = max([ticks[1], *(value for x, _ in series.values() for value in x)])
        axes.set_xlim(ticks[0], top)
        shown = [tick for tick in ticks if tick <= top]
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.set_xticks([], minor=True)
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
        axes.set_xlabel(xlabel)
        axes.grid(visible=True)
        if series:
            figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
        return figures.svg_of(figure, title)
