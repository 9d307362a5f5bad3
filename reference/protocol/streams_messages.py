"""User data of the classic Kafka Streams protocol: subscription and assignment of a thread.

Sources: ``SubscriptionInfoData.json`` and the class ``AssignmentInfo`` of kafka-streams 4.3.1.
Both start with their version as an int32. Versions before 7 (releases before 2.6) are not read.
"""

from dataclasses import dataclass
from uuid import UUID

from kassay.reference.protocol.record_codec import (
    CorruptRecordError,
    Fields,
    Reader,
    decode_versioned,
)
from kassay.reference.protocol.record_schemas import SCHEMAS

RUNNING = -2
"""Offset and lag of an active task that processes records, upstream ``Task.LATEST_OFFSET``."""
_OLDEST = 7
_ONE_PER_TASK = 10  # first version with an entry per task; older ones have an entry per subtopology


@dataclass(frozen=True, slots=True)
class ThreadSubscription:
    """Subscription of a thread: its process, tags, and offset per task with local state."""

    process: UUID
    offsets: dict[str, int]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class ThreadAssignment:
    """Tasks of a thread, such as ``0_1``."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()


def decode_thread_subscription(data: bytes) -> ThreadSubscription:
    """Decode the user data of a subscription. CorruptRecordError names the field."""
    fields = _decode("subscription of a Streams thread", data)
    offsets: dict[str, int] = {}
    for one in fields["offsets"]:
        for entry in (one,) if fields["version"] >= _ONE_PER_TASK else one["partitions"]:
            offsets[f"{one['subtopology']}_{entry['partition']}"] = entry["offset"]
    try:
        tags = {tag["key"].decode(): tag["value"].decode() for tag in fields["tags"]}
    except UnicodeDecodeError as error:
        raise CorruptRecordError(f"tags: {error}") from None
    return ThreadSubscription(fields["process"], offsets, tags)


def decode_thread_assignment(data: bytes) -> ThreadAssignment:
    """Decode the user data of an assignment. CorruptRecordError names the field."""
    fields = _decode("assignment of a Streams thread", data)
    if any(task["topology"] for task in (*fields["active"], *fields["standby"])):
        raise CorruptRecordError(
            "assignment of a Streams thread: named topologies are not supported"
        )
    active, standby = (
        tuple(f"{task['subtopology']}_{task['partition']}" for task in fields[key])
        for key in ("active", "standby")
    )
    return ThreadAssignment(active, standby)


def _decode(name: str, data: bytes) -> Fields:
    schema, reader = SCHEMAS[name], Reader(data)
    version = reader.integer(4)
    if not _OLDEST <= version <= schema.newest:
        raise CorruptRecordError(
            f"{name}: version must be from {_OLDEST} to {schema.newest}, got {version}"
        )
    return {**decode_versioned(schema, version, reader), "version": version}
