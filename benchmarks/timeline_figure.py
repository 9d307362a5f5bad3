"""Figure of a simulation: owner of every partition over time, and number of members."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kassay.experiments.plotting.matplotlib_figures import save_figure
from kassay.experiments.simulation.simulation_result import ConsumedPartitions, SimulationResult
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_UNOWNED_COLOUR = "#d62728"
_TAB20 = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
_MEMBER_COLOURS = (*_TAB20[:6], *_TAB20[8:])
"""The palette without its two reds, which resemble the colour of unowned time."""


class OwnershipInterval(NamedTuple):
    """A partition consumed by one member from ``start`` to ``end``, in milliseconds."""

    partition: TopicPartition
    start: int
    end: int
    member: str


class RecordedPartitions(ConsumedPartitions):
    """Consumed partitions, with the interval of each owner."""

    def __init__(self) -> None:
        super().__init__()
        self.intervals: list[OwnershipInterval] = []
        self._open: dict[TopicPartition, tuple[str, int]] = {}

    def acquire(self, member: str, partitions: Partitions, now: int) -> None:
        """Start an interval of each partition."""
        super().acquire(member, partitions, now)
        self._open.update(dict.fromkeys(partitions, (member, now)))

    def release(self, partitions: Partitions, now: int) -> None:
        """End the intervals of partitions."""
        super().release(partitions, now)
        self._end(partitions.to_list(), now)

    def close(self, now: int) -> None:
        """Record the open intervals up to ``now``; they continue in further intervals."""
        super().close(now)
        reopened = {partition: (member, now) for partition, (member, _) in self._open.items()}
        self._end(sorted(reopened), now)
        self._open = reopened

    def _end(self, partitions: Sequence[TopicPartition], now: int) -> None:
        for partition in partitions:
            member, start = self._open.pop(partition)
            if now > start:
                self.intervals.append(OwnershipInterval(partition, start, now, member))


def draw_timeline(
    result: SimulationResult, intervals: Sequence[OwnershipInterval], file: Path
) -> None:
    """Draw the owner of every partition over time, and write the figure to a file.

    The file suffix determines the format.

    Each row is a partition, each colour a member; red is time without a consumer.
    """
    partitions = sorted({interval.partition for interval in intervals})
    figure = Figure(figsize=(10, 2.2 + 0.13 * len(partitions)), layout="constrained")
    rows, members = figure.subplots(
        2, 1, sharex=True, height_ratios=(max(3, len(partitions) / 5), 1)
    )
    _draw_partitions(rows, result, intervals, partitions)
    _draw_members(members, result)
    rows.set_title(f"{result.script}, {result.policy}", loc="left", fontsize=10)
    save_figure(figure, file)


def _draw_partitions(
    axes: Axes,
    result: SimulationResult,
    intervals: Sequence[OwnershipInterval],
    partitions: list[TopicPartition],
) -> None:
    names = sorted({interval.member for interval in intervals})
    colour = {name: _MEMBER_COLOURS[n % len(_MEMBER_COLOURS)] for n, name in enumerate(names)}
    row = {partition: number for number, partition in enumerate(partitions)}

    def draw_bar(partition: TopicPartition, start: int, end: int, member: str | None) -> None:
        height, fill = (0.9, _UNOWNED_COLOUR) if member is None else (0.8, colour[member])
        axes.barh(row[partition], (end - start) / 1000, height, left=start / 1000, color=fill)

    released_at: dict[TopicPartition, int] = {}
    for interval in sorted(intervals, key=lambda i: (i.partition, i.start)):
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
    times = [one.at / 1000 for one in result.rebalances]
    counts = [len(one.client_ids) for one in result.rebalances]
    if times:
        axes.step([*times, result.until / 1000], [*counts, counts[-1]], where="post", color="k")
        axes.set_ylim(0, max(counts) + 1)
    axes.set_ylabel("members", fontsize=8)
    axes.set_xlabel("seconds", fontsize=8)
