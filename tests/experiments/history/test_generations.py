"""Generations come out as they went in, and rebalances are judged by what they did."""

from __future__ import annotations

import random
import uuid

import pytest

from kassay.experiments.history.generations import generations
from kassay.experiments.history.group_state import GroupRecord, RebalanceProtocol
from kassay.experiments.history.rebalances import judge, rebalances
from kassay.experiments.history.stages import generation_rows, rebalance_rows
from kassay.experiments.history.table_rows import (
    generation_of,
    generation_row,
    judged_row,
    last_document,
)
from kassay.reference.protocol import consumer_records
from kassay.reference.protocol import primitive_types as wire
from kassay.reference.protocol.classic_records import GroupMetadata
from kassay.reference.protocol.record_codec import decode
from tests.experiments.history.lives import COUNTS, decode_rows, live, rows


def entries(raw: list[dict]) -> list[GroupRecord]:
    found = []
    for row in raw:
        record = decode(row["key"], row["value"])
        place = {name: row[name] for name in ("partition", "offset", "timestamp")}
        found.append(GroupRecord(kind=record.kind, key=record.key, value=record.value, **place))
    return found


def classic(*records: GroupMetadata | None, group: str = "g") -> list[GroupRecord]:
    """Metadata records of a group in their order; None for a tombstone."""
    key = wire.integer(2, "h") + wire.text(group)
    return entries(
        [
            {
                "key": key,
                "value": None if record is None else record.value,
                "partition": 0,
                "offset": offset,
                "timestamp": offset,
            }
            for offset, record in enumerate(records)
        ]
    )


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_every_generation_is_found_and_none_invented(assignor: str) -> None:
    steps = list(live("g", assignor, seed=1, steps=30))
    found = list(generations("g", classic(*(step.record for step in steps))))
    assert [one.number for one in found] == [step.number for step in steps]
    for one, step in zip(found, steps, strict=True):
        given = {
            m.id: sorted((t, n) for t, numbers in m.assigned or () for n in numbers)
            for m in one.members
        }
        assert given == {id: sorted(map(tuple, tps)) for id, tps in step.assignment.items()}


def test_moves_are_those_between_one_generation_and_the_next() -> None:
    steps = list(live("g", "range", seed=2, steps=25))
    found = list(rebalances(generations("g", classic(*(s.record for s in steps))), counts=COUNTS))
    assert [one.last.number for one in found] == [step.number for step in steps]
    for one, step in zip(found, steps, strict=True):
        before = {tuple(tp): id for id, tps in step.owned.items() for tp in tps}
        # Whoever does not subscribe to a topic owns nothing of it; range never gives it any.
        moved = sum(
            before.get(tuple(tp), id) != id for id, tps in step.assignment.items() for tp in tps
        )
        verdict = judge(one)
        assert verdict is not None
        assert (verdict.ending, verdict.movement.greedy) == ("ok", moved)
        assert verdict.unnecessary_moves is not None


def test_what_cooperative_members_hand_over_in_two_generations_is_one_rebalance() -> None:
    steps = list(live("g", "cooperative-sticky", seed=3, steps=20))
    found = list(rebalances(generations("g", classic(*(s.record for s in steps))), counts=COUNTS))
    assert sum(one.rounds for one in found) == len(steps)
    assert max(one.rounds for one in found) == 2
    for one in found:
        verdict = judge(one)
        assert verdict is not None
        assert verdict.ending == "ok"
        assert verdict.imbalance["sum_of_squares"].gap == 0


def test_after_a_gap_nobody_is_said_to_have_moved() -> None:
    steps = [step.record for step in live("g", "range", seed=4, steps=6)]
    found = list(rebalances(generations("g", classic(*steps[:2], *steps[4:])), counts=COUNTS))
    assert [one.unknown is None for one in found] == [True, True, False, True]
    assert found[2].unknown is not None
    assert "generation 3 to 4 is missing" in found[2].unknown
    verdict = judge(found[2])
    assert verdict is not None
    assert verdict.movement.greedy is None
    assert verdict.imbalance["sum_of_squares"].greedy is not None


