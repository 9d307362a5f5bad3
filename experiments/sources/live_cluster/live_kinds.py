"""Import share groups, Streams groups and Streams applications of a running cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kassay.experiments.sources.kind_texts import ROLES, checked_document, most_copies, standby_note
from kassay.experiments.sources.live_cluster import kafka_python
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.cluster_responses import LiveTopic, ThreadMember
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    parse_kind_document,
    parse_task,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED
from kassay.reference.protocol.record_codec import (
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

STREAMS_ASSIGNOR = "stream"
"""Name of the assignor of Kafka Streams in the classic protocol."""
_RECORDS = 100_000
"""Records of a state: above Kafka's default of acceptable.recovery.lag."""
_NOTES = [
    f"{ASSUMED}the settings have Kafka's defaults, except standby replicas",
    f"{ASSUMED}the state of each task has {_RECORDS} records more than a process without it",
    f"{ASSUMED}the threads report state of every subtopology that has it, or all have it",
]
KIND_TYPES = {"share": Kind.SHARE, "streams": Kind.STREAMS_GROUP}
"""Kind of the groups that kassay describes, by protocol type."""


def read_live_kinds(
    cluster: LiveCluster, kinds: Mapping[str, Kind]
) -> dict[str, KindDocument | InputError]:
    """Read the groups of a cluster that ``kinds`` names, by id.

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
    """Return the topics of the members of a share group, or of the topology of a Streams group."""
    subtopologies = (described.get("topology") or {}).get("subtopologies") or ()
    names = [topic for one in subtopologies for topic in _sources(one)]
    for member in described["members"]:
        names += member.get("subscribed_topic_names", ())
        names += (one["topic_name"] for one in member["assignment"].get("topic_partitions", ()))
    return set(names)


def share_group_document(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> KindDocument:
    """Build the document of a share group from a response to ShareGroupDescribe."""
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
    """Build the document of a Streams group from a response to StreamsGroupDescribe.

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
    """Return the number of partitions of each topic, if the cluster describes all of them."""
    topics = _topics(described)
    for name in sorted(topics - partition_counts.keys()):
        raise InputError(
            f"group {described['group_id']!r}: the cluster does not describe topic {name!r}"
        )
    return {name: partition_counts[name] for name in sorted(topics)}


def _topology(described: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = (described["topology"] or {}).get("subtopologies")
    if not found:
        raise InputError(f"group {described['group_id']!r}: the group has no topology yet")
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
    """Build a document of kind streams from the subscriptions and assignments of the threads.

    The threads with one process id are a process. ``topics`` are the topics of the cluster: an
    application without changelog topics has no state.

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
