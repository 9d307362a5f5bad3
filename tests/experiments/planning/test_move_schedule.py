import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Assignment
from kassay.experiments.planning.moves import move_steps, schedule_moves
from kassay.reference.model.assignment import NO_OWNER, ownership
from kassay.reference.model.load_metrics import loads
from tests.notation import even_group
from tests.notation import group as small_group
from tests.strategies import groups, valid_assignments


def _owners(group):
    return {
        (topic, number): group.members[owner].id
        for topic, column in ownership(group).owners.items()
        for number, owner in enumerate(column.tolist())
        if owner != NO_OWNER
    }


@given(st.data(), groups(weighted=True), st.integers(1, 4))
def test_the_batches_lead_from_the_current_to_the_planned_assignment(data, group, size):
    plan = data.draw(valid_assignments(group))
    owners = _owners(group)
    for batch in schedule_moves(group, plan, batch_size=size):
        for move in batch.moves:
            assert owners.get((move.topic, move.partition)) == move.source
            owners[move.topic, move.partition] = move.target
        members = {member.id: [] for member in group.members}
        for tp, member in owners.items():
            members[member].append(tp)
        assert batch.makespan == max(loads(group, Assignment(members)).values(), default=0)
    assert owners == {tp: member for member, tps in plan.items() for tp in tps}


@given(st.data(), groups(weighted=True), st.integers(1, 4))
def test_a_batch_has_at_most_batch_size_owned_partitions(data, group, size):
    batches = schedule_moves(group, data.draw(valid_assignments(group)), batch_size=size)
    owned = [[move for move in batch.moves if move.source is not None] for batch in batches]
    assert all(len(moves) <= size for moves in owned)
    # Owned partitions and partitions without an owner are never in the same batch.
    assert all(len(moves) in {0, len(b.moves)} for moves, b in zip(owned, batches, strict=True))


def test_moves_go_from_the_highest_to_the_lowest_load():
    members = {"a": "t | t-0..1 t-3", "b": "t | t-2 t-4..6", "c": "t"}
    group = small_group("t:9,1,1,4,5,2,2,3", **members)
    plan = Assignment(
        {"a": [("t", 0)], "b": [("t", 2), ("t", 4)], "c": [("t", n) for n in (1, 3, 5, 6, 7)]}
    )
    steps = [
        (str(move), batch.makespan) for batch in schedule_moves(group, plan) for move in batch.moves
    ]
    assert steps == [
        ("t-7 without an owner to c", 14),
        ("t-3 from a to c", 10),
        ("t-1 from a to c", 10),
        ("t-5 from b to c", 10),
        ("t-6 from b to c", 12),
    ]


def _group_with_targets(seed):
    """Return 4 members, 12 partitions with weights, their owners and 6 other target members."""
    rng = random.Random(seed)
    weights = tuple(rng.randint(1, 30) for _ in range(12))
    owners = [rng.randrange(4) for _ in weights]
    targets = list(owners)
    for number in rng.sample(range(12), 6):
        targets[number] = rng.choice([member for member in range(4) if member != owners[number]])
    return weights, owners, targets


def _partitions_of(owners):
    return {f"c{at}": [("t", n) for n, one in enumerate(owners) if one == at] for at in range(4)}


def _maximum_loads(weights, owners, targets, order):
    current = [sum(w for w, own in zip(weights, owners, strict=True) if own == m) for m in range(4)]
    for number in order:
        current[owners[number]] -= weights[number]
        current[targets[number]] += weights[number]
        yield max(current)


@pytest.mark.parametrize("seed", range(8))
def test_the_maximum_loads_of_six_moves_are_close_to_those_of_the_best_order(seed):
    weights, owners, targets = _group_with_targets(seed)
    group = even_group(weights, 4, owners)
    batches = schedule_moves(group, Assignment(_partitions_of(targets)))
    moved = [number for number in range(12) if owners[number] != targets[number]]
    best = min(
        sum(_maximum_loads(weights, owners, targets, order)) for order in permutations(moved)
    )
    assert sum(batch.makespan for batch in batches) <= 1.1 * best


def test_a_step_names_its_moves_and_the_changed_loads():
    group = small_group("t:2", a="t | t-0..1", b="t")
    batches = schedule_moves(group, Assignment({"a": [("t", 1)], "b": [("t", 0)]}))
    [step] = move_steps(group, batches)
    assert str(step) == "a gives t-0 to b: a drops from 2 to 1, b rises from 0 to 1"