def test_an_only_member_moves_nothing_whatever_is_missing_before_it() -> None:
    record = next(live("g", "range", seed=1, steps=1)).record._replace(generation=8)
    [only] = rebalances(generations("g", classic(record)), counts=COUNTS)
    verdict = judge(only)
    assert only.unknown is None
    assert verdict is not None
    assert verdict.unnecessary_moves == 0


def test_records_of_one_generation_are_one_generation_and_a_copy_counts_once() -> None:
    [first, second] = [step.record for step in live("g", "range", seed=5, steps=2)]
    joined = first._replace(members=tuple(m._replace(assignment=[]) for m in first.members))
    once = classic(joined, first, second)
    assert list(generations("g", [each for each in once for _ in range(2)])) == list(
        generations("g", once)
    )
    assert [one.number for one in generations("g", once)] == [1, 2]


def test_a_deleted_group_begins_another_life() -> None:
    records = [step.record for step in live("g", "range", seed=6, steps=3)]
    found = list(generations("g", classic(*records, None, *records[:2])))
    assert [(one.life, one.number) for one in found] == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
    lost_tombstone = list(generations("g", classic(*records, *records[:2])))
    assert [(one.life, one.number) for one in lost_tombstone] == [
        (one.life, one.number) for one in found
    ]


def test_a_group_that_nobody_joined_yet_is_in_no_generation() -> None:
    empty = GroupMetadata("g", "", 0, None, None, 5, ())
    assert list(generations("g", classic(empty))) == []


def test_a_group_that_all_have_left_has_no_members_and_nothing_to_judge() -> None:
    first = next(live("g", "range", seed=7, steps=1)).record
    left = GroupMetadata("g", "consumer", 2, None, None, 9, ())
    third = first._replace(generation=3)
    found = list(generations("g", classic(first, left, third)))
    assert [len(one.members) for one in found] == [1, 0, 1]
    told = list(rebalances(found))
    assert [one.last.number for one in told] == [1, 3]
    assert told[1].group is not None
    assert not any(len(member.owned) for member in told[1].group.members)
    assert told[1].unknown is None


def _consumer(*records: consumer_records.ConsumerRecord) -> list[GroupRecord]:
    return entries(
        [
            {"key": r.key, "value": r.value, "partition": 0, "offset": n, "timestamp": n}
            for n, r in enumerate(records)
        ]
    )


def _member(id: str, topics: list[str], instance: str | None = None):
    return consumer_records.member_metadata(
        "g",
        id,
        instance_id=instance,
        rack=None,
        client_id=id,
        subscription=topics,
        rebalance_timeout=1,
    )


TOPIC = uuid.UUID(int=77)


def _target(id: str, *numbers: int) -> consumer_records.ConsumerRecord:
    return consumer_records.target_assignment("g", id, ((TOPIC, numbers),))


