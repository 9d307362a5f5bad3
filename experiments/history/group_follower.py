"""Find the rebalances of a consumer group while the records of the group arrive."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kassay.experiments.history.generations import Generation, counts_by_generation
from kassay.experiments.history.group_records import GroupRecord
from kassay.experiments.history.history_rows import rebalance_row
from kassay.experiments.history.rebalances import RebalanceFinder
from kassay.experiments.history.reconstruct_generations import GenerationReplay


@dataclass(slots=True)
class GroupFollower:
    """Finder of one group's rebalances, which keeps state between batches of records.

    A record is applied once: records up to the last applied offset are skipped. A generation
    is complete when the next one begins, or when `close` is called. Each
    rebalance is returned only once.
    """

    replay: GenerationReplay
    finder: RebalanceFinder = field(default_factory=RebalanceFinder)
    counts: dict[str, int] = field(default_factory=dict)
    offset: int = -1
    complete: tuple[int, int] = (-1, -1)  # incarnation and number of the last complete generation

    @classmethod
    def of(cls, group: str, state: bytes | None) -> "GroupFollower":
        """Restore the follower of a group from the bytes of `state`, or create a new follower."""
        if state is None:
            return cls(GenerationReplay(group, {}))
        follower: GroupFollower = pickle.loads(state)  # noqa: S301 - of the own checkpoint
        return follower

    def state(self) -> bytes:
        """Serialise the follower to bytes, from which `of` restores the follower.

        The topic names of the cluster are not included.
        """
        self.replay.topic_names = {}
        return pickle.dumps(self)

    def apply(
        self, records: Iterable[GroupRecord], given: Mapping[str, int]
    ) -> Iterator[dict[str, object]]:
        """Apply records in order of offset, and yield a row for each completed rebalance.

        ``given`` are known partition counts by topic.
        """
        for record in records:
            if record.offset is None or record.offset <= self.offset:
                continue
            self.offset = record.offset
            for generation in self.replay.apply(record):
                yield from self._rows(generation, given)

    def close(self, given: Mapping[str, int]) -> Iterator[dict[str, object]]:
        """Treat the last generation as complete, and yield the row of its rebalance, if any."""
        if self.replay.pending is not None:
            yield from self._rows(self.replay.pending, given)

    def _rows(
        self, generation: Generation, given: Mapping[str, int]
    ) -> Iterator[dict[str, object]]:
        number = (generation.incarnation, generation.number)
        if number <= self.complete:
            return
        self.complete = number
        observed = {topic: max(n, given.get(topic, 0)) for topic, n in self.counts.items()}
        [counts] = counts_by_generation([generation], {**given, **observed})
        self.counts = {**observed, **counts}
        for rebalance in self.finder.add(generation, self.counts):
            yield rebalance_row(rebalance)
