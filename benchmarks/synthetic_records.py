"""Synthetic records of ``__consumer_offsets``, in about the proportions of a busy cluster's.

Of 10,000 records 5 begin a rebalance, and the others are commits, of which one in a
hundred is a tombstone and one in ten carries a text. Every fifth group is of the consumer
protocol, a rebalance of which takes about a dozen records.
"""

import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol import consumer_records
from kassay.reference.protocol.classic_records import GroupMetadata, MemberMetadata, OffsetCommit
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription

TOPIC = "orders"
TOPIC_ID = uuid.UUID(int=77)
PARTITIONS = 24
GROUPS = 1_000
A_FILE = 500_000
EVERY = 2_000
"""One record in so many begins a rebalance."""
SEED = 20261121
_LOGS = 50  # partitions of the topic
_TEXT = b"consumer-orders-1"

Pair = tuple[bytes, bytes | None]


def write_records(directory: Path, records: int) -> None:
    """Write so many records as Parquet, `A_FILE` to a file, in the order of their offsets."""
    rng = np.random.default_rng(SEED)
    world = _World()
    keys = [_commit_key(g, n) for g in range(GROUPS) for n in range(PARTITIONS)]
    for first in range(0, records, A_FILE):
        count = min(A_FILE, records - first)
        chosen = rng.integers(0, len(keys), count)
        pairs: list[Pair] = []
        places: list[int] = []
        for which, dice in zip(chosen.tolist(), rng.integers(0, 100, count).tolist(), strict=True):
            index = first + len(pairs)
            group = which // PARTITIONS
            if index % EVERY == 0:
                pairs.extend(world.rebalance(group))
            else:
                pairs.append((keys[which], _commit(index, dice)))
            places.extend([group % _LOGS] * (len(pairs) - len(places)))
        _write(directory / f"{first:012}.parquet", pairs[:count], places[:count], first)


def _write(path: Path, pairs: list[Pair], places: list[int], first: int) -> None:
    numbers = pa.array(range(first, first + len(pairs)), pa.int64())
    columns = {
        "key": pa.array([key for key, _ in pairs], pa.binary()),
        "value": pa.array([value for _, value in pairs], pa.binary()),
        "partition": pa.array(places, pa.int32()),
        "offset": numbers,
        "timestamp": numbers,
    }
    pq.write_table(pa.table(columns), path)


def _commit_key(group: int, number: int) -> bytes:
    partition = TopicPartition(TOPIC, number)
    return OffsetCommit(f"group-{group}", partition, offset=0, timestamp=0).key


def _commit(index: int, dice: int) -> bytes | None:
    if dice == 0:
        return None
    text = _TEXT if dice <= 10 else b""
    return struct.pack(f">hqih{len(text)}sq", 3, index, -1, len(text), text, index)


class _World:
    """Which generation each group is in, and who was in it."""

    def __init__(self) -> None:
        self._generations = dict.fromkeys(range(GROUPS), 0)

    def rebalance(self, group: int) -> Iterator[Pair]:
        """Yield the records of a group's next generation, of 3 to 6 members."""
        before = self._generations[group]
        self._generations[group] = before + 1
        if group % 5:
            record = _generation(group, before + 1)
            yield record.key, record.value
            return
        here, there = _size(group, before) if before else 0, _size(group, before + 1)
        for made in _epoch(group, before + 1, here, there):
            yield made.key, made.value


def _size(group: int, number: int) -> int:
    return 3 + (group + number) % 4


def _share(index: int, size: int) -> tuple[int, ...]:
    return tuple(range(index, PARTITIONS, size))


def _generation(group: int, number: int) -> GroupMetadata:
    size = _size(group, number)
    said = ConsumerSubscription(
        (TOPIC,), owned=NO_PARTITIONS, generation=-1, rack=None, user_data=None
    )
    members = tuple(
        MemberMetadata(
            f"member-{index}",
            None,
            "client",
            "/127.0.0.1",
            1_000,
            1_000,
            said,
            Partitions.of([(TOPIC, n) for n in _share(index, size)]),
        )
        for index in range(size)
    )
    name = f"group-{group}"
    return GroupMetadata(name, "consumer", number, "roundrobin", "member-0", number, members)


def _epoch(
    group: int, epoch: int, before: int, after: int
) -> Iterator[consumer_records.ConsumerRecord]:
    name = f"group-{group}"
    for index in range(before, after):
        yield consumer_records.member_metadata(
            name,
            f"member-{index}",
            instance_id=None,
            rack=None,
            client_id="consumer",
            subscription=(TOPIC,),
            rebalance_timeout=300_000,
        )
    for index in range(after, before):
        yield from consumer_records.tombstones(name, f"member-{index}")
    yield consumer_records.group_epoch(name, epoch, 0)
    shares = {index: ((TOPIC_ID, _share(index, after)),) for index in range(after)}
    for index, share in shares.items():
        yield consumer_records.target_assignment(name, f"member-{index}", share)
    yield consumer_records.target_epoch(name, epoch, epoch)
    for index, share in shares.items():
        yield consumer_records.current_assignment(
            name,
            f"member-{index}",
            epoch=epoch,
            previous_epoch=epoch - 1,
            state=0,
            assigned=share,
            revoking=(),
        )