def test_epochs_of_a_consumer_group_are_its_target_assignments() -> None:
    records = [
        _member("a", ["t"]),
        consumer_records.group_epoch("g", 1, 0),
        _target("a", 0, 1),
        consumer_records.target_epoch("g", 1, 0),
        _member("b", ["t"]),
        consumer_records.group_epoch("g", 2, 0),
        _target("a", 0),
        _target("b", 1),
        consumer_records.target_epoch("g", 2, 0),
        *consumer_records.tombstones("g", "a"),
        consumer_records.group_epoch("g", 3, 0),
        _target("b", 0, 1),
        consumer_records.target_epoch("g", 3, 0),
        *consumer_records.tombstones("g", "b"),
        consumer_records.group_epoch("g", 4, 0),
    ]
    found = list(generations("g", _consumer(*records), names={str(TOPIC): "t"}))
    assert all(one.protocol is RebalanceProtocol.CONSUMER for one in found)
    by_id = {str(TOPIC): "t"}
    rows_ = decode_rows(
        {"key": r.key, "value": r.value, "partition": 0, "offset": n, "timestamp": n}
        for n, r in enumerate(records)
    )
    told = [generation_of(row) for row in generation_rows(rows_, names=by_id)]
    assert [{m.id: m.assigned for m in one.members} for one in told] == [
        {"a": (("t", (0, 1)),)},
        {"a": (("t", (0,)),), "b": (("t", (1,)),)},
        {"b": (("t", (0, 1)),)},
        {},
    ]
    assert [one.number for one in told] == [one.number for one in found] == [1, 2, 3, 4]
    moved = [judge(one) for one in rebalances(told)]
    assert [(m.movement.greedy, m.unnecessary_moves) for m in moved if m] == [
        (0, 0),
        (1, 0),
        (0, 0),
    ]


def test_a_static_member_takes_over_from_itself_without_a_new_epoch() -> None:
    records = [
        _member("a", ["t"], "post"),
        consumer_records.group_epoch("g", 1, 0),
        _target("a", 0, 1),
        consumer_records.target_epoch("g", 1, 0),
        *consumer_records.tombstones("g", "a"),
        _member("z", ["t"], "post"),
        _target("z", 0, 1),
    ]
    [only] = generations("g", _consumer(*records))
    assert [(m.id, m.instance_id) for m in only.members] == [("z", "post")]


def test_rows_hold_all_that_a_generation_says() -> None:
    steps = live("g", "range", seed=8, steps=5)
    for one in generations("g", classic(*(step.record for step in steps))):
        assert generation_of(generation_row(one)) == one


def test_streams_say_what_the_functions_say_whatever_the_order_of_records() -> None:
    raw = rows("g", "sticky", seed=9, steps=12) + rows("h", "range", seed=9, steps=9)
    random.Random(3).shuffle(raw)
    decoded = [row for row in decode_rows(raw) if row["kind"] == 2]
    decoded.sort(key=lambda row: (row["group"], row["offset"]))
    generations_ = list(generation_rows(decoded, names={}))
    assert [(row["group"], row["number"]) for row in generations_] == [
        *(("g", n) for n in range(1, 13)),
        *(("h", n) for n in range(1, 10)),
    ]
    judged = [judged_row(row) for row in rebalance_rows(generations_, counts=COUNTS)]
    assert {row["ending"] for row in judged} == {"ok"}
    document = last_document(judged[11])
    assert document is not None
    assert document["id"] == "g"
    last = list(live("g", "sticky", seed=9, steps=12))[-1]
    assert {m["id"]: len(m["owned"]) for m in document["members"]} == last.assignment.loads()


def test_only_the_newest_commit_of_a_partition_goes_on() -> None:
    raw = rows("g", "range", seed=1, steps=6)
    found = [row for row in decode_rows(reversed(raw)) if row["kind"] == 1]
    assert [row["records"] for row in found] == [6, 6, 6]
    assert all('"offset":60' in row["payload"] for row in found)


def test_a_damaged_record_is_a_row_and_the_rest_goes_on() -> None:
    raw = rows("g", "range", seed=1, steps=4)
    raw[4] = {**raw[4], "value": raw[4]["value"][:30]}
    found = list(decode_rows(raw))
    [error] = [row for row in found if row["error"]]
    assert error["offset"] == 4
    assert "group metadata" in error["error"]
    assert sum(row["records"] for row in found) == len(raw)


def test_generations_of_other_applications_are_told_and_not_judged() -> None:
    record = next(live("g", "range", seed=1, steps=1)).record._replace(protocol_type="connect")
    [found] = generations("g", classic(record))
    assert [(m.subscription, m.assigned) for m in found.members] == [(None, None)]
    assert list(rebalances([found])) == []
