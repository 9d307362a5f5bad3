"""Who consumes which partition from when to when, and what it costs when nobody does."""

from collections.abc import Iterable
from dataclasses import dataclass

from kassay.reference.model.errors import InternalError
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

NOBODY, UNTOUCHED = -1, -2


class OverlapError(InternalError):
    """Two members consume one partition at once: a bug of the simulation."""


@dataclass(frozen=True, slots=True)
class OwnershipInterval:
    """A partition consumed by one member from ``start`` to ``end``, in milliseconds."""

    partition: TopicPartition
    member: str
    start: int
    end: int


class _Topic:
    """One topic's partitions, by their numbers.

    ``owner`` is who consumes it or `NOBODY`, ``last`` who did so last: `NOBODY` for one that
    waits for its first consumer, `UNTOUCHED` while that does not count.

    Lists, as members have a handful of partitions each: arrays would take longer to address
    than to go through. Time without a consumer is the sum of the moments at which it ended
    less the sum of those at which it began, so that no partition is looked at for it.
    """

    __slots__ = ("_stopped", "_unread", "last", "name", "owner", "rate", "waiting")

    def __init__(self, name: str, rate: int) -> None:
        self.name = name
        self.rate = rate
        self.owner: list[int] = []
        self.last: list[int] = []
        self.waiting = 0
        self._stopped = 0
        self._unread = 0

    def grow(self, partitions: int, last: int) -> int:
        """Add partitions that nobody consumes; return how many."""
        more = partitions - len(self.owner)
        self.owner += [NOBODY] * more
        self.last += [last] * more
        return more

    def wait(self, partitions: int, now: int) -> None:
        """Let so many partitions begin to be without a consumer; end it for a negative number."""
        self.waiting += partitions
        self._stopped -= partitions * now
        self._unread -= partitions * (self.rate * now // 1000)

    def stopped(self, now: int) -> int:
        """Partition-milliseconds without a consumer by now."""
        return self._stopped + self.waiting * now

    def unread(self, now: int) -> int:
        """Messages that came meanwhile."""
        return self._unread + self.waiting * (self.rate * now // 1000)


class OwnershipIntervals:
    """Accounts of consumption, fed by the consumers as they start and stop.

    A partition has a consumer while a running member that has been assigned it polls. The
    time before its first consumer does not count.

    Examples
    --------
    >>> ledger = OwnershipIntervals(keep=True)
    >>> ledger.add_topic("t", 1, rate=100, now=0)
    >>> t0 = Partitions.of([("t", 0)])
    >>> ledger.take("a", t0, now=3_000)
    >>> ledger.release(t0, now=5_000)
    >>> ledger.take("b", t0, now=9_000)
    >>> ledger.close(now=9_000)
    >>> ledger.stopped_ms, ledger.unread, ledger.moves
    (4000, 400, 1)
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.moves = 0
        self.stretches: list[OwnershipInterval] | None = [] if keep else None
        self._topics: dict[str, _Topic] = {}
        self._members: dict[str, int] = {}
        self._names: list[str] = []
        self._gone: set[int] = set()
        self._now = 0
        self._begun: dict[TopicPartition, tuple[str, int]] = {}

    def add_topic(self, name: str, partitions: int, *, rate: int, now: int) -> None:
        """Add a topic, or partitions to one, which wait for a consumer from now on."""
        self._now = now
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(name, rate)
            topic.grow(partitions, UNTOUCHED)
        else:
            topic.wait(topic.grow(partitions, NOBODY), now)

    def take(self, member: str, partitions: Partitions, now: int) -> None:
        """Let a member begin to consume.

        Raises
        ------
        OverlapError
            If somebody consumes one of them already.
        """
        who, gone = self._number(member), self._gone
        self._now = now
        for topic, numbers in self._columns(partitions):
            owner, last, untouched = topic.owner, topic.last, 0
            for number in numbers:
                if owner[number] != NOBODY:
                    raise OverlapError(
                        f"{member!r} takes {topic.name}-{number} at {now} ms, "
                        f"which {self._names[owner[number]]!r} consumes"
                    )
                owner[number] = who
                before = last[number]
                if before != who:
                    last[number] = who
                    if before == UNTOUCHED:
                        untouched += 1
                    elif before != NOBODY and before not in gone:
                        self.moves += 1
            topic.wait(untouched - len(numbers), now)
        if self.stretches is not None:
            self._begun.update(dict.fromkeys(partitions, (member, now)))

    def release(self, partitions: Partitions, now: int) -> None:
        """Let whoever consumes them stop."""
        self._now = now
        for topic, numbers in self._columns(partitions):
            owner = topic.owner
            for number in numbers:
                owner[number] = NOBODY
            topic.wait(len(numbers), now)
        if self.stretches is not None:
            self._end(partitions, now)

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
        self._now = now
        goes_on = {partition: (member, now) for partition, (member, _) in self._begun.items()}
        self._end(sorted(goes_on), now)
        self._begun = goes_on

    @property
    def stopped_ms(self) -> int:
        """Partition-milliseconds without a consumer so far."""
        return sum(topic.stopped(self._now) for topic in self._topics.values())

    @property
    def unread(self) -> int:
        """Messages that came to partitions while they had no consumer."""
        return sum(topic.unread(self._now) for topic in self._topics.values())

    def _end(self, partitions: Iterable[TopicPartition], now: int) -> None:
        for partition in partitions:
            member, start = self._begun.pop(partition)
            if self.stretches is not None and now > start:
                self.stretches.append(OwnershipInterval(partition, member, start, now))

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
