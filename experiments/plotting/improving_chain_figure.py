"""Figure of improving chains, the sequences of transfers that reduce imbalance."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.experiments.plotting.save_figure import save_figure
from kassay.solver.improvement.explanation import Explanation


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
