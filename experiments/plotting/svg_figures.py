"""Plots as SVG that sits in the page, each with its data as CSV."""

import html
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kassay.experiments.report.study_summary import Proportion, assignors_of, families_of

EQUAL, MIXED = "#0b66a8", "#c2521b"
INK, MUTED, RULE = "#1f2328", "#57606a", "#d8dee4"
# Lightness falls from step to step, so that print and every eye keeps the order.
STEPS = ("#e6ebf0", "#f8d9a0", "#eda24e", "#c75b2b", "#74240f")
GAP_BINS = ((0, 0), (1, 2), (3, 8), (9, 32), (33, None))
MOVE_BINS = ((0, 0), (1, 1), (2, 3), (4, 7), (8, None))

WIDTH = 4.2  # inches: at a narrow screen's width the text is still read
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kassay",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.spines.bottom": False,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A figure of the report.

    Parameters
    ----------
    name
        File name of its data, without the ending.
    title
        What it shows.
    svg
        The drawing, ready to stand in a page.
    csv
        The numbers drawn.
    """

    name: str
    title: str
    svg: str
    csv: str


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One line of a dot plot: a label, and a share for equal and for mixed subscriptions."""

    label: str
    equal: Proportion
    mixed: Proportion


def dots(rows: Sequence[FigureRow], *, name: str, title: str) -> Plot:
    """Draw shares as dots with their intervals: one line an assignor, two dots a line."""
    with _figure(0.34 * len(rows) + 0.55) as (figure, axes):
        for position, row in enumerate(rows):
            for share, colour, shift in ((row.equal, EQUAL, -0.14), (row.mixed, MIXED, 0.14)):
                if share.value is None:
                    continue
                low, high = share.interval
                y = position + shift
                axes.plot([low, high], [y, y], color=colour, alpha=0.35, linewidth=3)
                axes.plot([share.value], [y], "o", color=colour, markersize=5)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        _percent_axis(axes)
        svg = svg_of(figure, title)
    table = pd.DataFrame(
        [
            {
                "assignor": row.label,
                "subscriptions": kind,
                "groups": share.total,
                "count": share.count,
                "share": share.value,
                "low": share.interval[0],
                "high": share.interval[1],
            }
            for row in rows
            for kind, share in (("equal", row.equal), ("mixed", row.mixed))
        ]
    )
    return Plot(name=name, title=title, svg=svg, csv=table.to_csv(index=False))


def distributions(
    rows: pd.DataFrame, column: str, bins: Sequence[tuple[int, int | None]], *, name: str
) -> Iterator[Plot]:
    """Draw for each assignor how a gap is distributed in each family, as stacked bars."""
    for assignor in assignors_of(rows):
        wanted = (rows["assignor"] == assignor) & rows[column].notna()
        known = rows.loc[wanted, ["family", column]]
        table = _binned(known, column, bins)
        if table.empty:
            continue
        title = f"{assignor}"
        yield Plot(
            name=f"{name}-{assignor}",
            title=title,
            svg=_stacked(table, f"{name.replace('-', ' ')}, {assignor}, by family"),
            csv=table.to_csv(index_label="family"),
        )


def timeline(table: pd.DataFrame, *, name: str, title: str, unit: str) -> Plot:
    """Draw columns over the index of a table, the first one in front, as steps.

    Parameters
    ----------
    table
        At most three columns of numbers, over times or counts.
    name, title
        Of the plot.
    unit
        What the numbers are.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2 * WIDTH, 2.2), layout="constrained")
        axes = figure.subplots()
        for place, (label, colour) in enumerate(
            zip(table.columns, (MIXED, EQUAL, MUTED), strict=False)
        ):
            values = table[label].astype(float)
            axes.step(
                table.index, values, where="post", color=colour, linewidth=1.6, zorder=9 - place
            )
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="y")
        svg = svg_of(figure, title)
    return Plot(name=name, title=title, svg=svg, csv=table.to_csv(index_label="time"))


def bin_labels(bins: Sequence[tuple[int, int | None]]) -> list[str]:
    """Name the bins.

    Examples
    --------
    >>> bin_labels(MOVE_BINS)
    ['0', '1', '2–3', '4–7', '8 or more']
    """
    return [
        str(low) if low == high else f"{low} or more" if high is None else f"{low}–{high}"
        for low, high in bins
    ]


def _binned(
    rows: pd.DataFrame, column: str, bins: Sequence[tuple[int, int | None]]
) -> pd.DataFrame:
    """Count the groups of each family in each bin; families down, bins across."""
    labels = bin_labels(bins)
    counts = pd.DataFrame(
        {
            label: rows[column].between(low, sys.maxsize if high is None else high).astype(int)
            for label, (low, high) in zip(labels, bins, strict=True)
        }
    )
    parts = counts.groupby(rows["family"], observed=True).sum()
    return parts.reindex(list(families_of(rows)))


def _stacked(table: pd.DataFrame, title: str) -> str:
    shares = table.div(table.sum(axis=1), axis=0)
    with _figure(0.215 * len(table) + 0.5) as (figure, axes):
        left = [0.0] * len(table)
        for colour, label in zip(STEPS, table.columns, strict=True):
            widths = shares[label].tolist()
            axes.barh(range(len(table)), widths, left=left, height=0.72, color=colour)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(table)), list(table.index))
        axes.set_ylim(len(table) - 0.5, -0.5)
        _percent_axis(axes)
        return svg_of(figure, title)


def _percent_axis(axes: Axes) -> None:
    axes.set_xlim(-0.015, 1.015)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)


@contextmanager
def _figure(height: float) -> Iterator[tuple[Figure, Axes]]:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes((0.33, 0.32 / height, 0.635, 1 - 0.36 / height))
        yield figure, axes


def svg_of(figure: Figure, title: str) -> str:
    """Write a figure as an SVG element that takes the page's font and width."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r" font-family: [^;\"]*;", "", text)
    label = html.escape(title, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def legend(labels: Sequence[str], colours: Sequence[str]) -> Mapping[str, str]:
    """Pair labels with their colours."""
    return dict(zip(labels, colours, strict=True))
