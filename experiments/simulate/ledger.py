"""Who consumes which partition from when to when, and what it costs when nobody does."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reference.partitions import Column, Partitions, TopicPartition

NOBODY = -1
NEVER = -1


class OverlapError(RuntimeError):
    """Two members consume one partition at once: a bug of the simulation."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A partition consumed by one member from ``start`` to ``end``, in milliseconds."""

    partition: TopicPartition
    member: str
    start: int
    end: int


class _Topic:
    """One topic's partitions as columns; ``since`` is when owner last changed.

    ``is_new`` says that some partition may never have had a consumer.
    """

    __slots__ = ("is_new", "last", "name", "owner", "rate", "since", "stopped", "unread")

    def __init__(self, name: str, partitions: int, rate: int) -> None:
        self.name = name
        self.rate = rate
        self.owner: Column = np.full(partitions, NOBODY, dtype=np.int32)
        self.last: Column = np.full(partitions, NOBODY, dtype=np.int32)
        self.since: NDArray[np.int64] = np.full(partitions, NEVER, dtype=np.int64)
        self.stopped = 0
        self.unread = 0
        self.is_new = True

    def grow(self, partitions: int, now: int) -> None:
        """Add partitions, which wait for a consumer from now on."""
        fresh = _Topic(self.name, partitions - len(self.owner), self.rate)
        fresh.since[:] = now
        for name in ("owner", "last", "since"):
            setattr(self, name, np.concatenate((getattr(self, name), getattr(fresh, name))))


class Ledger:
    """Accounts of consumption, fed by the consumers as they start and stop.

    A partition has a consumer while a running member that has been assigned it polls. The
    time before its first consumer does not count.

    Examples
    --------
    >>> ledger = Ledger(keep=True)
    >>> ledger.add_topic("t", 1, rate=100, now=0)
    >>> t0 = Partitions.of([("t", 0)])
    >>> ledger.take("a", t0, now=3_000)
    >>> ledger.release("a", t0, now=5_000)
    >>> ledger.take("b", t0, now=9_000)
    >>> ledger.close(now=9_000)
    >>> ledger.stopped_ms, ledger.unread, ledger.moves
    (4000, 400, 1)
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.moves = 0
        self.stretches: list[Stretch] | None = [] if keep else None
        self._topics: dict[str, _Topic] = {}
        self._members: dict[str, int] = {}
        self._names: list[str] = []
        self._gone: set[int] = set()

    def add_topic(self, name: str, partitions: int, *, rate: int, now: int) -> None:
        """Add a topic, or partitions to one."""
        if name in self._topics:
            self._topics[name].grow(partitions, now)
        else:
            self._topics[name] = _Topic(name, partitions, rate)

    def take(self, member: str, partitions: Partitions, now: int) -> None:
        """Let a member begin to consume.

        Raises
        ------
        OverlapError
            If somebody consumes one of them already.
        """
        who = self._number(member)
        for topic, numbers in self._columns(partitions):
            if np.count_nonzero(topic.owner[numbers] != NOBODY):
                owners = {self._names[n] for n in topic.owner[numbers].tolist() if n != NOBODY}
                raise OverlapError(
                    f"{member!r} takes what {sorted(owners)} consume at {now} ms: {partitions!r}"
                )
            self._count_stop(topic, numbers, now)
            before = topic.last[numbers]
            elsewhere = before != who
            if np.count_nonzero(elsewhere):
                moved = before[elsewhere].tolist()
                self.moves += sum(n != NOBODY and n not in self._gone for n in moved)
            topic.owner[numbers] = who
            topic.since[numbers] = now

    def release(self, member: str, partitions: Partitions, now: int) -> None:
        """Let a member stop consuming."""
        who = self._number(member)
        for topic, numbers in self._columns(partitions):
            if self.stretches is not None:
                for number in numbers.tolist():
                    where = TopicPartition(topic.name, number)
                    self._keep(where, member, int(topic.since[number]), now)
            topic.owner[numbers] = NOBODY
            topic.last[numbers] = who
            topic.since[numbers] = now

    def present(self, members: Iterable[str]) -> None:
        """Say who is in the group: what the others had is placed anew and not moved."""
        here = {self._number(member) for member in members}
        self._gone = {number for number in range(len(self._names)) if number not in here}

    def owner_of(self, partition: TopicPartition) -> str | None:
        """Return who consumes a partition now."""
        number = int(self._topics[partition.topic].owner[partition.partition])
        return None if number == NOBODY else self._names[number]

    def unowned(self, topics: Iterable[str]) -> list[TopicPartition]:
        """List the partitions of these topics that nobody consumes now."""
        return [
            TopicPartition(name, number)
            for name in topics
            for number in np.flatnonzero(self._topics[name].owner == NOBODY).tolist()
        ]

    def close(self, now: int) -> None:
        """Count what is still going on up to a moment, such as the end of the run."""
        for name, topic in self._topics.items():
            idle = np.flatnonzero(topic.owner == NOBODY).astype(np.int32)
            self._count_stop(topic, idle, now)
            idle = idle[topic.since[idle] != NEVER]
            topic.since[idle] = now
            busy = np.flatnonzero(topic.owner != NOBODY).tolist()
            for number in busy if self.stretches is not None else ():
                member = self._names[topic.owner[number]]
                self._keep(TopicPartition(name, number), member, int(topic.since[number]), now)
                topic.since[number] = now

    @property
    def stopped_ms(self) -> int:
        """Partition-milliseconds without a consumer so far."""
        return sum(topic.stopped for topic in self._topics.values())

    @property
    def unread(self) -> int:
        """Messages that came to partitions while they had no consumer."""
        return sum(topic.unread for topic in self._topics.values())

    def _count_stop(self, topic: _Topic, numbers: Column, now: int) -> None:
        since = topic.since[numbers]
        if topic.is_new:
            since = since[since != NEVER]
            topic.is_new = bool((topic.since == NEVER).any())
        topic.stopped += now * len(since) - int(since.sum())
        if topic.rate:
            until = topic.rate * now // 1000
            topic.unread += until * len(since) - int((topic.rate * since // 1000).sum())

    def _keep(self, partition: TopicPartition, member: str, start: int, now: int) -> None:
        if self.stretches is not None and now > start:
            self.stretches.append(Stretch(partition, member, start, now))

    def _columns(self, partitions: Partitions) -> list[tuple[_Topic, Column]]:
        names, numbers = partitions.topics, partitions.numbers
        if len(names) == 1:
            return [(self._topics[names[0]], numbers)]
        parts = ((name, numbers[partitions.codes == code]) for code, name in enumerate(names))
        return [(self._topics[name], part) for name, part in parts if len(part)]

    def _number(self, member: str) -> int:
        number = self._members.get(member)
        if number is None:
            number = self._members[member] = len(self._names)
            self._names.append(member)
        return number
