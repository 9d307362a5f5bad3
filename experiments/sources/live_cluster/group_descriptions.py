"""What is asked of a running cluster, and what it says of each group."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.live_cluster.member_subscription import (
    JoinedSubscription,
    read_subscription,
)
from kassay.experiments.sources.merge_captures import PartitionKey

DEAD = "Dead"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
# A group is read by several questions; it must be the same before and after them.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LiveMember:
    """A member as its group's coordinator describes it.

    Parameters
    ----------
    id, client_id, instance_id
        Its names.
    assigned
        The partitions that it has.
    target
        Those that it shall have, under the consumer protocol.
    """

    id: str
    client_id: str
    instance_id: str | None
    assigned: frozenset[PartitionKey]
    target: frozenset[PartitionKey] | None = None


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A group as its coordinator describes it; members sorted by id."""

    id: str
    state: str
    members: tuple[LiveMember, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic as the cluster describes it; racks as in `kassay.reference.model.group.Topic`."""

    partitions: int
    id: uuid.UUID | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None


class Cluster(Protocol):
    """What a cluster is asked; where it refuses a group or topic, an error stands in its place."""

    def group_ids(self) -> list[str]:
        """Name all consumer groups."""

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | SourceError]:
        """Describe groups."""

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        """Give what members of the classic protocol sent when they joined, by member id."""

    def committed(self, groups: Sequence[str]) -> dict[str, dict[PartitionKey, int] | SourceError]:
        """Give the committed offsets of groups."""

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | SourceError]:
        """Describe topics; those that do not exist are left out."""

    def ends(self, places: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Give end offsets; partitions without a leader are left out."""


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """What was read of one group, and of the topics it has to do with.

    Parameters
    ----------
    group
        Its description.
    subscriptions
        Of its members, by member id, where the cluster tells them.
    committed, ends
        Offsets by partition.
    topics
        Those of its topics that exist.
    appended
        By how much end offsets grew between two samples.
    seconds
        Time between the samples.
    steady
        Whether the group was the same before and after it was read.
    """

    group: LiveGroup
    subscriptions: Mapping[str, JoinedSubscription] = field(default_factory=dict)
    committed: Mapping[PartitionKey, int] = field(default_factory=dict)
    topics: Mapping[str, LiveTopic] = field(default_factory=dict)
    ends: Mapping[PartitionKey, int] = field(default_factory=dict)
    appended: Mapping[PartitionKey, int] = field(default_factory=dict)
    seconds: float = 0.0
    steady: bool = True

    @property
    def places(self) -> set[PartitionKey]:
        """Partitions that a member has or that have a committed offset."""
        return {place for member in self.group.members for place in member.assigned} | set(
            self.committed
        )

    @property
    def topic_names(self) -> set[str]:
        """Topics with such partitions, and those subscribed to."""
        subscribed = {topic for found in self.subscriptions.values() for topic in found.topics}
        return {topic for topic, _ in self.places} | subscribed


def read_groups(
    cluster: Cluster, names: Sequence[str], *, sleep: Callable[[float], None]
) -> dict[str, ClusterReading | SourceError]:
    """Read groups, and those again that change meanwhile, for a while.

    Raises
    ------
    SourceError
        If the cluster cannot be asked.
    """
    readings: dict[str, ClusterReading | SourceError] = {}
    changing = list(names)
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_ATTEMPT_SECONDS)
        before = cluster.describe(changing) if changing else {}
        alive = [name for name in changing if _exists(before[name])]
        sent = cluster.subscriptions(alive) if alive else {}
        offsets = cluster.committed(alive) if alive else {}
        after = cluster.describe(alive) if alive else {}
        for name in changing:
            readings[name] = _reading(name, before[name], after.get(name), sent, offsets.get(name))
        changing = [name for name in changing if not _is_steady(readings[name])]
        if not changing:
            break
    return {name: readings[name] for name in names}


def _exists(found: LiveGroup | SourceError) -> bool:
    return isinstance(found, LiveGroup) and found.state != DEAD


def _is_steady(found: ClusterReading | SourceError) -> bool:
    return isinstance(found, SourceError) or found.steady


def _reading(
    name: str,
    before: LiveGroup | SourceError,
    after: LiveGroup | SourceError | None,
    sent: Mapping[str, bytes],
    committed: dict[PartitionKey, int] | SourceError | None,
) -> ClusterReading | SourceError:
    for failure in (before, after, committed):
        if isinstance(failure, SourceError):
            return failure
    if not isinstance(before, LiveGroup) or not isinstance(after, LiveGroup):
        return SourceError(f"group {name!r}: the cluster has no such consumer group")
    try:
        subscriptions = {
            member.id: read_subscription(
                sent[member.id], where=f"group {name!r}: member {member.id!r}"
            )
            for member in after.members
            if sent.get(member.id)
        }
    except SourceError as error:
        return error
    return ClusterReading(
        group=after,
        subscriptions=subscriptions,
        committed=committed if isinstance(committed, dict) else {},
        steady=before == after and after.state not in REBALANCING,
    )
