"""Import groups from a running cluster with requests that do not change it."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from kassay.experiments.sources import import_captures
from kassay.experiments.sources.build_group import ImportOptions, build_group
from kassay.experiments.sources.capture_contents import DocumentRows
from kassay.experiments.sources.kind_captures import (
    ROLES,
    checked_document,
    most_copies,
    standby_note,
)
from kassay.experiments.sources.live_cluster import kafka_python
from kassay.experiments.sources.live_cluster.cluster_responses import (
    DEAD,
    ClusterReading,
    EndOffsets,
    LiveGroup,
    LiveTopic,
    ThreadMember,
    other_group_reason,
    with_subscription,
)
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.merge_captures import ObservedGroup, ObservedMember, PartitionKey
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    parse_kind_document,
    parse_task,
)
from kassay.reference.model.errors import InputError, KassayError
from kassay.reference.model.group import ASSUMED, Group, WeightSource
from kassay.reference.protocol.message_decoder import (
    ASSIGNMENT,
    RUNNING,
    SUBSCRIPTION,
    CorruptRecordError,
    ThreadAssignment,
    ThreadSubscription,
    decode_message,
    decode_thread_assignment,
    decode_thread_subscription,
)

# Several requests read a group; its description must be equal before and after them.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 1.0
# Time limit for end offsets that only show the lag: a broker that is away delays no survey.
_LAG_SECONDS = 3.0
_SPEED_NOTE = (
    "speeds are numbers of messages consumed between two samples, in per cent of the fastest "
    "member; a member without lag can be faster"
)
STREAMS_ASSIGNOR = "stream"
"""Name of the assignor of Kafka Streams in the classic protocol."""
_RECORDS = 100_000
"""Assumed number of records per state, above the default acceptable.recovery.lag."""
_NOTES = [
    f"{ASSUMED}the settings have Kafka's defaults, except standby replicas",
    f"{ASSUMED}the state of each task has {_RECORDS} records more than a process without it",
    f"{ASSUMED}the threads report state of every subtopology that has it, or all have it",
]
KIND_TYPES = {"share": Kind.SHARE, "streams": Kind.STREAMS_GROUP}
"""Kind of a group, by its protocol type."""


def import_live(
    cluster: LiveCluster,
    groups: Sequence[str],
    options: ImportOptions,
    *,
    sample_seconds: float = 10.0,
    empty: import_captures.EmptyGroups = import_captures.EmptyGroups.KEEP,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[import_captures.ImportedGroup]:
    """Import the named groups of a cluster, or all groups if none is named.

    Share groups, Streams groups and Streams applications give documents of their kind. A group of
    another type is skipped; if it is named, it gives an error. ``sample_seconds`` is the time
    between the two samples of a rate.
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
            yield import_captures.ImportedGroup.of_document(name, documents[name])
            continue
        if name in others:
            reason = other_group_reason(name, others[name])
            yield (
                import_captures.ImportedGroup(name, error=reason)
                if groups
                else import_captures.ImportedGroup(name, skipped=reason)
            )
            continue
        complete = readings[name]
        if name in found:
            complete = _add_topics_and_offsets(found[name], topics, offsets)
        if isinstance(complete, InputError):
            yield import_captures.ImportedGroup(name, error=str(complete))
        else:
            yield import_captures.imported_group(
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

    Partition counts come from the cluster, not from the options. If ``consumed`` has the numbers
    of consumed messages per partition, they determine the speeds of the members.
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
        speeds = import_captures.measured_speeds(group, consumed)
        members = tuple(replace(member, speed=speeds[member.id]) for member in members)
        notes = (*notes, _SPEED_NOTE)
    # A cluster shows the offsets from which both are computed, if they are requested.
    available = (WeightSource.LAG, WeightSource.RATE)
    return replace(group, members=members, notes=notes, available_weights=available)


def _add_topics_and_offsets(
    reading: ClusterReading, topics: Mapping[str, LiveTopic | InputError], offsets: EndOffsets
) -> ClusterReading | InputError:
    """Add topics and end offsets to the responses about a group, or return an error."""
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
    """Return the end offsets of the partitions for which the lag is needed."""
    if options.weights is WeightSource.LAG:
        return cluster.end_offsets(partitions) if partitions else {}
    committed = {one for reading in readings.values() for one in reading.committed_offsets}
    needed = sorted(committed.intersection(partitions)) if options.reads_lag else []
    with suppress(InputError):
        return cluster.end_offsets(needed, timeout=_LAG_SECONDS) if needed else {}
    return {}


def read_lags(cluster: LiveCluster, groups: Sequence[str]) -> dict[str, int]:
    """Return the lag in messages of each group that has a known lag."""
    answers = cluster.committed_offsets(groups)
    known = {name: one for name, one in answers.items() if not isinstance(one, InputError)}
    partitions = sorted({partition for one in known.values() for partition in one})
    ends: dict[PartitionKey, int] = {}
    with suppress(KassayError):
        ends = cluster.end_offsets(partitions, timeout=_LAG_SECONDS) if partitions else {}
    return {
        name: sum(max(0, ends[one] - offset) for one, offset in committed.items() if one in ends)
        for name, committed in known.items()
        if ends.keys() & committed
    }


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
    """Read groups from a cluster, and read a group again if it changes during the requests."""
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
    """Find the topics that match the regular expressions in subscriptions.

    The broker resolves an expression in the syntax of RE2 and does not return the result. kassay
    resolves it with Python. It removes the subscription if this fails, or if the member has
    partitions of a topic that is not in the result.
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


def read_live_kinds(
    cluster: LiveCluster, kinds: Mapping[str, Kind]
) -> dict[str, KindDocument | InputError]:
    """Read share groups, Streams groups and Streams applications from a cluster.

    Groups of `Kind.STREAMS` use the classic protocol.
    """
    found: dict[str, KindDocument | InputError] = {}
    for kind in (Kind.SHARE, Kind.STREAMS_GROUP):
        names = sorted(name for name, one in kinds.items() if one is kind)
        if names:
            found |= dict(_described(cluster, kind, names))
    applications = sorted(name for name, one in kinds.items() if one is Kind.STREAMS)
    topics = cluster.topic_names() if applications else []
    for name in applications:
        try:
            found[name] = streams_application_document(
                name, cluster.thread_members(name), topics=topics
            )
        except InputError as error:
            found[name] = error
    return found


def _described(
    cluster: LiveCluster, kind: Kind, names: Sequence[str]
) -> Iterator[tuple[str, KindDocument | InputError]]:
    try:
        described = cluster.describe_groups(kind, names)
    except kafka_python.UnreadableDescriptionError as error:
        for name in names:
            yield name, InputError(f"group {name!r} cannot be read: {error}")
        return
    topics: dict[str, LiveTopic | InputError] = {}
    needed = sorted({topic for one in described.values() for topic in _topics(one)})
    if needed:
        topics = cluster.topics(needed)
    counts = {name: one.partitions for name, one in topics.items() if isinstance(one, LiveTopic)}
    build = share_group_document if kind is Kind.SHARE else streams_group_document
    for name in names:
        if name not in described:
            yield name, InputError(f"group {name!r}: the coordinator does not describe the group")
            continue
        try:
            yield name, build(described[name], counts)
        except InputError as error:
            yield name, error


def _topics(described: Mapping[str, Any]) -> set[str]:
    """Return the topics of a share group or of a Streams group's topology."""
    subtopologies = (described.get("topology") or {}).get("subtopologies") or ()
    names = [topic for one in subtopologies for topic in _sources(one)]
    for member in described["members"]:
        names += member.get("subscribed_topic_names", ())
        names += (one["topic_name"] for one in member["assignment"].get("topic_partitions", ()))
    return set(names)


def share_group_document(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> KindDocument:
    """Convert a ShareGroupDescribe response to a share group document."""
    members = [
        {
            "id": member["member_id"],
            "topics": sorted(member["subscribed_topic_names"]),
            "owned": list(map(list, kafka_python.partitions_of(member["assignment"]))),
            **({} if member["rack_id"] is None else {"rack": member["rack_id"]}),
        }
        for member in described["members"]
    ]
    return checked_document(
        {
            "kind": str(Kind.SHARE),
            "id": described["group_id"],
            "topics": _known_counts(described, partition_counts),
            "members": members,
        }
    )


def streams_group_document(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> KindDocument:
    """Convert a StreamsGroupDescribe response to a Streams group document.

    A subtopology has as many tasks as its largest source topic has partitions.
    """
    members = [_streams_member(member) for member in described["members"]]
    standby = most_copies(member["standby"] for member in members)
    counts = _known_counts(described, partition_counts)
    return checked_document(
        {
            "kind": str(Kind.STREAMS_GROUP),
            "id": described["group_id"],
            "notes": [standby_note(standby)],
            "num_standby_replicas": standby,
            "subtopologies": {
                one["subtopology_id"]: {
                    "partitions": max((counts[topic] for topic in _sources(one)), default=0),
                    "stateful": bool(one["state_changelog_topics"]),
                }
                for one in _topology(described)
            },
            "members": members,
        }
    )


def _known_counts(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> dict[str, int]:
    topics = _topics(described)
    for name in sorted(topics - partition_counts.keys()):
        raise InputError(
            f"group {described['group_id']!r}: the cluster does not describe topic {name!r}; "
            "check the permission of the client"
        )
    return {name: partition_counts[name] for name in sorted(topics)}


def _topology(described: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = (described["topology"] or {}).get("subtopologies")
    if not found:
        raise InputError(
            f"group {described['group_id']!r}: the group has no topology; start a member and "
            "repeat the command"
        )
    return list(found)


def _sources(subtopology: Mapping[str, Any]) -> list[str]:
    repartition = (topic["name"] for topic in subtopology["repartition_source_topics"])
    return [*subtopology["source_topics"], *repartition]


def _streams_member(member: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": member["member_id"], "process": member["process_id"]}
    for key, name in (("instance_id", "instance_id"), ("rack_id", "rack")):
        if member[key] is not None:
            found[name] = member[key]
    tags = {one["key"]: one["value"] for one in member["client_tags"]}
    if tags:
        found["tags"] = tags
    for role in ROLES:
        found[role] = {
            tasks["subtopology_id"]: sorted(tasks["partitions"])
            for tasks in member["assignment"][f"{role}_tasks"]
        }
    for key, name in (("task_offsets", "offsets"), ("task_end_offsets", "end_offsets")):
        offsets: dict[str, dict[str, int]] = {}
        for one in member[key]:
            offsets.setdefault(one["subtopology_id"], {})[str(one["partition"])] = one["offset"]
        if offsets:
            found[name] = offsets
    return found


def streams_application_document(
    group: str, members: Sequence[ThreadMember], *, topics: Sequence[str] = ()
) -> KindDocument:
    """Convert the subscriptions and assignments of threads to a Kafka Streams document.

    Threads with the same process id are one process. ``topics`` are the topics of the cluster: if
    they include no changelog topic of the application, it has no state.

    Raise InputError if a member is not a thread of Kafka Streams 2.6 or newer.
    """
    threads = [_thread(group, member) for member in members]
    standby = [task for _, one in threads for task in one.standby]
    with_state = {*standby, *(task for sent, _ in threads for task in sent.offsets)}
    stateful = {parse_task(task).subtopology for task in with_state}
    tasks = {parse_task(task) for task in with_state.union(*(one.active for _, one in threads))}
    has_state = any(name.startswith(f"{group}-") and name.endswith("-changelog") for name in topics)
    if has_state and not stateful:
        stateful = {task.subtopology for task in tasks}
    counts = {task.subtopology: task.partition + 1 for task in sorted(tasks)}
    content = {
        "kind": str(Kind.STREAMS),
        "id": group,
        "notes": _NOTES,
        "config": {"num_standby_replicas": max(map(standby.count, standby), default=0)},
        "subtopologies": {
            str(name): {"partitions": count, "stateful": name in stateful}
            | ({"end_offsets": [_RECORDS] * count} if name in stateful else {})
            for name, count in counts.items()
        },
        "processes": _processes(threads, stateful),
    }
    return parse_kind_document(content, kind=Kind.STREAMS, where=f"group {group!r}")


def _processes(
    threads: Sequence[tuple[ThreadSubscription, ThreadAssignment]], stateful: set[int]
) -> list[dict[str, Any]]:
    offsets: dict[str, int] = {}
    for sent, _ in threads:
        for task, offset in sent.offsets.items():
            offsets[task] = max(offsets.get(task, 0), offset)
    processes: dict[str, dict[str, Any]] = {}
    for sent, assigned in threads:
        id = str(sent.process)
        one = processes.setdefault(
            id, {"id": id, "threads": 0, "active": [], "standby": [], "lags": {}}
        )
        one["threads"] += 1
        one["active"] += assigned.active
        one["standby"] += assigned.standby
        if sent.tags:
            one["tags"] = sent.tags
        for task, offset in sent.offsets.items():
            if parse_task(task).subtopology in stateful and offset != RUNNING:
                one["lags"][task] = max(0, offsets[task] - offset)
    for one in processes.values():
        for key in ("active", "standby"):
            one[key].sort(key=parse_task)
        running = {*one["active"], *one["standby"]}
        one["lags"] = {task: lag for task, lag in one["lags"].items() if task not in running}
    return [processes[id] for id in sorted(processes)]


def _thread(group: str, member: ThreadMember) -> tuple[ThreadSubscription, ThreadAssignment]:
    try:
        sent = decode_message(SUBSCRIPTION, member.subscription)["user_data"]
        assigned = (
            decode_message(ASSIGNMENT, member.assignment)["user_data"] if member.assignment else b""
        )
        return (
            decode_thread_subscription(sent or b""),
            decode_thread_assignment(assigned) if assigned else ThreadAssignment(),
        )
    except CorruptRecordError as error:
        raise InputError(
            f"group {group!r}: member {member.id!r} is not a thread of Kafka Streams: {error}"
        ) from None
