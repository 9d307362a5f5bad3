"""Plots that kassay's commands write to SVG and PNG files."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.solver.improvement.explanation import Explanation
from kassay.solver.solution import LevelValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioBars:
    """Maximum load and movement of a scenario; None if there is no solution."""

    label: str
    makespan: LevelValue | None
    movement: LevelValue | None


def draw_frontier(
    points: Sequence[tuple[int, int]], file: Path, *, measure: str, title: str | None = None
) -> None:
    """Draw imbalance by number of moves; the file suffix selects SVG or PNG."""
    _save(_frontier(points, measure, title), file)


def frontier_svg(points: Sequence[tuple[int, int]], *, measure: str) -> str:
    """Return the plot of imbalance by number of moves as an SVG element."""
    text = io.StringIO()
    _save(_frontier(points, measure, None), text)
    return text.getvalue()[text.getvalue().index("<svg") :]


def draw_scenarios(
    scenarios: Sequence[ScenarioBars], file: Path, *, title: str | None = None
) -> None:
    """Draw maximum load and moves of scenarios side by side, with proven bounds as ticks."""
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
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(scenarios)), [one.label for one in scenarios], fontsize=8)
    panels[0].set_ylim(len(scenarios) - 0.4, -0.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    _save(figure, file)


def draw_improvements(
    steps: Sequence[Explanation], file: Path, *, title: str | None = None
) -> None:
    """Draw improving chains of transfers, one panel per step, with loads before and after."""
    widest = max((len(step.members) for step in steps), default=2)
    size = (max(4.8, 1.3 * widest + 1.2), 2.9 * max(1, len(steps)))
    figure = Figure(figsize=size, layout="constrained")
    for row, step in enumerate(steps, start=1):
        axes = figure.add_subplot(len(steps), 1, row)
        axes.set_title(f"step {row}", loc="left", fontsize=9)
        _draw_improvement(axes, step)
    parts = [title] if title else []
    if not steps:
        parts.append("optimal")
    figure.suptitle(": ".join(parts), fontsize=10, x=0.02, ha="left")
    _save(figure, file)


def _draw_improvement(axes: Axes, step: Explanation) -> None:
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
    axes.set_ylabel("partitions")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


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


def _save(figure: Figure, file: Path | io.StringIO) -> None:
    """Save a figure without date and random ids, so that equal figures give equal files."""
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if isinstance(file, Path) and file.suffix != ".svg":
            figure.savefig(file, dpi=110)
        else:
            figure.savefig(file, format="svg", metadata={"Date": None})
