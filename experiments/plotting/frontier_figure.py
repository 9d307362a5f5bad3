"""Figure of the frontier: imbalance by number of moves."""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.experiments.plotting.save_figure import save_figure


def draw_frontier(
    points: Sequence[tuple[int, int]], file: Path, *, measure: str, title: str | None = None
) -> None:
    """Draw imbalance by number of moves, as SVG or PNG depending on the file suffix."""
    save_figure(_frontier(points, measure, title), file)


def frontier_svg(points: Sequence[tuple[int, int]], *, measure: str) -> str:
    """Return the plot of imbalance by number of moves as an SVG element."""
    text = io.StringIO()
    save_figure(_frontier(points, measure, None), text)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _frontier(points: Sequence[tuple[int, int]], measure: str, title: str | None) -> Figure:
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in points]
    imbalance = [float(y) for _, y in points]
    if points:
        axes.step(moves, imbalance, where="post", color="#1f77b4", linewidth=1.2)
        axes.plot(moves, imbalance, "o", color="#1f77b4", markersize=4)
    if len(points) == 1:
        # matplotlib's limits for a single point are so close that only fractions lie between.
        axes.set_xlim(max(moves[0] - 1, 0) - 0.5, moves[0] + 1.5)
        axes.set_ylim(max(imbalance[0] - 1, 0) - 0.5, imbalance[0] + 1.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("partitions moved")
    axes.set_ylabel(measure.replace("_", " "))
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    return figure
