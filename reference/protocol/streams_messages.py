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
from kassay.reference.protocol.record_schemas import Field, Schema

RUNNING = -2
"""Offset and lag of an active task that processes records, upstream ``Task.LATEST_OFFSET``."""
_OLDEST = 7
_ONE_PER_TASK = 10
"""First version with an entry per task; older ones have an entry per subtopology."""
_OFFSETS = (Field("partition", "int32"), Field("offset", "int64"))
_SUBSCRIPTION_INFO = Schema(
    "subscription of a Streams thread",
    11,
    (
        Field("latest", "int32"),
        Field("process", "uuid"),
        Field("endpoint", "bytes"),
        Field(
            "offsets",
            (
                Field("subtopology", "int32"),
                Field("partition", "int32", since=_ONE_PER_TASK),
                Field("offset", "int64", since=_ONE_PER_TASK),
                Field("topology", "string", since=_ONE_PER_TASK, nullable=True),
                Field("partitions", _OFFSETS, until=_ONE_PER_TASK - 1),
            ),
        ),
        Field("unique", "int8", since=8),
        Field("error", "int32", since=9),
        Field("tags", (Field("key", "bytes"), Field("value", "bytes")), since=11),
    ),
)
# The length of the name of a named topology, an internal feature, is 0.
_TASK = (
    Field("subtopology", "int32"),
    Field("partition", "int32"),
    Field("topology", "int32", since=10),
)
_PARTITIONS = (Field("topic", "string"), Field("partition", "int32"))
_ASSIGNMENT_INFO = Schema(
    "assignment of a Streams thread",
    11,
    (
        Field("latest", "int32"),
        Field("active", _TASK),
        Field("standby", (*_TASK, Field("partitions", _PARTITIONS))),
    ),
    ignores_rest=True,
)


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
    fields = _decode(_SUBSCRIPTION_INFO, data)
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
    fields = _decode(_ASSIGNMENT_INFO, data)
    if any(task["topology"] for task in (*fields["active"], *fields["standby"])):
        raise CorruptRecordError(f"{_ASSIGNMENT_INFO.name}: named topologies are not supported")
    active, standby = (
        tuple(f"{task['subtopology']}_{task['partition']}" for task in fields[key])
        for key in ("active", "standby")
    )
    return ThreadAssignment(active, standby)


def _decode(schema: Schema, data: bytes) -> Fields:
    reader = Reader(data)
    version = reader.integer("i")
    if not _OLDEST <= version <= schema.newest:
        raise CorruptRecordError(
            f"{schema.name}: version must be from {_OLDEST} to {schema.newest}, got {version}"
        )
    return {**decode_versioned(schema, version, reader), "version": version}
