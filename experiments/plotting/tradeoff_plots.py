"""Pictures of trade-offs, as files."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.experiments.planning.what_if_scenarios import ScenarioResult

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
    figure = _staircase(points, measure, title)
    _save(figure, file)


def frontier_svg(points: Sequence[tuple[int, int]], *, measure: str) -> str:
    """Draw a frontier as SVG to put into a page; see `draw_frontier`."""
    text = io.StringIO()
    _save(_staircase(points, measure, None), text)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _staircase(points: Sequence[tuple[int, int]], measure: str, title: str | None) -> Figure:
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    moves = [x for x, _ in points]
    imbalance = [float(y) for _, y in points]
    if points:
        axes.step(moves, imbalance, where="post", color="#1f77b4", linewidth=1.2)
        axes.plot(moves, imbalance, "o", color="#1f77b4", markersize=4)
    if len(points) == 1:
        # Alone, a point gets limits so close that only fractions lie between them.
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
    outcomes: Sequence[ScenarioResult], file: Path, *, title: str | None = None
) -> None:
    """Draw greatest load and moves of scenarios side by side, the proven bounds as ticks.

    Parameters
    ----------
    outcomes
        What `kassay.experiments.planning.what_if` found, in order.
    file
        Where to; its name decides the format, SVG or PNG.
    title
        Above the picture, if any.
    """
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(outcomes)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    rows = range(len(outcomes))
    for axes, label, colour, levels in (
        (panels[0], "greatest load", "#0b66a8", [one.makespan for one in outcomes]),
        (panels[1], "owned partitions moved", "#c2521b", [one.movement for one in outcomes]),
    ):
        found = [(row, level) for row, level in zip(rows, levels, strict=True) if level is not None]
        places = [row for row, _ in found]
        axes.barh(places, [level.value for _, level in found], color=colour, height=0.62)
        axes.plot([level.bound for _, level in found], places, "|", color="black", markersize=8)
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    names = [
        one.scenario.name + (f" ({len(one.unserved)} topics unread)" if one.unserved else "")
        for one in outcomes
    ]
    panels[0].set_yticks(list(rows), names, fontsize=8)
    panels[0].set_ylim(len(outcomes) - 0.4, -0.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    _save(figure, file)


def draw_steps(
    steps: Sequence[tuple[Sequence[tuple[str, str, str]], Mapping[str, tuple[int, int]]]],
    file: Path,
    *,
    title: str | None = None,
) -> None:
    """Draw chains of transfers over the loads before and after them, a row a step.

    Parameters
    ----------
    steps
        Transfers (partition, giver, taker) in order, and (before, after) of the load of
        every member along the chain, in partitions; one pair a step.
    file
        Where to; its name decides the format, SVG or PNG.
    title
        Above the picture, if any.
    """
    widest = max((len(loads) for _, loads in steps), default=2)
    size = (max(4.8, 1.3 * widest + 1.2), 2.9 * max(1, len(steps)))
    figure = Figure(figsize=size, layout="constrained")
    for row, (transfers, loads) in enumerate(steps, start=1):
        axes = figure.add_subplot(len(steps), 1, row)
        axes.set_title(f"step {row}", loc="left", fontsize=9)
        _draw_step(axes, transfers, loads)
    words = [title] if title else []
    if not steps:
        words.append("nothing improves it")
    figure.suptitle(": ".join(words), fontsize=10, x=0.02, ha="left")
    _save(figure, file)


def _draw_step(
    axes: Axes, transfers: Sequence[tuple[str, str, str]], loads: Mapping[str, tuple[int, int]]
) -> None:
    place = {member: at for at, member in enumerate(loads)}
    before = [float(load) for load, _ in loads.values()]
    after = [float(load) for _, load in loads.values()]
    axes.bar([at - 0.18 for at in place.values()], before, 0.34, color="#b8c4d0", label="before")
    axes.bar([at + 0.18 for at in place.values()], after, 0.34, color="#1f77b4", label="after")
    top = max([*before, *after, 1.0])
    for level, (partition, giver, taker) in enumerate(transfers, start=1):
        height = top * (1 + 0.2 * level)
        arrow = {"arrowstyle": "-|>", "color": "#c44e52", "linewidth": 1.4}
        start, end = (place[giver], height), (place[taker], height)
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
        middle = (place[giver] + place[taker]) / 2
        axes.text(middle, height + 0.02 * top, partition, ha="center", va="bottom", fontsize=8)
    axes.set_ylim(0, top * (1.25 + 0.2 * len(transfers)))
    axes.set_xlim(-0.6, len(place) - 0.4)
    axes.set_xticks(list(place.values()), list(place))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("partitions")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


def _save(figure: Figure, file: Path | io.StringIO) -> None:
    """Save without a date and with fixed ids: the same figure gives the same file."""
    drawn = isinstance(file, Path) and file.suffix != ".svg"
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if drawn:
            figure.savefig(file, dpi=110)
        else:
            figure.savefig(file, format="svg", metadata={"Date": None})
