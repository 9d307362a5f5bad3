"""Draw figures with Matplotlib, for files and HTML pages."""

import html
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kassay.experiments.plotting.page_templates import BLUE, NUMBER, ORANGE
from kassay.experiments.plotting.svg_drawings import FrontierCurve
from kassay.reference.documents.files import replacing_file

if TYPE_CHECKING:
    import pandas as pd


MUTED = "#57606a"

_LINEAR_MOVES = 40
"""Maximum number of moves on a linear axis. Above it, the axis is logarithmic."""
_MOVE_TICKS = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Ticks of the logarithmic axis of moves, except 0."""


def save_figure(figure: Figure, file: Path | io.StringIO) -> None:
    """Save a figure as SVG or PNG. The suffix of the file selects the format.

    Files contain no date and no random ids, so that equal figures give equal files.
    """
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if not isinstance(file, Path):
            figure.savefig(file, format="svg", metadata={"Date": None})
            return
        suffix = file.suffix.removeprefix(".") or "png"
        with replacing_file(file) as stream:
            if suffix == "svg":
                figure.savefig(stream, format="svg", metadata={"Date": None})
            else:
                figure.savefig(stream, format=suffix, dpi=110)


def frontier_figure(curve: FrontierCurve, *, measure: str, title: str | None = None) -> Figure:
    """Draw the minimum imbalance by number of moves as a Matplotlib figure."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in curve.points]
    imbalance = [float(y) for _, y in curve.points]
    if curve.points:
        axes.step(moves, imbalance, where="post", color=BLUE, linewidth=1.2)
        axes.plot(moves, imbalance, "o", color=BLUE, markersize=4, label="best found")
    unproven = [(x, float(y)) for x, y in curve.unproven]
    if unproven:
        axes.plot(*zip(*unproven, strict=True), "_", color=MUTED, markersize=9, label="lower bound")
    if curve.prefixes:
        x, y = zip(*((x, float(y)) for x, y in curve.prefixes), strict=True)
        axes.step(
            x, y, where="post", color=ORANGE, linewidth=1.1, linestyle="--", label="list of moves"
        )
    if len(curve.points) == 1:
        # For a single point, Matplotlib chooses axis limits without an integer tick between them.
        axes.set_xlim(max(moves[0] - 1, 0) - 0.5, moves[0] + 1.5)
        axes.set_ylim(max(imbalance[0] - 1, 0) - 0.5, imbalance[0] + 1.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if max(moves, default=0) > _LINEAR_MOVES:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xticks([0, *(tick for tick in _MOVE_TICKS if tick <= 2 * max(moves))])
        axes.minorticks_off()
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: NUMBER(round(value))))
    axes.set_xlabel("partitions moved")
    axes.set_ylabel(measure.replace("_", " "))
    axes.grid(alpha=0.3)
    if unproven or curve.prefixes:
        axes.legend(frameon=False, fontsize=8)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    return figure


def frontier_svg(curve: FrontierCurve, *, measure: str) -> str:
    """Draw the minimum imbalance by number of moves as an SVG element."""
    name = measure.replace("_", " ")
    (first, start), (last, end) = curve.points[0], curve.points[-1]
    label = f"{name} from {start:,} at {first:,} moves to {end:,} at {last:,} moves"
    with mpl.rc_context(fname=_STYLE):
        return svg_of(frontier_figure(curve, measure=measure), label)


_WIDTH = 4.2  # inches: the text stays readable on a narrow screen
_STYLE = Path(__file__).with_name("page.mplstyle")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Figure of an HTML page, with a caption and its data as CSV.

    ``name`` is the name of the CSV file without its suffix. ``draw`` returns the SVG element.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], str]
    csv: str

    @cached_property
    def svg(self) -> str:
        """Return the SVG element of the figure, which is drawn on first use."""
        return self.draw()


def dot_plot(table: "pd.DataFrame", colours: Mapping[str, str], *, label: str) -> str:
    """Draw shares with confidence intervals, one row per assignor.

    The table has the columns ``assignor``, ``subscriptions``, ``share``, ``low`` and ``high``; the
    last three are from 0 to 1. ``low`` and ``high`` are None for shares without interval.
    """
    names = list(dict.fromkeys(table["assignor"]))
    height = 0.3 * len(names) + 0.5
    with mpl.rc_context(fname=_STYLE):
        figure = Figure(figsize=(_WIDTH, height))
        # Margins do not depend on the height.
        axes = figure.add_axes((0.33, 0.32 / height, 0.635, 1 - 0.36 / height))
        for place, (series, colour) in enumerate(colours.items()):
            rows = table[(table["subscriptions"] == series) & table["share"].notna()]
            y = [names.index(name) + 0.3 * (place - 0.5) for name in rows["assignor"]]
            low, high = (rows[end].astype(float) for end in ("low", "high"))
            axes.hlines(y, low, high, color=colour, alpha=0.35, linewidth=3)
            axes.plot(rows["share"].astype(float), y, "os"[place], color=colour, markersize=4.5)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(-0.015, 1.015)
        axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", "25", "50", "75", "100%"))
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
        return svg_of(figure, label)


def svg_of(figure: Figure, label: str) -> str:
    """Convert a Matplotlib figure to an SVG element that uses the page's font."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r" font-family: [^;\"]*;", "", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
