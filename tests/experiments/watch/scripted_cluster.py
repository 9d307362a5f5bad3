"""Cluster whose groups a test sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup, LiveTopic
from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.reference.model.errors import InputError, RunError
from kassay.reference.model.group import Protocol

Owners = Mapping[str, Sequence[int]]


class ScriptedCluster:
    """Cluster with one topic ``t``; ``groups`` has the partitions of each member by group."""

    def __init__(self, groups: Mapping[str, Owners], *, partitions: int = 8) -> None:
        self.groups = dict(groups)
        self.partitions = partitions
        self.states: dict[str, str] = {}
        self.committed: dict[str, dict[PartitionKey, int]] = {}
        self.is_away = False
        self.subscription: tuple[str, ...] = ("t",)
        self.described = 0

    def group_ids(self) -> list[str]:
        if self.is_away:
            raise RunError("broker:9092: cannot list groups: no answer within 30 s")
        return sorted(self.groups)

    def other_groups(self) -> dict[str, str]:
        return {}

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | InputError]:
        self.described += len(groups)
        return {name: self._described(name) for name in groups}

    def _described(self, name: str) -> LiveGroup:
        members = tuple(
            ObservedMember(
                id=member,
                client_id=member.partition("-")[0],
                owned={("t", number) for number in owned},
                ordered=tuple(("t", number) for number in owned),
                subscription=self.subscription,
                instance_id=member.partition("@")[2] or None,
            )
            for member, owned in self.groups[name].items()
        )
        state = self.states.get(name, "Stable")
        return LiveGroup(name, state, members, "sticky", Protocol.CLASSIC)

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        return {}

    def committed_offsets(
        self, groups: Sequence[str]
    ) -> dict[str, dict[PartitionKey, int] | InputError]:
        return {name: self.committed.get(name, {}) for name in groups}

    def end_offsets(
        self, partitions: Sequence[PartitionKey], *, timeout: float
    ) -> dict[PartitionKey, int]:
        return dict.fromkeys(partitions, 1000)

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | InputError]:
        return {name: LiveTopic(self.partitions) for name in names if name == "t"}


class ScriptedRecords:
    """Records of ``__consumer_offsets`` with one partition; ``log`` has keys and values."""

    def __init__(self, log: Sequence[tuple[bytes, bytes | None]] = ()) -> None:
        self.log = list(log)
        self.problem: str | None = None
        self.is_denied = False
        self.read_from: list[int] = []

    def end_offsets(self) -> dict[int, int]:
        if self.problem is not None:
            raise InputError(self.problem)
        return {0: len(self.log)}

    def read(self, positions: Mapping[int, int]) -> Iterator[dict[str, object]]:
        if self.is_denied and positions:
            raise InputError("cannot read __consumer_offsets: Topic authorization failed")
        for start in positions.values():
            self.read_from.append(start)
            for offset in range(start, len(self.log)):
                key, value = self.log[offset]
                yield {"key": key, "value": value, "partition": 0, "offset": offset, "timestamp": 0}
