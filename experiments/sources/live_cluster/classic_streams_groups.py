"""Build the document of a Kafka Streams application from the members of its classic group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kassay.reference.documents.kind_documents import (
    ASSUMED,
    Kind,
    KindDocument,
    parse_kind_document,
    parse_task,
)
from kassay.reference.model.errors import InputError
from kassay.reference.protocol.record_codec import CorruptRecordError, decode_message
from kassay.reference.protocol.record_schemas import ASSIGNMENT, SUBSCRIPTION
from kassay.reference.protocol.streams_messages import (
    RUNNING,
    ThreadAssignment,
    ThreadSubscription,
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


@dataclass(frozen=True, slots=True)
class ThreadMember:
    """Member of the classic group of a Streams application, with its encoded messages."""

    id: str
    subscription: bytes
    assignment: bytes


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
            str(name): _subtopology(count, is_stateful=name in stateful)
            for name, count in counts.items()
        },
        "processes": _processes(threads, stateful),
    }
    return parse_kind_document(content, kind=Kind.STREAMS, where=f"group {group!r}")


def _subtopology(count: int, *, is_stateful: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"partitions": count, "stateful": is_stateful}
    return {**fields, "end_offsets": [_RECORDS] * count} if is_stateful else fields


def _processes(
    threads: Sequence[tuple[ThreadSubscription, ThreadAssignment]], stateful: set[int]
) -> list[dict[str, Any]]:
    """Join the threads of each process, in the order of the process ids."""
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
