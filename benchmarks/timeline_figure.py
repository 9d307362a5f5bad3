"""Figure of a simulation: owner of every partition over time, and number of members."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kassay.experiments.plotting.matplotlib_figures import save_figure
from kassay.experiments.simulation.simulation_result import SimulationResult
from kassay.reference.model.topic_partitions import TopicPartition

_UNOWNED_COLOUR = "#d62728"
_TAB20 = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
_MEMBER_COLOURS = (*_TAB20[:6], *_TAB20[8:])
"""The palette without its two reds, which resemble the colour of unowned time."""


def draw_timeline(result: SimulationResult, file: Path) -> None:
    """Draw the owner of every partition over time, and write the figure to a file.

    The file suffix determines the format.

    Each row is a partition, each colour a member; red is time without a consumer.
    """
    partitions = sorted({interval.partition for interval in result.intervals})
    figure = Figure(figsize=(10, 2.2 + 0.13 * len(partitions)), layout="constrained")
    rows, members = figure.subplots(
        2, 1, sharex=True, height_ratios=(max(3, len(partitions) / 5), 1)
    )
    _draw_partitions(rows, result, partitions)
    _draw_members(members, result)
    rows.set_title(f"{result.script}, {result.policy}", loc="left", fontsize=10)
    save_figure(figure, file)


def _draw_partitions(
    axes: Axes, result: SimulationResult, partitions: list[TopicPartition]
) -> None:
    names = sorted({interval.member for interval in result.intervals})
    colour = {name: _MEMBER_COLOURS[n % len(_MEMBER_COLOURS)] for n, name in enumerate(names)}
    row = {partition: number for number, partition in enumerate(partitions)}

    def draw_bar(partition: TopicPartition, start: int, end: int, member: str | None) -> None:
        height, fill = (0.9, _UNOWNED_COLOUR) if member is None else (0.8, colour[member])
        axes.barh(row[partition], (end - start) / 1000, height, left=start / 1000, color=fill)

    released_at: dict[TopicPartition, int] = {}
    for interval in sorted(result.intervals, key=lambda i: (i.partition, i.start)):
        released = released_at.get(interval.partition, interval.start)
        if interval.start > released:
            draw_bar(interval.partition, released, interval.start, None)
        draw_bar(interval.partition, interval.start, interval.end, interval.member)
        released_at[interval.partition] = interval.end
    for partition, released in released_at.items():
        if released < result.until:
            draw_bar(partition, released, result.until, None)
    for rebalance in result.completed:
        axes.axvline(rebalance.at / 1000, color="black", linewidth=0.5, alpha=0.6)
    axes.set_yticks(range(len(partitions)), [str(p) for p in partitions], fontsize=6)
    axes.invert_yaxis()
    for name in names:
        axes.plot([], [], color=colour[name], linewidth=5, label=name)
    axes.plot([], [], color=_UNOWNED_COLOUR, linewidth=5, label="no consumer")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, frameon=False)


def _draw_members(axes: Axes, result: SimulationResult) -> None:
    times = [at / 1000 for at, _ in result.members]
    counts = [len(members) for _, members in result.members]
    if times:
        axes.step([*times, result.until / 1000], [*counts, counts[-1]], where="post", color="k")
        axes.set_ylim(0, max(counts) + 1)
    axes.set_ylabel("members", fontsize=8)
    axes.set_xlabel("seconds", fontsize=8)
