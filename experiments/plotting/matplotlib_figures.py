"""Matplotlib figures in SVG or PNG files: frontiers, improving chains and what-if scenarios."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kassay.experiments.plotting.frontier_drawing import LINEAR_MOVES, MOVE_TICKS, FrontierCurve
from kassay.solver.network.improving_chains import Explanation
from kassay.solver.solution import LevelValue

_BLUE, _GREY, _ORANGE = "#1f77b4", "#8c959f", "#c2521b"


def save_figure(figure: Figure, file: Path | io.StringIO) -> None:
    """Save a figure as SVG or PNG, depending on the file suffix, or as SVG to a buffer.

    Figures are saved without date and random ids. Equal figures give equal files.
    """
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if isinstance(file, Path) and file.suffix != ".svg":
            figure.savefig(file, dpi=110)
        else:
            figure.savefig(file, format="svg", metadata={"Date": None})


def draw_frontier(
    curve: FrontierCurve, file: Path, *, measure: str, title: str | None = None
) -> None:
    """Draw the frontier, and save the figure as SVG or PNG depending on the file suffix."""
    save_figure(frontier_figure(curve, measure=measure, title=title), file)


def frontier_figure(curve: FrontierCurve, *, measure: str, title: str | None = None) -> Figure:
    """Draw the frontier (imbalance by number of moves) as a Matplotlib figure."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in curve.points]
    imbalance = [float(y) for _, y in curve.points]
    if curve.points:
        axes.step(moves, imbalance, where="post", color=_BLUE, linewidth=1.2)
        axes.plot(moves, imbalance, "o", color=_BLUE, markersize=4, label="best found")
    unproven = [(x, float(y)) for x, y in curve.unproven]
    if unproven:
        axes.plot(*zip(*unproven, strict=True), "_", color=_GREY, markersize=9, label="lower bound")
    if curve.prefixes:
        x, y = zip(*((x, float(y)) for x, y in curve.prefixes), strict=True)
        axes.step(
            x, y, where="post", color=_ORANGE, linewidth=1.1, linestyle="--", label="list of moves"
        )
    if len(curve.points) == 1:
        # For a single point, Matplotlib chooses axis limits without an integer tick between them.
        axes.set_xlim(max(moves[0] - 1, 0) - 0.5, moves[0] + 1.5)
        axes.set_ylim(max(imbalance[0] - 1, 0) - 0.5, imbalance[0] + 1.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if max(moves, default=0) > LINEAR_MOVES:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xticks([0, *(tick for tick in MOVE_TICKS if tick <= 2 * max(moves))])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.minorticks_off()
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("partitions moved")
    axes.set_ylabel(measure.replace("_", " "))
    axes.grid(alpha=0.3)
    if unproven or curve.prefixes:
        axes.legend(frameon=False, fontsize=8)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    return figure


def draw_improving_chains(
    steps: Sequence[Explanation], file: Path, *, title: str | None = None
) -> None:
    """Draw one panel per improving chain, with its transfers and the loads before and after."""
    widest = max((len(step.members) for step in steps), default=2)
    size = (max(4.8, 1.3 * widest + 1.2), 2.9 * max(1, len(steps)))
    figure = Figure(figsize=size, layout="constrained")
    for row, step in enumerate(steps, start=1):
        axes = figure.add_subplot(len(steps), 1, row)
        axes.set_title(f"step {row}", loc="left", fontsize=9)
        _draw_chain(axes, step)
    parts = [title] if title else []
    if not steps:
        parts.append("optimal")
    figure.suptitle(": ".join(parts), fontsize=10, x=0.02, ha="left")
    save_figure(figure, file)


def _draw_chain(axes: Axes, step: Explanation) -> None:
    place = {member: index for index, (member, _, _) in enumerate(step.members)}
    before = [float(load) for _, load, _ in step.members]
    after = [float(load) for _, _, load in step.members]
    axes.bar([x - 0.18 for x in place.values()], before, 0.34, color="#b8c4d0", label="before")
    axes.bar([x + 0.18 for x in place.values()], after, 0.34, color="#1f77b4", label="after")
    top = max([*before, *after, 1.0])
    arrow = {"arrowstyle": "-|>", "color": "#c44e52", "linewidth": 1.4}
    for level, transfer in enumerate(step.transfers, start=1):
        height = top * (1 + 0.2 * level)
        start, end = place[transfer.giver], place[transfer.taker]
        axes.annotate("", xy=(end, height), xytext=(start, height), arrowprops=arrow)
        place_of_text = ((start + end) / 2, height + 0.02 * top)
        axes.text(*place_of_text, str(transfer.partition), ha="center", va="bottom", fontsize=8)
    axes.set_ylim(0, top * (1.25 + 0.2 * len(step.transfers)))
    axes.set_xlim(-0.6, len(place) - 0.4)
    axes.set_xticks(list(place.values()), list(place))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("load")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioBars:
    """Bars of one what-if scenario: maximum load and movement, or None without a solution."""

    label: str
    makespan: LevelValue | None
    movement: LevelValue | None


def draw_scenarios(
    scenarios: Sequence[ScenarioBars], file: Path, *, title: str | None = None
) -> None:
    """Draw the maximum load and the moves of what-if scenarios, with their lower bounds."""
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(scenarios)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, label, colour, levels in (
        (panels[0], "maximum load", "#0b66a8", [one.makespan for one in scenarios]),
        (panels[1], "owned partitions moved", "#c2521b", [one.movement for one in scenarios]),
    ):
        known = [(row, level) for row, level in enumerate(levels) if level is not None]
        rows = [row for row, _ in known]
        axes.barh(rows, [level.value for _, level in known], color=colour, height=0.62)
        axes.plot([level.bound for _, level in known], rows, "|", color="black", markersize=8)
        axes.set_xlabel(f"{label} (mark: lower bound)")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(scenarios)), [one.label for one in scenarios], fontsize=8)
    panels[0].set_ylim(len(scenarios) - 0.4, -0.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    save_figure(figure, file)
