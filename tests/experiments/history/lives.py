"""Groups that live through seeded joins and leaves, as the records their coordinator writes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kassay.experiments.history.stages import decode_batches
from kassay.experiments.spark.history_schemas import RAW
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, TopicPartition
from kassay.reference.protocol.classic_records import GroupMetadata, MemberMetadata, OffsetCommit
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription

COUNTS = {"audit": 3, "orders": 7}


@dataclass(frozen=True)
class Step:
    """One generation, as it was made."""

    number: int
    owned: dict[str, list]
    assignment: Assignment
    record: GroupMetadata


def live(name: str, assignor: str, *, seed: int, steps: int) -> Iterator[Step]:
    """Yield generations; cooperative ones take as many as they need after each event."""
    rng = random.Random(f"{name}/{seed}")
    subscriptions: dict[str, tuple[str, ...]] = {}
    owned: dict[str, list] = {}
    number, fresh, withheld = 0, 0, False
    while number < steps or withheld:
        if not withheld:
            if len(subscriptions) < 2 or (len(subscriptions) < 6 and rng.random() < 0.6):
                subscriptions[f"m{fresh}"] = (*rng.choice((("orders",), ("audit", "orders"))),)
                fresh += 1
            else:
                del subscriptions[rng.choice(sorted(subscriptions))]
        number += 1
        owned = {id: owned.get(id, []) for id in subscriptions}
        group = Group(
            topics=tuple(Topic(name=t, partitions=n) for t, n in COUNTS.items()),
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
        yield Step(
            number, dict(owned), assignment, _record(name, assignor, number, group, assignment)
        )
        owned = {id: list(assignment[id]) for id in subscriptions}
        wanted = sum(COUNTS[t] for t in {t for topics in subscriptions.values() for t in topics})
        withheld = sum(map(len, owned.values())) < wanted


def _record(
    name: str, assignor: str, number: int, group: Group, assignment: Assignment
) -> GroupMetadata:
    members = tuple(
        MemberMetadata(
            member.id,
            None,
            member.id,
            "/127.0.0.1",
            1000,
            1000,
            ConsumerSubscription(
                member.subscription, owned=NO_PARTITIONS, generation=-1, rack=None, user_data=None
            ),
            assignment[member.id],
        )
        for member in group.members
    )
    leader = group.members[0].id
    return GroupMetadata(name, "consumer", number, assignor, leader, 1000 * number, members)


def rows(name: str, assignor: str, *, seed: int, steps: int) -> list[dict]:
    """Return a life as raw records: each generation followed by commits."""
    found = []
    for step in live(name, assignor, seed=seed, steps=steps):
        records = [step.record] + [
            OffsetCommit(name, TopicPartition("orders", n), offset=step.number * 10, timestamp=5)
            for n in range(3)
        ]
        for record in records:
            found.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "partition": 4,
                    "offset": len(found),
                    "timestamp": 1000 * step.number,
                }
            )
    return found


def decode_rows(raw: Iterable[dict], *, at_once: int = 7) -> Iterator[dict]:
    """Decode raw records, a few to a batch."""
    return decode_batches(pa.Table.from_pylist(list(raw), schema=RAW).to_batches(at_once))
