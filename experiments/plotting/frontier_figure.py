"""Matplotlib figure of the frontier: imbalance by number of moves."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kassay.experiments.plotting.frontier_drawing import LINEAR_MOVES, MOVE_TICKS, FrontierCurve
from kassay.experiments.plotting.save_figure import save_figure

_BLUE, _GREY, _ORANGE = "#1f77b4", "#8c959f", "#c2521b"


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
