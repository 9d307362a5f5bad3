"""Generations are reconstructed as they were written."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from benchmarks.record_encoder import (
    ConsumerRecord,
    encode_key,
    encode_record,
    group_epoch,
    member_metadata,
    target_assignment,
    target_epoch,
    tombstones,
)
from kassay.experiments.history.generations import generation_of, reconstruct_generations
from kassay.experiments.history.recorded_rebalances import find_rebalances, generation_rows
from kassay.experiments.spark.history_pipeline import GENERATIONS
from kassay.reference.model.group import Protocol
from kassay.reference.protocol.group_messages import GroupMetadata
from kassay.reference.protocol.message_decoder import DecodedRecord, RecordType
from tests.experiments.history.sample_records import (
    compare_rebalance,
    decode_rows,
    generation_steps,
    group_metadata_records,
    group_records,
    raw_rows,
)

TOPIC = uuid.UUID(int=77)
TOPIC_NAMES = {str(TOPIC): "t"}


def classic(*records: GroupMetadata | None) -> list[DecodedRecord]:
    """Return metadata records of group g; None is a tombstone."""
    key = encode_key(RecordType.GROUP_METADATA, {"group": "g"})
    return group_records(raw_rows((key, record and encode_record(record)[1]) for record in records))


def messages(*records: ConsumerRecord) -> list[dict]:
    return raw_rows(map(encode_record, records))


def member(id: str, instance_id: str | None = None) -> ConsumerRecord:
    return member_metadata(
        "g",
        id,
        instance_id=instance_id,
        rack=None,
        client_id=id,
        subscription=["t"],
        rebalance_timeout=1,
    )


def target(id: str, *numbers: int) -> ConsumerRecord:
    return target_assignment("g", id, ((TOPIC, numbers),))


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_all_generations_of_a_classic_group_are_reconstructed(assignor: str) -> None:
    steps = list(generation_steps("g", assignor, seed=1, steps=30))
    generations = list(reconstruct_generations("g", classic(*(step.record for step in steps))))
    assert [generation.number for generation in generations] == [step.number for step in steps]
    for generation, step in zip(generations, steps, strict=True):
        assigned = {
            m.id: sorted((t, n) for t, numbers in m.assigned or () for n in numbers)
            for m in generation.members
        }
        assert assigned == {id: sorted(map(tuple, tps)) for id, tps in step.assignment.items()}


def test_several_records_of_one_generation_and_repeated_records_count_once() -> None:
    [first, second] = group_metadata_records("g", "range", seed=5, steps=2)
    joined = first._replace(members=tuple(m._replace(assignment=[]) for m in first.members))
    records = classic(joined, first, second)
    generations = list(reconstruct_generations("g", records))
    repeated = [record for record in records for _ in range(2)]
    assert [generation.number for generation in generations] == [1, 2]
    assert list(reconstruct_generations("g", repeated)) == generations


def test_a_group_that_is_created_again_starts_another_incarnation() -> None:
    records = group_metadata_records("g", "range", seed=6, steps=3)
    numbers = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
    for history in ([*records, None, *records[:2]], [*records, *records[:2]]):
        generations = reconstruct_generations("g", classic(*history))
        assert [(g.incarnation, g.number) for g in generations] == numbers


def test_an_empty_generation_has_no_members_and_no_rebalance() -> None:
    [first] = group_metadata_records("g", "range", seed=7, steps=1)
    empty = GroupMetadata("g", "consumer", 2, None, None, 9, ())
    history = classic(first, empty, first._replace(generation=3))
    generations = list(reconstruct_generations("g", history))
    assert [len(generation.members) for generation in generations] == [1, 0, 1]
    rebalances = list(find_rebalances(generations))
    assert [rebalance.last.number for rebalance in rebalances] == [1, 3]
    assert rebalances[1].group is not None
    assert not any(len(member.owned) for member in rebalances[1].group.members)
    assert rebalances[1].unknown is None


def test_generations_of_a_consumer_group_are_its_target_assignments() -> None:
    raw = messages(
        member("a"),
        group_epoch("g", 1, 0),
        target("a", 0, 1),
        target_epoch("g", 1, 0),
        member("b"),
        group_epoch("g", 2, 0),
        target("a", 0),
        target("b", 1),
        target_epoch("g", 2, 0),
        *tombstones("g", "a"),
        group_epoch("g", 3, 0),
        target("b", 0, 1),
        target_epoch("g", 3, 0),
        *tombstones("g", "b"),
        group_epoch("g", 4, 0),
    )
    generations = list(reconstruct_generations("g", group_records(raw), topic_names=TOPIC_NAMES))
    assert [generation.number for generation in generations] == [1, 2, 3, 4]
    assert {generation.protocol for generation in generations} == {Protocol.CONSUMER}
    assert [{m.id: m.assigned for m in generation.members} for generation in generations] == [
        {"a": (("t", (0, 1)),)},
        {"a": (("t", (0,)),), "b": (("t", (1,)),)},
        {"b": (("t", (0, 1)),)},
        {},
    ]
    rows = list(generation_rows(decode_rows(raw), topic_names=TOPIC_NAMES))
    rows = pa.RecordBatch.from_pylist(rows, schema=GENERATIONS).to_pylist()
    assert [generation_of(row) for row in rows] == generations
    comparisons = [compare_rebalance(rebalance) for rebalance in find_rebalances(generations)]
    assert [(c.movement.value, c.unnecessary_moves) for c in comparisons if c] == [
        (0, 0),
        (1, 0),
        (0, 0),
    ]


def test_a_static_member_keeps_its_assignment_under_a_new_member_id() -> None:
    raw = messages(
        member("a", "post"),
        group_epoch("g", 1, 0),
        target("a", 0, 1),
        target_epoch("g", 1, 0),
        *tombstones("g", "a"),
        member("z", "post"),
        target("z", 0, 1),
    )
    [generation] = reconstruct_generations("g", group_records(raw))
    assert [(m.id, m.instance_id) for m in generation.members] == [("z", "post")]
