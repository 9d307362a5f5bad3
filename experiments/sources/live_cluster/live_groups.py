"""Groups of a running cluster as group documents: read only, and no group is ever joined."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kassay.experiments.sources.capture_files import ImportedGroups
from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.group_documents import ImportOptions, to_group
from kassay.experiments.sources.live_cluster.group_descriptions import (
    REBALANCING,
    Cluster,
    ClusterReading,
    LiveTopic,
    read_groups,
)
from kassay.experiments.sources.merge_captures import ObservedGroup, ObservedMember, PartitionKey
from kassay.experiments.sources.partition_weights import WeightOptions
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True)
class _Offsets:
    """End offsets, by how much they grew between two samples, and how far apart those are."""

    ends: dict[PartitionKey, int] = field(default_factory=dict)
    appended: dict[PartitionKey, int] = field(default_factory=dict)
    seconds: float = 0.0


def import_live(
    cluster: Cluster,
    groups: Sequence[str],
    joining: ImportOptions,
    *,
    sample_seconds: float = 10.0,
    skip_empty: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[ImportedGroups]:
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
    readings = read_groups(cluster, names, sleep=sleep)
    sound = [found for found in readings.values() if isinstance(found, ClusterReading)]
    wanted = sorted({topic for reading in sound for topic in reading.topic_names})
    topics = cluster.topics(wanted) if wanted else {}
    places = [
        (name, number)
        for name, topic in topics.items()
        if isinstance(topic, LiveTopic)
        for number in range(topic.partitions)
    ]
    offsets = _Offsets()
    if joining.weights is WeightOptions.LAG and places:
        offsets = _Offsets(cluster.ends(places))
    elif joining.weights is WeightOptions.RATE and places:
        offsets = _sample(cluster, places, sample_seconds, sleep=sleep, clock=clock)
    for name, found in readings.items():
        whole = _complete(found, topics, offsets)
        if isinstance(whole, SourceError):
            yield ImportedGroups(name, error=str(whole))
        else:
            yield _imported(whole, joining, skip_empty=skip_empty)


def _complete(
    found: ClusterReading | SourceError,
    topics: Mapping[str, LiveTopic | SourceError],
    offsets: _Offsets,
) -> ClusterReading | SourceError:
    """Add what topics and offsets say, unless a topic of the group may not be seen."""
    if isinstance(found, SourceError):
        return found
    seen: dict[str, LiveTopic] = {}
    for name in sorted(found.topic_names & topics.keys()):
        topic = topics[name]
        if isinstance(topic, SourceError):
            return SourceError(f"group {found.group.id!r}: {topic}")
        seen[name] = topic
    return replace(
        found,
        topics=seen,
        ends=offsets.ends,
        appended=offsets.appended,
        seconds=offsets.seconds,
    )


def _sample(
    cluster: Cluster,
    places: Sequence[PartitionKey],
    seconds: float,
    *,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> _Offsets:
    started, first = clock(), cluster.ends(places)
    sleep(seconds)
    passed, second = clock() - started, cluster.ends(places)
    appended = {
        place: second[place] - first[place]
        for place in places
        if place in first and place in second
    }
    return _Offsets(first, appended, passed)


def _imported(
    reading: ClusterReading, joining: ImportOptions, *, skip_empty: bool
) -> ImportedGroups:
    name = reading.group.id
    if not reading.group.members and skip_empty:
        return ImportedGroups(name, skipped="the group has no active members")
    try:
        return ImportedGroups(name, group=live_group(reading, joining))
    except SourceError as error:
        return ImportedGroups(name, error=str(error))
    except InputError as error:
        return ImportedGroups(name, error=f"group {name!r}: {error}")


def live_group(reading: ClusterReading, joining: ImportOptions) -> Group:
    """Build the document of one group.

    Raises
    ------
    SourceError
        If a weight is missing, or a member has a partition outside its stated subscription.

    Examples
    --------
    >>> from kassay.experiments.sources.live_cluster.group_descriptions import LiveGroup, LiveMember
    >>> from kassay.experiments.sources.live_cluster.member_subscription import JoinedSubscription
    >>> member = LiveMember("c0-1", "c0", None, frozenset({("t", 1)}))
    >>> group = LiveGroup("g", "Stable", (member,))
    >>> told = {"c0-1": JoinedSubscription(3, ("t", "u"), rack="a")}
    >>> topics = {"t": LiveTopic(2), "u": LiveTopic(1)}
    >>> live_group(ClusterReading(group, told, topics=topics), ImportOptions()).members[
    ...     0
    ... ].subscription
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


def _seen(reading: ClusterReading) -> ObservedGroup:
    """Give a reading the form that captures have."""
    group = reading.group
    seen = ObservedGroup(group.id, listed=True, shows_owners=True, state=group.state)
    for member in group.members:
        seen.members[member.id] = ObservedMember(
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


def _notes(reading: ClusterReading, group: Group, joining: ImportOptions) -> Iterator[str]:
    missing = sorted(reading.topic_names - reading.topics.keys())
    if missing:
        yield f"topics that the cluster does not have are left out: {', '.join(missing)}"
    if not reading.steady and reading.group.state not in REBALANCING:
        yield "the group changed while it was read"
    racks = any(topic.racks is not None for topic in reading.topics.values())
    if racks and any(member.id not in reading.subscriptions for member in group.members):
        yield "client.rack is shown of no member of the consumer protocol"
    if joining.weights is WeightOptions.RATE:
        yield f"weights are messages appended within {reading.seconds:.1f} s"
