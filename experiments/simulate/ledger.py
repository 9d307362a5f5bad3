"""Who consumes which partition from when to when, and what it costs when nobody does."""

from collections.abc import Iterable
from dataclasses import dataclass

from reference.partitions import Partitions, TopicPartition

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
    """One topic's partitions, by their numbers; ``since`` is when owner last changed.

    Lists, as members have a handful of partitions each: arrays would take longer to address
    than to go through.
    """

    __slots__ = ("last", "name", "owner", "rate", "since", "stopped", "unread")

    def __init__(self, name: str, rate: int) -> None:
        self.name = name
        self.rate = rate
        self.owner: list[int] = []
        self.last: list[int] = []
        self.since: list[int] = []
        self.stopped = 0
        self.unread = 0

    def grow(self, partitions: int, since: int) -> None:
        """Add partitions that nobody consumes."""
        more = partitions - len(self.owner)
        self.owner += [NOBODY] * more
        self.last += [NOBODY] * more
        self.since += [since] * more

    def count_stop(self, since: int, now: int) -> None:
        """Count the time that a partition has had no consumer."""
        if since != now:
            self.stopped += now - since
            if self.rate:
                self.unread += self.rate * now // 1000 - self.rate * since // 1000


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
        """Add a topic, or partitions to one, which wait for a consumer from now on."""
        if name in self._topics:
            self._topics[name].grow(partitions, now)
        else:
            self._topics[name] = _Topic(name, rate)
            self._topics[name].grow(partitions, NEVER)

    def take(self, member: str, partitions: Partitions, now: int) -> None:
        """Let a member begin to consume.

        Raises
        ------
        OverlapError
            If somebody consumes one of them already.
        """
        who = self._number(member)
        for topic, numbers in self._columns(partitions):
            owner, last, since = topic.owner, topic.last, topic.since
            for number in numbers:
                if owner[number] != NOBODY:
                    raise OverlapError(
                        f"{member!r} takes {topic.name}-{number} at {now} ms, "
                        f"which {self._names[owner[number]]!r} consumes"
                    )
                began = since[number]
                if began != NEVER:
                    topic.count_stop(began, now)
                before = last[number]
                if before not in (who, NOBODY) and before not in self._gone:
                    self.moves += 1
                owner[number] = who
                since[number] = now

    def release(self, member: str, partitions: Partitions, now: int) -> None:
        """Let a member stop consuming."""
        who = self._number(member)
        for topic, numbers in self._columns(partitions):
            owner, last, since = topic.owner, topic.last, topic.since
            for number in numbers:
                if self.stretches is not None:
                    self._keep(TopicPartition(topic.name, number), member, since[number], now)
                owner[number] = NOBODY
                last[number] = who
                since[number] = now

    def present(self, members: Iterable[str]) -> None:
        """Say who is in the group: what the others had is placed anew and not moved."""
        here = {self._number(member) for member in members}
        self._gone = {number for number in range(len(self._names)) if number not in here}

    def owner_of(self, partition: TopicPartition) -> str | None:
        """Return who consumes a partition now."""
        number = self._topics[partition.topic].owner[partition.partition]
        return None if number == NOBODY else self._names[number]

    def unowned(self, topics: Iterable[str]) -> list[TopicPartition]:
        """List the partitions of these topics that nobody consumes now."""
        return [
            TopicPartition(name, number)
            for name in topics
            for number, owner in enumerate(self._topics[name].owner)
            if owner == NOBODY
        ]

    def close(self, now: int) -> None:
        """Count what is still going on up to a moment, such as the end of the run."""
        for name, topic in self._topics.items():
            for number, owner in enumerate(topic.owner):
                if owner != NOBODY:
                    where, start = TopicPartition(name, number), topic.since[number]
                    self._keep(where, self._names[owner], start, now)
                    topic.since[number] = now
                elif topic.since[number] != NEVER:
                    topic.count_stop(topic.since[number], now)
                    topic.since[number] = now

    @property
    def stopped_ms(self) -> int:
        """Partition-milliseconds without a consumer so far."""
        return sum(topic.stopped for topic in self._topics.values())

    @property
    def unread(self) -> int:
        """Messages that came to partitions while they had no consumer."""
        return sum(topic.unread for topic in self._topics.values())

    def _keep(self, partition: TopicPartition, member: str, start: int, now: int) -> None:
        if self.stretches is not None and now > start:
            self.stretches.append(Stretch(partition, member, start, now))

    def _columns(self, partitions: Partitions) -> list[tuple[_Topic, list[int]]]:
        names, numbers = partitions.topics, partitions.numbers
        if len(names) == 1:
            return [(self._topics[names[0]], numbers.tolist())]
        return [
            (self._topics[name], numbers[partitions.codes == code].tolist())
            for code, name in enumerate(names)
        ]

    def _number(self, member: str) -> int:
        number = self._members.get(member)
        if number is None:
            number = self._members[member] = len(self._names)
            self._names.append(member)
        return number
