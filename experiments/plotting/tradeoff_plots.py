"""Plots of frontiers, scenarios and improving chains, as SVG or PNG files."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.solver.solution import LevelValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioBars:
    """Maximum load and movement of one scenario; None if it has no assignment."""

    label: str
    makespan: LevelValue | None
    movement: LevelValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """One chain of transfers.

    Parameters
    ----------
    transfers
        (partition, from, to) per transfer, in order.
    loads
        (before, after) per member along the chain, in partitions.
    """

    transfers: Sequence[tuple[str, str, str]]
    loads: Mapping[str, tuple[int, int]]


def draw_frontier(
    points: Sequence[tuple[int, int]], file: Path, *, measure: str, title: str | None = None
) -> None:
    """Draw a frontier as a step function.

    Parameters
    ----------
    points
        (moves, imbalance) by ascending moves.
    file
        Output file; its suffix selects SVG or PNG.
    measure
        Imbalance measure, the label of its axis.
    """
    _save(_staircase(points, measure, title), file)


def frontier_svg(points: Sequence[tuple[int, int]], *, measure: str) -> str:
    """Draw a frontier as an SVG element for a page; see `draw_frontier`."""
    buffer = io.StringIO()
    _save(_staircase(points, measure, None), buffer)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _staircase(points: Sequence[tuple[int, int]], measure: str, title: str | None) -> Figure:
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in points]
    imbalance = [float(y) for _, y in points]
    if points:
        axes.step(moves, imbalance, where="post", color="#1f77b4", linewidth=1.2)
        axes.plot(moves, imbalance, "o", color="#1f77b4", markersize=4)
    if len(points) == 1:
        # The default limits around a single point are too close for integer ticks.
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


def draw_scenarios(
    scenarios: Sequence[ScenarioBars], file: Path, *, title: str | None = None
) -> None:
    """Draw maximum load and movement of scenarios as bars, with the bounds as ticks."""
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(scenarios)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    rows = range(len(scenarios))
    for axes, label, colour, levels in (
        (panels[0], "maximum load", "#0b66a8", [one.makespan for one in scenarios]),
        (panels[1], "owned partitions moved", "#c2521b", [one.movement for one in scenarios]),
    ):
        bars = [(row, level) for row, level in zip(rows, levels, strict=True) if level is not None]
        heights = [row for row, _ in bars]
        axes.barh(heights, [level.value for _, level in bars], color=colour, height=0.62)
        axes.plot([level.bound for _, level in bars], heights, "|", color="black", markersize=8)
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    panels[0].set_yticks(list(rows), [one.label for one in scenarios], fontsize=8)
    panels[0].set_ylim(len(scenarios) - 0.4, -0.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    _save(figure, file)


def draw_steps(steps: Sequence[ChainStep], file: Path, *, title: str | None = None) -> None:
    """Draw chains of transfers above the loads before and after, one row per step."""
    widest = max((len(step.loads) for step in steps), default=2)
    size = (max(4.8, 1.3 * widest + 1.2), 2.9 * max(1, len(steps)))
    figure = Figure(figsize=size, layout="constrained")
    for row, step in enumerate(steps, start=1):
        axes = figure.add_subplot(len(steps), 1, row)
        axes.set_title(f"step {row}", loc="left", fontsize=9)
        _draw_step(axes, step)
    parts = [title] if title else []
    if not steps:
        parts.append("optimal")
    figure.suptitle(": ".join(parts), fontsize=10, x=0.02, ha="left")
    _save(figure, file)


def _draw_step(axes: Axes, step: ChainStep) -> None:
    columns = {member: column for column, member in enumerate(step.loads)}
    before = [float(load) for load, _ in step.loads.values()]
    after = [float(load) for _, load in step.loads.values()]
    axes.bar([x - 0.18 for x in columns.values()], before, 0.34, color="#b8c4d0", label="before")
    axes.bar([x + 0.18 for x in columns.values()], after, 0.34, color="#1f77b4", label="after")
    top = max([*before, *after, 1.0])
    for level, (partition, source, target) in enumerate(step.transfers, start=1):
        height = top * (1 + 0.2 * level)
        arrow = {"arrowstyle": "-|>", "color": "#c44e52", "linewidth": 1.4}
        start, end = (columns[source], height), (columns[target], height)
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
        middle = (columns[source] + columns[target]) / 2
        axes.text(middle, height + 0.02 * top, partition, ha="center", va="bottom", fontsize=8)
    axes.set_ylim(0, top * (1.25 + 0.2 * len(step.transfers)))
    axes.set_xlim(-0.6, len(columns) - 0.4)
    axes.set_xticks(list(columns.values()), list(columns))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("partitions")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


def _save(figure: Figure, file: Path | io.StringIO) -> None:
    """Save a figure. Equal figures give equal files: no date, fixed ids."""
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if isinstance(file, Path) and file.suffix != ".svg":
            figure.savefig(file, dpi=110)
        else:
            figure.savefig(file, format="svg", metadata={"Date": None})
