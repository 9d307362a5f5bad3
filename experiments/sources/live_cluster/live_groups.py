"""Import groups of a running cluster with read-only requests, without joining a group."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from kassay.experiments.sources import capture_files
from kassay.experiments.sources.build_group import ImportOptions, build_group
from kassay.experiments.sources.document_rows import DocumentRows
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.cluster_responses import (
    DEAD,
    ClusterReading,
    EndOffsets,
    LiveGroup,
    LiveTopic,
    other_group_reason,
    with_subscription,
)
from kassay.experiments.sources.live_cluster.live_kinds import (
    KIND_TYPES,
    STREAMS_ASSIGNOR,
    read_live_kinds,
)
from kassay.experiments.sources.merge_captures import ObservedGroup, ObservedMember, PartitionKey
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, WeightSource

# Several requests read a group; its description must be equal before and after them.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 1.0
# Time limit for end offsets that only show the lag: a broker that is away delays no survey.
_LAG_SECONDS = 3.0
_SPEED_NOTE = (
    "speeds are numbers of messages consumed between two samples, in per cent of the fastest "
    "member; a member without lag can be faster"
)


def import_live(
    cluster: LiveCluster,
    groups: Sequence[str],
    options: ImportOptions,
    *,
    sample_seconds: float = 10.0,
    empty: capture_files.EmptyGroups = capture_files.EmptyGroups.KEEP,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[capture_files.ImportedGroup]:
    """Import the named groups of a cluster, or all groups if no name is given.

    Share groups, Streams groups and Streams applications are documents of their kind. A group of
    another type is skipped, or an error if it is named. The groups are yielded in the order of
    their ids. ``sample_seconds`` is the time between the two samples of a
    rate.
    """
    names = sorted(set(groups)) if groups else sorted(cluster.group_ids())
    readings = read_consumer_groups(cluster, names, sleep=sleep)
    found = {name: one for name, one in readings.items() if isinstance(one, ClusterReading)}
    found = resolve_patterns(cluster, found)
    others = {} if groups and len(found) == len(readings) else cluster.other_groups()
    kinds = {name: KIND_TYPES[kind] for name, kind in others.items() if kind in KIND_TYPES}
    kinds |= {
        name: Kind.STREAMS
        for name, one in found.items()
        if one.group.assignor == STREAMS_ASSIGNOR and one.group.members
    }
    documents = read_live_kinds(cluster, kinds)
    consumed_topics = sorted({topic for one in found.values() for topic in one.topic_names})
    topics = cluster.topics(consumed_topics) if consumed_topics else {}
    partitions = [
        (name, number)
        for name, topic in topics.items()
        if isinstance(topic, LiveTopic)
        for number in range(topic.partitions)
    ]
    if options.weights is WeightSource.RATE and partitions:
        offsets = _sample(cluster, partitions, sample_seconds, sleep=sleep, clock=clock)
    else:
        offsets = EndOffsets(_ends(cluster, partitions, found, options))
    consumed: Mapping[str, Mapping[PartitionKey, int]] = {}
    if options.measures_speeds:
        if options.weights is not WeightSource.RATE:
            sleep(sample_seconds)
        consumed = _consumed(cluster, found)
    for name in sorted(readings if groups else {*readings, *others}):
        if name in documents:
            yield capture_files.ImportedGroup.of_document(name, documents[name])
            continue
        if name in others:
            reason = other_group_reason(name, others[name])
            yield (
                capture_files.ImportedGroup(name, error=reason)
                if groups
                else capture_files.ImportedGroup(name, skipped=reason)
            )
            continue
        complete = readings[name]
        if name in found:
            complete = _add_topics_and_offsets(found[name], topics, offsets)
        if isinstance(complete, InputError):
            yield capture_files.ImportedGroup(name, error=str(complete))
        else:
            yield capture_files.imported_group(
                name,
                partial(build_live_group, complete, options, consumed.get(name)),
                is_empty=not complete.group.members and not complete.group.status.is_rebalancing,
                empty=empty,
            )


def build_live_group(
    reading: ClusterReading,
    options: ImportOptions,
    consumed: Mapping[PartitionKey, int] | None = None,
) -> Group:
    """Build a group from the responses of a running cluster.

    Partition counts come from the cluster, not from the options. The members get speeds from
    the number of consumed messages per partition, if it is given.
    """
    topics = reading.topics
    content = DocumentRows(
        partition_counts={name: topic.partitions for name, topic in topics.items()},
        sizes=options.content.sizes,
        topic_ids={name: topic.id for name, topic in topics.items() if topic.id is not None},
    )
    group = build_group(_observed_group(reading), replace(options, content=content))
    members, notes = group.members, (*group.notes, *_notes(reading, options))
    if consumed is not None:
        speeds = capture_files.measured_speeds(group, consumed)
        members = tuple(replace(member, speed=speeds[member.id]) for member in members)
        notes = (*notes, _SPEED_NOTE)
    # A cluster shows the offsets from which both are computed, if they are requested.
    available = (WeightSource.LAG, WeightSource.RATE)
    return replace(group, members=members, notes=notes, available_weights=available)


def _add_topics_and_offsets(
    reading: ClusterReading, topics: Mapping[str, LiveTopic | InputError], offsets: EndOffsets
) -> ClusterReading | InputError:
    """Add topics and end offsets to the responses about one group, or return an error."""
    described: dict[str, LiveTopic] = {}
    for name in sorted(reading.topic_names & topics.keys()):
        topic = topics[name]
        if isinstance(topic, InputError):
            return InputError(f"group {reading.group.id!r}: {topic}")
        described[name] = topic
    return replace(reading, topics=described, offsets=offsets)


def _ends(
    cluster: LiveCluster,
    partitions: Sequence[PartitionKey],
    readings: Mapping[str, ClusterReading],
    options: ImportOptions,
) -> dict[PartitionKey, int]:
    """Return the end offsets for weights by lag; for the lag alone, those that are available."""
    if options.weights is WeightSource.LAG:
        return cluster.end_offsets(partitions) if partitions else {}
    committed = {one for reading in readings.values() for one in reading.committed_offsets}
    needed = sorted(committed.intersection(partitions)) if options.reads_lag else []
    with suppress(InputError):
        return cluster.end_offsets(needed, timeout=_LAG_SECONDS) if needed else {}
    return {}


def _sample(
    cluster: LiveCluster,
    partitions: Sequence[PartitionKey],
    seconds: float,
    *,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> EndOffsets:
    started, first = clock(), cluster.end_offsets(partitions)
    sleep(seconds)
    elapsed, second = clock() - started, cluster.end_offsets(partitions)
    return EndOffsets(first, _growth(first, second), elapsed)


def _growth(
    first: Mapping[PartitionKey, int], second: Mapping[PartitionKey, int]
) -> dict[PartitionKey, int]:
    return {one: second[one] - offset for one, offset in first.items() if one in second}


def _consumed(
    cluster: LiveCluster, readings: Mapping[str, ClusterReading]
) -> dict[str, dict[PartitionKey, int]]:
    """Return the messages consumed per partition since the groups were read."""
    first = {name: reading.committed_offsets for name, reading in readings.items()}
    second = cluster.committed_offsets(sorted(first)) if first else {}
    return {
        name: _growth(before, after)
        for name, before in first.items()
        for after in (second.get(name, {}),)
        if not isinstance(after, InputError)
    }


def _observed_group(reading: ClusterReading) -> ObservedGroup:
    group, end = reading.group, reading.offsets.end
    owners = {partition: member.id for member in group.members for partition in member.owned}
    return ObservedGroup(
        group.id,
        members={member.id: member for member in group.members},
        partitions={p: owners.get(p) for p in reading.partitions if p[0] in reading.topics},
        racks={name: topic.racks for name, topic in reading.topics.items()},
        lag={p: end[p] - offset for p, offset in reading.committed_offsets.items() if p in end},
        appended=dict(reading.offsets.appended),
        has_members_table=True,
        shows_owners=True,
        state=group.state,
        assignor=group.assignor,
        protocol=group.protocol,
    )


def _notes(reading: ClusterReading, options: ImportOptions) -> Iterator[str]:
    missing = sorted(reading.topic_names - reading.topics.keys())
    if missing:
        yield f"topics that do not exist in the cluster are skipped: {', '.join(missing)}"
    if not reading.unchanged and not reading.group.status.is_rebalancing:
        yield "the group changed while it was read"
    if reading.group.incomplete is not None:
        racks = any(topic.racks is not None for topic in reading.topics.values())
        names = "subscriptions, racks and epochs" if racks else "subscriptions and epochs"
        yield f"{names} of the consumer protocol are not read: {reading.group.incomplete}"
    yield from _pattern_notes(reading)
    classic = sum(member.is_classic for member in reading.group.members)
    if classic:
        members = len(reading.group.members)
        yield f"{classic} of {members} members still use the classic protocol"
    if options.weights is WeightSource.RATE:
        yield f"weights are messages appended within {reading.offsets.seconds:.1f} s"


def _pattern_notes(reading: ClusterReading) -> Iterator[str]:
    counts = Counter(one.pattern for one in reading.group.members if one.pattern is not None)
    resolved = {one.pattern for one in reading.group.members if one.subscription is not None}
    for pattern, count in sorted(counts.items()):
        members = "1 member subscribes" if count == 1 else f"{count} members subscribe"
        result = (
            "with the names of the cluster's topics"
            if pattern in resolved
            else "not: Python cannot match the topics of the group with it"
        )
        yield f"{members} to the regular expression {pattern!r}, resolved {result}"


def read_consumer_groups(
    cluster: LiveCluster, names: Sequence[str], *, sleep: Callable[[float], None]
) -> dict[str, ClusterReading | InputError]:
    """Read groups from a cluster. Read a group again if it changes during the reading."""
    readings: dict[str, ClusterReading | InputError] = {}
    pending = list(names)
    for attempt in range(_ATTEMPTS):
        if not pending:
            break
        if attempt:
            sleep(_ATTEMPT_SECONDS)
        before = cluster.describe(pending)
        existing = [
            name
            for name, answer in before.items()
            if isinstance(answer, LiveGroup) and answer.state != DEAD
        ]
        sent = cluster.subscriptions(existing) if existing else {}
        offsets = cluster.committed_offsets(existing) if existing else {}
        after = cluster.describe(existing) if existing else {}
        for name in pending:
            readings[name] = _reading(name, before[name], after.get(name), sent, offsets.get(name))
        pending = [
            name
            for name in pending
            if isinstance(reading := readings[name], ClusterReading) and not reading.unchanged
        ]
    return {name: readings[name] for name in names}


def resolve_patterns(
    cluster: LiveCluster, readings: Mapping[str, ClusterReading]
) -> dict[str, ClusterReading]:
    """Add the topics that match the regular expressions of subscriptions.

    The broker resolves an expression in the syntax of RE2 and does not return the result. A
    subscription is removed if Python cannot resolve its expression, or if the result lacks a topic
    that the member has partitions of.
    """
    patterns = [one.pattern for reading in readings.values() for one in reading.group.members]
    names = cluster.topic_names() if any(one is not None for one in patterns) else []
    resolved = {}
    for name, reading in readings.items():
        members = tuple(_resolved(member, names) for member in reading.group.members)
        resolved[name] = replace(reading, group=replace(reading.group, members=members))
    return resolved


def _resolved(member: ObservedMember, names: Sequence[str]) -> ObservedMember:
    if member.pattern is None:
        return member
    unresolved = replace(member, subscription=None, rack=None)
    try:
        pattern = re.compile(member.pattern, re.ASCII)
    except re.error:
        return unresolved
    matching = (name for name in names if pattern.fullmatch(name))
    topics = tuple(dict.fromkeys((*(member.subscription or ()), *matching)))
    assigned = {topic for topic, _ in member.owned}
    return replace(member, subscription=topics) if assigned <= set(topics) else unresolved


def _reading(
    name: str,
    before: LiveGroup | InputError,
    after: LiveGroup | InputError | None,
    sent: Mapping[str, bytes],
    committed: dict[PartitionKey, int] | InputError | None,
) -> ClusterReading | InputError:
    for failure in (before, after, committed):
        if isinstance(failure, InputError):
            return failure
    if not isinstance(after, LiveGroup):
        return InputError(f"group {name!r}: the cluster has no such consumer group")
    try:
        members = tuple(
            with_subscription(one, sent[one.id], where=f"group {name!r}: member {one.id!r}")
            if one.subscription is None and sent.get(one.id)
            else one
            for one in after.members
        )
    except InputError as error:
        return error
    return ClusterReading(
        group=replace(after, members=members),
        committed_offsets=committed if isinstance(committed, dict) else {},
        unchanged=before == after and not after.status.is_rebalancing,
    )
