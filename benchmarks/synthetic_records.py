"""Generator of synthetic records of ``__consumer_offsets``, as on a busy cluster.

One record in 2,000 starts a rebalance. The others are commits: one in a hundred is a
tombstone, and one in ten has a text. Every fifth group is a KIP-848 group, whose rebalances
have about twelve records.
"""

import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.record_encoder import (
    ConsumerRecord,
    current_assignment,
    encode_record,
    group_epoch,
    member_metadata,
    target_assignment,
    target_epoch,
    tombstones,
)
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    GroupMetadata,
    JoinRequest,
    MemberMetadata,
    OffsetCommit,
    SupportedProtocol,
)

TOPIC = "orders"
TOPIC_ID = uuid.UUID(int=77)
PARTITIONS = 24
GROUPS = 1_000
_FILE_RECORDS = 500_000
_REBALANCE_INTERVAL = 2_000
_SEED = 20261121
_LOG_PARTITIONS = 50
_TEXT = b"consumer-orders-1"

Message = tuple[bytes, bytes | None]
"""Key and value of a record."""


def write_records(directory: Path, records: int) -> None:
    """Write synthetic records to Parquet files, in the order of their offsets."""
    rng = np.random.default_rng(_SEED)
    generations = dict.fromkeys(range(GROUPS), 0)
    keys = [_commit_key(g, n) for g in range(GROUPS) for n in range(PARTITIONS)]
    for first in range(0, records, _FILE_RECORDS):
        count = min(_FILE_RECORDS, records - first)
        chosen = rng.integers(0, len(keys), count).tolist()
        kinds = rng.integers(0, 100, count).tolist()
        messages: list[Message] = []
        partitions: list[int] = []
        for key, kind in zip(chosen, kinds, strict=True):
            offset = first + len(messages)
            group = key // PARTITIONS
            if offset % _REBALANCE_INTERVAL == 0:
                generations[group] += 1
                messages.extend(_rebalance(group, generations[group]))
            else:
                messages.append((keys[key], _commit(offset, kind)))
            partitions.extend([group % _LOG_PARTITIONS] * (len(messages) - len(partitions)))
        _write(directory / f"{first:012}.parquet", messages[:count], partitions[:count], first)


def _write(path: Path, messages: list[Message], partitions: list[int], first: int) -> None:
    numbers = pa.array(range(first, first + len(messages)), pa.int64())
    columns = {
        "key": pa.array([key for key, _ in messages], pa.binary()),
        "value": pa.array([value for _, value in messages], pa.binary()),
        "partition": pa.array(partitions, pa.int32()),
        "offset": numbers,
        "timestamp": numbers,
    }
    pq.write_table(pa.table(columns), path)


def _commit_key(group: int, number: int) -> bytes:
    partition = TopicPartition(TOPIC, number)
    return encode_record(OffsetCommit(f"group-{group}", partition, offset=0, timestamp=0))[0]


def _commit(offset: int, kind: int) -> bytes | None:
    if kind == 0:
        return None
    text = _TEXT if kind <= 10 else b""
    return struct.pack(f">hqih{len(text)}sq", 3, offset, -1, len(text), text, offset)


def _rebalance(group: int, generation: int) -> Iterator[Message]:
    """Yield the records of one generation of a group with 3 to 6 members."""
    if group % 5:
        yield encode_record(_group_metadata(group, generation))
        return
    previous_size = _size(group, generation - 1) if generation > 1 else 0
    for consumer_record in _epoch(group, generation, previous_size, _size(group, generation)):
        yield encode_record(consumer_record)


def _size(group: int, generation: int) -> int:
    return 3 + (group + generation) % 4


def _assigned(index: int, size: int) -> tuple[int, ...]:
    return tuple(range(index, PARTITIONS, size))


def _group_metadata(group: int, generation: int) -> GroupMetadata:
    size = _size(group, generation)
    subscription = ConsumerSubscription(
        (TOPIC,), owned=NO_PARTITIONS, generation=-1, rack=None, user_data=None
    )
    members = tuple(
        MemberMetadata(
            JoinRequest(
                f"member-{index}",
                (SupportedProtocol("roundrobin", subscription),),
                "client",
                session_timeout=1_000,
                rebalance_timeout=1_000,
            ),
            Partitions.of([(TOPIC, n) for n in _assigned(index, size)]),
        )
        for index in range(size)
    )
    name = f"group-{group}"
    return GroupMetadata(
        name, "consumer", generation, "roundrobin", "member-0", generation, members
    )


def _epoch(group: int, epoch: int, previous_size: int, size: int) -> Iterator[ConsumerRecord]:
    name = f"group-{group}"
    for index in range(previous_size, size):
        yield member_metadata(
            name,
            f"member-{index}",
            instance_id=None,
            rack=None,
            client_id="consumer",
            subscription=(TOPIC,),
            rebalance_timeout=300_000,
        )
    for index in range(size, previous_size):
        yield from tombstones(name, f"member-{index}")
    yield group_epoch(name, epoch, 0)
    assigned = {index: ((TOPIC_ID, _assigned(index, size)),) for index in range(size)}
    for index, topics in assigned.items():
        yield target_assignment(name, f"member-{index}", topics)
    yield target_epoch(name, epoch, epoch)
    for index, topics in assigned.items():
        yield current_assignment(
            name,
            f"member-{index}",
            epoch=epoch,
            previous_epoch=epoch - 1,
            state=0,
            assigned=topics,
            revoking=(),
        )
