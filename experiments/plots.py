"""Pictures of trade-offs, as files."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

FORMATS = (".svg", ".png")


def draw_frontier(
    points: Sequence[tuple[int, int]], file: Path, *, measure: str, title: str | None = None
) -> None:
    """Draw a frontier as a staircase; the name of the file decides the format, SVG or PNG.

    Parameters
    ----------
    points
        (moves, imbalance) by ascending moves.
    file
        Where to.
    measure
        Name of the imbalance, for its axis.
    title
        Above the picture, if any.
    """
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in points]
    imbalance = [float(y) for _, y in points]
    if points:
        axes.step(moves, imbalance, where="post", color="#1f77b4", linewidth=1.2)
        axes.plot(moves, imbalance, "o", color="#1f77b4", markersize=4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("partitions moved")
    axes.set_ylabel(measure.replace("_", " "))
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    # No date and fixed ids: the same points give the same file.
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=110, metadata=metadata)
