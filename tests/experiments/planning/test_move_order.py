import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay.experiments.planning.move_order import moves_between, schedule
from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model.metrics import loads, movement
from kassay.reference.model.ownership import NO_OWNER, ownership
from tests.strategies import groups, valid_assignments


def _held(group):
    return {
        (topic, number): group.members[owner].id
        for topic, column in ownership(group).owners.items()
        for number, owner in enumerate(column.tolist())
        if owner != NO_OWNER
    }


@given(st.data(), groups(weighted=True), st.integers(1, 4))
def test_the_batches_lead_from_today_to_the_plan(data, group, most):
    plan = data.draw(valid_assignments(group))
    hands = _held(group)
    for batch in schedule(group, plan, most=most):
        for move in batch.moves:
            assert hands.get((move.topic, move.partition)) == move.giver
            hands[move.topic, move.partition] = move.taker
        members = {member.id: [] for member in group.members}
        for place, member in hands.items():
            members[member].append(place)
        assert batch.makespan == max(loads(group, Assignment(members)).values(), default=0)
    assert hands == {tp: member for member, tps in plan.items() for tp in tps}


@given(st.data(), groups(weighted=True), st.integers(1, 4))
def test_no_more_partitions_wait_than_were_allowed(data, group, most):
    batches = schedule(group, data.draw(valid_assignments(group)), most=most)
    owned = [[move for move in batch.moves if move.giver is not None] for batch in batches]
    assert all(len(moves) <= most for moves in owned)
    # Nobody waits for what had no owner before.
    assert all(not moves or len(moves) == len(b.moves) for moves, b in zip(owned, batches))  # noqa: B905


@given(st.data(), groups())
def test_moves_are_counted_as_the_judge_counts_them(data, group):
    plan = data.draw(valid_assignments(group))
    moved = [move for move in moves_between(group, plan) if move.giver is not None]
    assert len(moved) == movement(group, plan)


def test_the_idlest_is_served_first_by_the_busiest():
    group = Group(
        topics=(Topic(name="t", partitions=8, weights=(9, 1, 1, 4, 5, 2, 2, 3)),),
        members=(
            Member(id="a", subscription=("t",), owned=[("t", n) for n in (0, 1, 3)]),
            Member(id="b", subscription=("t",), owned=[("t", n) for n in (2, 4, 5, 6)]),
            Member(id="c", subscription=("t",)),
        ),
    )
    plan = Assignment(
        {
            "a": [("t", 0)],
            "b": [("t", 2), ("t", 4)],
            "c": [("t", n) for n in (1, 3, 5, 6, 7)],
        }
    )
    steps = [(str(move), batch.makespan) for batch in schedule(group, plan) for move in batch.moves]
    assert steps == [
        ("t-7 without an owner to c", 14),
        ("t-3 from a to c", 10),
        ("t-1 from a to c", 10),
        ("t-5 from b to c", 10),
        ("t-6 from b to c", 12),
    ]


def test_a_batch_without_room_is_refused():
    with pytest.raises(ValueError, match="at least 1 move, got 0"):
        schedule(Group(topics=(), members=()), Assignment({}), most=0)
