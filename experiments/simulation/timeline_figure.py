"""A history as a picture: who consumes what, when nobody does, and how many members there are."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kassay.experiments.simulation.simulation_result import SimulationResult
from kassay.reference.model.topic_partitions import TopicPartition

_STOP = "#d62728"
_TAB20 = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
_COLOURS = (*_TAB20[:6], *_TAB20[8:])
"""Of members: all of the palette but its two reds, which look like a stop."""


def draw_timeline(history: SimulationResult, file: Path) -> None:
    """Draw a history that was kept; the name of the file decides the format, SVG or PNG.

    Every row is a partition, every colour a member; red is a stop.
    """
    partitions = sorted({stretch.partition for stretch in history.stretches})
    figure = Figure(figsize=(10, 2.2 + 0.13 * len(partitions)), layout="constrained")
    rows, members = figure.subplots(
        2, 1, sharex=True, height_ratios=(max(3, len(partitions) / 5), 1)
    )
    _draw_partitions(rows, history, partitions)
    _draw_members(members, history)
    rows.set_title(f"{history.script}, {history.policy}", loc="left", fontsize=10)
    # No date and fixed ids: the same history gives the same file.
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=110, metadata=metadata)


def _draw_partitions(
    axes: Axes, history: SimulationResult, partitions: list[TopicPartition]
) -> None:
    names = list(dict.fromkeys(stretch.member for stretch in history.stretches))
    colour = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(sorted(names))}
    row = {partition: number for number, partition in enumerate(partitions)}
    free: dict[TopicPartition, int] = {}
    for stretch in sorted(
        history.stretches, key=lambda stretch: (stretch.partition, stretch.start)
    ):
        y, since = row[stretch.partition], free.get(stretch.partition, stretch.start)
        if stretch.start > since:
            axes.barh(y, (stretch.start - since) / 1000, 0.9, left=since / 1000, color=_STOP)
        axes.barh(
            y,
            (stretch.end - stretch.start) / 1000,
            0.8,
            left=stretch.start / 1000,
            color=colour[stretch.member],
        )
        free[stretch.partition] = stretch.end
    for partition, since in free.items():
        if since < history.until:
            rest = (history.until - since) / 1000
            axes.barh(row[partition], rest, 0.9, left=since / 1000, color=_STOP)
    for step in history.settled:
        axes.axvline(step.at / 1000, color="black", linewidth=0.5, alpha=0.6)
    axes.set_yticks(range(len(partitions)), [str(p) for p in partitions], fontsize=6)
    axes.invert_yaxis()
    for name in sorted(colour):
        axes.plot([], [], color=colour[name], linewidth=5, label=name)
    axes.plot([], [], color=_STOP, linewidth=5, label="no consumer")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, frameon=False)


def _draw_members(axes: Axes, history: SimulationResult) -> None:
    moments = [at / 1000 for at, _ in history.members]
    counts = [len(members) for _, members in history.members]
    if moments:
        axes.step([*moments, history.until / 1000], [*counts, counts[-1]], where="post", color="k")
        axes.set_ylim(0, max(counts) + 1)
    axes.set_ylabel("members", fontsize=8)
    axes.set_xlabel("seconds", fontsize=8)
