"""Messages: produced at a rate, read up to a position, committed now and then."""

from collections.abc import Callable

from kassay.experiments.simulation.script import TopicPlan
from kassay.reference.model.topic_partitions import Partitions, TopicPartition


class Traffic:
    """Positions of every partition, in messages; exact, at any moment of virtual time.

    Parameters
    ----------
    committed
        Committed offset of a partition, by the coordinator's account.

    Examples
    --------
    >>> traffic = Traffic(lambda partition: 0)
    >>> traffic.add_topic(TopicPlan(name="t", partitions=1, rate=10), now=0)
    >>> traffic.start(Partitions.of([("t", 0)]))
    >>> traffic.read(Partitions.of([("t", 0)]), limit=None, now=2_000)
    20
    >>> traffic.lag(now=2_500)
    5
    """

    def __init__(self, committed: Callable[[TopicPartition], int]) -> None:
        self.rereads = 0
        self.lag_peak = 0
        self._committed = committed
        self._rates: dict[TopicPartition, int] = {}
        self._births: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._furthest: dict[TopicPartition, int] = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is produced at all."""
        return bool(self._rates)

    def add_topic(self, plan: TopicPlan, now: int) -> None:
        """Begin to produce to a topic's partitions, or to those it has grown by."""
        for number in range(plan.partitions if plan.rate else 0):
            partition = TopicPartition(plan.name, number)
            if partition not in self._rates:
                self._rates[partition] = plan.rate
                self._births[partition] = now
                self._furthest[partition] = 0

    def produced(self, partition: TopicPartition, now: int) -> int:
        """Count the messages of a partition so far."""
        rate, birth = self._rates[partition], self._births[partition]
        return rate * (now - birth) // 1000

    def start(self, partitions: Partitions) -> None:
        """Go to the committed offsets, as whoever is assigned partitions does."""
        if self.is_on:
            for partition in partitions:
                if partition in self._rates:
                    offset = self._committed(partition)
                    self.rereads += max(0, self._furthest[partition] - offset)
                    self._positions[partition] = offset

    def read(self, partitions: Partitions, limit: int | None, now: int) -> int:
        """Read on in partitions, from one after the other, up to a limit in all."""
        done = 0
        for partition in partitions:
            if partition not in self._rates:
                continue
            position = self._positions[partition]
            there = self.produced(partition, now) - position
            taken = there if limit is None else min(there, limit - done)
            self._positions[partition] = position + taken
            self._furthest[partition] = max(self._furthest[partition], position + taken)
            done += taken
        return done

    def positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return what a consumer would commit."""
        return {p: self._positions[p] for p in partitions if p in self._positions}

    def lag(self, now: int) -> int:
        """Count the messages not read yet, and note the most there ever were."""
        lag = sum(self.produced(p, now) - self._furthest[p] for p in self._rates)
        self.lag_peak = max(self.lag_peak, lag)
        return lag
