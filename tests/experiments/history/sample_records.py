"""Records of groups with seeded joins and leaves, as a coordinator writes them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.record_encoder import encode_record
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.history.group_records import Position, decode_batches
from kassay.experiments.history.recorded_rebalances import RecordedRebalance, compare_result
from kassay.experiments.spark.history_pipeline import RAW
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    GroupMetadata,
    JoinRequest,
    MemberMetadata,
    OffsetCommit,
    SupportedProtocol,
)
from kassay.reference.protocol.message_decoder import DecodedRecord, decode

PARTITION_COUNTS = {"audit": 3, "orders": 7}
Message = tuple[bytes, bytes | None]


@dataclass(frozen=True)
class Step:
    """One generation: its number, previous owners, assignment and record."""

    number: int
    owned: dict[str, list]
    assignment: Assignment
    record: GroupMetadata


def generation_steps(name: str, assignor: str, *, seed: int, steps: int) -> Iterator[Step]:
    """Yield generations of a classic group; cooperative rebalances take two of them."""
    rng = random.Random(f"{name}/{seed}")
    subscriptions: dict[str, tuple[str, ...]] = {}
    owned: dict[str, list] = {}
    number, joined, withheld = 0, 0, False
    while number < steps or withheld:
        if not withheld:
            if len(subscriptions) < 2 or (len(subscriptions) < 6 and rng.random() < 0.6):
                subscriptions[f"m{joined}"] = (*rng.choice((("orders",), ("audit", "orders"))),)
                joined += 1
            else:
                del subscriptions[rng.choice(sorted(subscriptions))]
        number += 1
        owned = {id: owned.get(id, []) for id in subscriptions}
        group = Group(
            topics=tuple(Topic(name=t, partitions=n) for t, n in PARTITION_COUNTS.items()),
            members=tuple(
                Member(
                    id=id,
                    subscription=topics,
                    owned=owned[id],
                    generation=number - 1 if owned[id] else -1,
                )
                for id, topics in subscriptions.items()
            ),
        )
        assignment = assign(group, assignor)
        record = _group_metadata(name, assignor, number, group, assignment)
        yield Step(number, dict(owned), assignment, record)
        owned = {id: list(assignment[id]) for id in subscriptions}
        subscribed = {topic for topics in subscriptions.values() for topic in topics}
        partitions = sum(PARTITION_COUNTS[topic] for topic in subscribed)
        withheld = sum(map(len, owned.values())) < partitions


def _group_metadata(
    name: str, assignor: str, number: int, group: Group, assignment: Assignment
) -> GroupMetadata:
    members = tuple(
        MemberMetadata(
            JoinRequest(
                member.id,
                (SupportedProtocol(assignor, ConsumerSubscription(member.subscription)),),
                member.id,
                session_timeout=1000,
                rebalance_timeout=1000,
            ),
            assignment[member.id],
        )
        for member in group.members
    )
    leader = group.members[0].id
    return GroupMetadata(name, "consumer", number, assignor, leader, 1000 * number, members)


def group_metadata_records(name: str, assignor: str, *, seed: int, steps: int) -> list:
    return [step.record for step in generation_steps(name, assignor, seed=seed, steps=steps)]


def raw_rows(messages: Iterable[Message]) -> list[dict]:
    """Return raw records of partition 0, with the offset as timestamp."""
    return [
        {"key": key, "value": value, "partition": 0, "offset": offset, "timestamp": offset}
        for offset, (key, value) in enumerate(messages)
    ]


def sample_rows(name: str, assignor: str, *, seed: int, steps: int) -> list[dict]:
    """Return raw records of a group: each generation followed by three commits."""
    messages = []
    for step in generation_steps(name, assignor, seed=seed, steps=steps):
        commits = [
            OffsetCommit(name, TopicPartition("orders", n), offset=step.number * 10, timestamp=5)
            for n in range(3)
        ]
        messages += map(encode_record, (step.record, *commits))
    return raw_rows(messages)


def decode_rows(raw: Iterable[dict], *, batch_size: int = 7) -> Iterator[dict]:
    return decode_batches(pa.Table.from_pylist(list(raw), schema=RAW).to_batches(batch_size))


def group_records(raw: Iterable[dict]) -> list[DecodedRecord]:
    """Decode raw records one by one."""
    return [
        replace(decode(row["key"], row["value"]), **{name: row[name] for name in Position._fields})
        for row in raw
    ]


def compare_rebalance(rebalance: RecordedRebalance) -> Comparison | None:
    """Compare a rebalance with the optimum. Return None if the rebalance has no valid group."""
    if rebalance.group is None:
        return None
    return compare_result(
        rebalance.group,
        rebalance.assignment,
        assignor=rebalance.last.assignor or "",
        rounds=rebalance.rounds,
        owners_known=rebalance.unknown is None,
    )
