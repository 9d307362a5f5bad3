"""Groups of a running cluster as group documents: read only, and no group is ever joined."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from experiments.sources.errors import SourceError
from experiments.sources.files import Imported
from experiments.sources.gather import Place, SeenGroup, SeenMember
from experiments.sources.join import Joining, Weights, to_group
from experiments.sources.live_subscription import Subscription, read_subscription
from reference.group import Group, InvalidGroupError

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
    assigned: frozenset[Place]
    target: frozenset[Place] | None = None


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A group as its coordinator describes it; members sorted by id."""

    id: str
    state: str
    members: tuple[LiveMember, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic as the cluster describes it; racks as in `reference.group.Topic`."""

    partitions: int
    id: uuid.UUID | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None


class Cluster(Protocol):
    """What a cluster is asked; an answer that it refuses for one group is an error in its place."""

    def group_ids(self) -> list[str]:
        """Name all consumer groups."""

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | SourceError]:
        """Describe groups."""

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        """Give what members of the classic protocol sent when they joined, by member id."""

    def committed(self, groups: Sequence[str]) -> dict[str, dict[Place, int] | SourceError]:
        """Give the committed offsets of groups."""

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic]:
        """Describe topics; those that do not exist are left out."""

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """Give end offsets; partitions without a leader are left out."""


@dataclass(frozen=True, slots=True)
class Reading:
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
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    committed: Mapping[Place, int] = field(default_factory=dict)
    topics: Mapping[str, LiveTopic] = field(default_factory=dict)
    ends: Mapping[Place, int] = field(default_factory=dict)
    appended: Mapping[Place, int] = field(default_factory=dict)
    seconds: float = 0.0
    steady: bool = True

    @property
    def places(self) -> set[Place]:
        """Partitions that a member has or that have a committed offset."""
        return {place for member in self.group.members for place in member.assigned} | set(
            self.committed
        )

    @property
    def topic_names(self) -> set[str]:
        """Topics with such partitions, and those subscribed to."""
        subscribed = {topic for found in self.subscriptions.values() for topic in found.topics}
        return {topic for topic, _ in self.places} | subscribed


def import_live(
    cluster: Cluster,
    groups: Sequence[str],
    joining: Joining,
    *,
    sample_seconds: float = 10.0,
    skip_empty: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Imported]:
    """Read groups of a cluster and yield them, sorted by id.

    Parameters
    ----------
    cluster
        Asked.
    groups
        Group ids; all consumer groups if there are none.
    joining
        How to fill in what the cluster does not tell. Partition counts are the cluster's.
    sample_seconds
        Time between the two samples of a rate.
    skip_empty
        Whether to leave out groups without members.
    sleep, clock
        Time.

    Raises
    ------
    SourceError
        If the cluster cannot be asked.
    """
    names = sorted(set(groups)) if groups else sorted(cluster.group_ids())
    readings = _read_groups(cluster, names, sleep)
    sound = {name: found for name, found in readings.items() if isinstance(found, Reading)}
    wanted = sorted({topic for reading in sound.values() for topic in reading.topic_names})
    topics = cluster.topics(wanted) if wanted else {}
    places = sorted(
        (name, number) for name, topic in topics.items() for number in range(topic.partitions)
    )
    ends: dict[Place, int] = {}
    appended: dict[Place, int] = {}
    seconds = 0.0
    if joining.weights is not Weights.NONE and places:
        started, ends = clock(), cluster.ends(places)
        if joining.weights is Weights.RATE:
            sleep(sample_seconds)
            seconds, later = clock() - started, cluster.ends(places)
            appended = {p: later[p] - ends[p] for p in places if p in ends and p in later}
    for name, found in readings.items():
        if isinstance(found, SourceError):
            yield Imported(name, error=str(found))
            continue
        reading = replace(found, topics=topics, ends=ends, appended=appended, seconds=seconds)
        yield _imported(reading, joining, skip_empty=skip_empty)


def _read_groups(
    cluster: Cluster, names: Sequence[str], sleep: Callable[[float], None]
) -> dict[str, Reading | SourceError]:
    """Read groups again that change meanwhile, for a while."""
    readings: dict[str, Reading | SourceError] = {}
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


def _is_steady(found: Reading | SourceError) -> bool:
    return isinstance(found, SourceError) or found.steady


def _reading(
    name: str,
    before: LiveGroup | SourceError,
    after: LiveGroup | SourceError | None,
    sent: Mapping[str, bytes],
    committed: dict[Place, int] | SourceError | None,
) -> Reading | SourceError:
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
    return Reading(
        group=after,
        subscriptions=subscriptions,
        committed=committed if isinstance(committed, dict) else {},
        steady=before == after and after.state not in REBALANCING,
    )


def _imported(reading: Reading, joining: Joining, *, skip_empty: bool) -> Imported:
    name = reading.group.id
    if not reading.group.members and skip_empty:
        return Imported(name, skipped="the group has no active members")
    try:
        return Imported(name, group=live_group(reading, joining))
    except SourceError as error:
        return Imported(name, error=str(error))
    except InvalidGroupError as error:
        return Imported(name, error=f"group {name!r}: {error}")


def live_group(reading: Reading, joining: Joining) -> Group:
    """Build the document of one group.

    Raises
    ------
    SourceError
        If a weight is missing, or a member has a partition outside its stated subscription.

    Examples
    --------
    >>> member = LiveMember("c0-1", "c0", None, frozenset({("t", 1)}))
    >>> group = LiveGroup("g", "Stable", (member,))
    >>> told = {"c0-1": Subscription(3, ("t", "u"), rack="a")}
    >>> topics = {"t": LiveTopic(2), "u": LiveTopic(1)}
    >>> live_group(Reading(group, told, topics=topics), Joining()).members[0].subscription
    ('t', 'u')
    """
    told = reading.subscriptions
    all_told = bool(told) and all(member.id in told for member in reading.group.members)
    subscriptions = dict(joining.subscriptions or {})
    if all_told and reading.group.id not in subscriptions:
        subscriptions[reading.group.id] = {id: found.topics for id, found in told.items()}
    known = replace(
        joining,
        subscriptions=subscriptions,
        counts={name: topic.partitions for name, topic in reading.topics.items()},
        at_least=None,
    )
    group = to_group(_seen(reading), known)
    members = tuple(
        replace(member, rack=told[member.id].rack, protocol_version=told[member.id].version)
        if member.id in told
        else member
        for member in group.members
    )
    topics = tuple(
        replace(topic, id=reading.topics[topic.name].id, racks=reading.topics[topic.name].racks)
        for topic in group.topics
    )
    notes = (*group.notes, *_notes(reading, group, joining))
    return replace(group, members=members, topics=topics, notes=notes)


def _seen(reading: Reading) -> SeenGroup:
    """Give a reading the form that captures have."""
    group = reading.group
    seen = SeenGroup(group.id, listed=True, shows_owners=True, state=group.state)
    for member in group.members:
        seen.members[member.id] = SeenMember(
            member.id,
            client_id=member.client_id,
            instance_id=member.instance_id,
            settled=member.target in (None, member.assigned),
            owned=set(member.assigned),
        )
    for place in reading.places:
        if place[0] in reading.topics:
            seen.partitions[place] = None
    for member in group.members:
        for place in member.assigned & seen.partitions.keys():
            seen.partitions[place] = member.id
    for place, offset in reading.committed.items():
        if place in reading.ends:
            seen.lag[place] = reading.ends[place] - offset
    seen.appended.update(reading.appended)
    if group.state in REBALANCING:
        seen.notices.add("rebalancing")
    return seen


def _notes(reading: Reading, group: Group, joining: Joining) -> Iterator[str]:
    missing = sorted(reading.topic_names - reading.topics.keys())
    if missing:
        yield f"topics that the cluster does not have are left out: {', '.join(missing)}"
    if not reading.steady and reading.group.state not in REBALANCING:
        yield "the group changed while it was read"
    racks = any(topic.racks is not None for topic in reading.topics.values())
    if racks and any(member.id not in reading.subscriptions for member in group.members):
        yield "client.rack is shown of no member of the consumer protocol"
    if joining.weights is Weights.RATE:
        yield f"weights are messages appended within {reading.seconds:.1f} s"
