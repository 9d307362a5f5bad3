"""Ownership intervals of partitions, and total time in which partitions have no consumer."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kassay.reference.model.errors import InternalError
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

NO_OWNER, NEVER_OWNED = -1, -2


class OverlapError(InternalError):
    """Internal error: two simulated members consume one partition at the same time."""


@dataclass(frozen=True, slots=True)
class OwnershipInterval:
    """A partition consumed by one member from ``start`` to ``end``, in milliseconds."""

    partition: TopicPartition
    member: str
    start: int
    end: int


@dataclass(slots=True)
class _Topic:
    """Owners of a topic's partitions, indexed by partition number.

    ``last`` is the last consumer of a partition. It is `NO_OWNER` for a partition that was added
    to a running topic: its time before the first consumer counts. It is `NEVER_OWNED` for other
    partitions before their first consumer: this time does not count.
    """

    name: str
    rate: int
    owner: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    unowned: int = 0
    _unowned_ms: int = 0
    _unowned_messages: int = 0

    def grow(self, partitions: int, last: int) -> int:
        """Add unowned partitions up to a total count, and return the number of added partitions."""
        added = partitions - len(self.owner)
        self.owner += [NO_OWNER] * added
        self.last += [last] * added
        return added

    def change_unowned(self, change: int, now: int) -> None:
        """Change the number of unowned partitions by ``change``, which may be negative."""
        self.unowned += change
        self._unowned_ms -= change * now
        self._unowned_messages -= change * (self.rate * now // 1000)

    def unowned_ms(self, now: int) -> int:
        return self._unowned_ms + self.unowned * now

    def unowned_messages(self, now: int) -> int:
        return self._unowned_messages + self.unowned * (self.rate * now // 1000)


class OwnershipIntervals:
    """Record of the partitions that consumers acquire and release over time.

    A partition has a consumer while a member to which it is assigned runs and polls. The
    time before the first consumer is not counted.

    Examples
    --------
    >>> ownership = OwnershipIntervals()
    >>> ownership.add_topic("t", 1, rate=100, now=0)
    >>> t0 = Partitions.of([("t", 0)])
    >>> ownership.acquire("a", t0, now=3_000)
    >>> ownership.release(t0, now=5_000)
    >>> ownership.acquire("b", t0, now=9_000)
    >>> ownership.close(now=9_000)
    >>> ownership.unowned_ms, ownership.unowned_messages, ownership.moves
    (4000, 400, 1)
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.moves = 0
        self.intervals: list[OwnershipInterval] | None = [] if keep else None
        self._topics: dict[str, _Topic] = {}
        self._members: dict[str, int] = {}
        self._absent: set[int] = set()
        self._now = 0
        self._open: dict[TopicPartition, tuple[str, int]] = {}

    def add_topic(self, name: str, partitions: int, *, rate: int, now: int) -> None:
        """Add a topic, or add partitions to an existing topic."""
        self._now = now
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(name, rate)
            topic.grow(partitions, NEVER_OWNED)
        else:
            topic.change_unowned(topic.grow(partitions, NO_OWNER), now)

    def acquire(self, member: str, partitions: Partitions, now: int) -> None:
        """Record that a member starts to consume partitions.

        Raise `OverlapError` if a partition already has a consumer.
        """
        new_owner, absent = self._number(member), self._absent
        self._now = now
        for topic, numbers in self._columns(partitions):
            owner, last, never_owned = topic.owner, topic.last, 0
            for number in numbers:
                if owner[number] != NO_OWNER:
                    raise OverlapError(
                        f"{member!r} acquires {topic.name}-{number} at {now} ms, "
                        f"but {list(self._members)[owner[number]]!r} consumes it"
                    )
                owner[number] = new_owner
                previous = last[number]
                if previous != new_owner:
                    last[number] = new_owner
                    if previous == NEVER_OWNED:
                        never_owned += 1
                    elif previous != NO_OWNER and previous not in absent:
                        self.moves += 1
            topic.change_unowned(never_owned - len(numbers), now)
        if self.intervals is not None:
            self._open.update(dict.fromkeys(partitions, (member, now)))

    def release(self, partitions: Partitions, now: int) -> None:
        """Record that the current consumers of partitions stop consuming them."""
        self._now = now
        for topic, numbers in self._columns(partitions):
            owner = topic.owner
            for number in numbers:
                owner[number] = NO_OWNER
            topic.change_unowned(len(numbers), now)
        if self.intervals is not None:
            self._end(partitions, now)

    def set_members(self, members: Iterable[str]) -> None:
        """Set the current members. A partition taken over from a former member is no move."""
        present = {self._number(member) for member in members}
        self._absent = set(self._members.values()) - present

    def unowned(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of the given topics that have no consumer."""
        return [
            TopicPartition(name, number)
            for name in topics
            for number, owner in enumerate(self._topics[name].owner)
            if owner == NO_OWNER
        ]

    def close(self, now: int) -> None:
        """Extend the totals and the recorded intervals to the time ``now``."""
        self._now = now
        reopened = {partition: (member, now) for partition, (member, _) in self._open.items()}
        self._end(sorted(reopened), now)
        self._open = reopened

    @property
    def unowned_ms(self) -> int:
        """Return the total time without a consumer, in partition-milliseconds."""
        return sum(topic.unowned_ms(self._now) for topic in self._topics.values())

    @property
    def unowned_messages(self) -> int:
        """Return the number of messages produced to partitions without a consumer."""
        return sum(topic.unowned_messages(self._now) for topic in self._topics.values())

    def _end(self, partitions: Iterable[TopicPartition], now: int) -> None:
        for partition in partitions:
            member, start = self._open.pop(partition)
            if self.intervals is not None and now > start:
                self.intervals.append(OwnershipInterval(partition, member, start, now))

    def _columns(self, partitions: Partitions) -> list[tuple[_Topic, list[int]]]:
        names, numbers = partitions.topics, partitions.numbers
        if len(names) == 1:
            return [(self._topics[names[0]], numbers.tolist())]
        return [
            (self._topics[name], numbers[partitions.codes == code].tolist())
            for code, name in enumerate(names)
        ]

    def _number(self, member: str) -> int:
        return self._members.setdefault(member, len(self._members))
