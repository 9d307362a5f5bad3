from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Assignment, Group, Measure, Member, Topic, imbalance, loads, movement
from kassay.reference.model.assignment import movement_count
from kassay.reference.model.load_metrics import (
    MEASURES,
    balance_score,
    deviation,
    leximax,
    off_rack,
    participants,
    spread,
    sum_of_squares,
)
from tests.notation import group
from tests.strategies import groups, valid_assignments

vectors = st.lists(st.integers(0, 50), min_size=1, max_size=6)


@given(vectors)
def test_balance_score_is_the_sum_over_pairs(vector):
    assert balance_score(vector) == sum(abs(a - b) for a, b in combinations(vector, 2))


@given(vectors)
def test_deviation_is_the_scaled_sum_of_distances_from_the_mean(vector):
    mean = sum(vector) / len(vector)
    assert deviation(vector) == pytest.approx(len(vector) * sum(abs(x - mean) for x in vector))


@given(vectors, st.randoms())
def test_measures_do_not_depend_on_the_order_of_members(vector, random):
    shuffled = random.sample(vector, len(vector))
    assert leximax(vector) == leximax(shuffled)
    for measure in MEASURES.values():
        assert measure(vector) == measure(shuffled)


@given(st.integers(0, 6), st.integers(1, 4))
def test_every_measure_is_minimal_for_even_loads(total, size):
    even = [total // size + (1 if rank < total % size else 0) for rank in range(size)]
    vectors = [v for v in product(range(total + 1), repeat=size) if sum(v) == total]
    for measure in (leximax, *MEASURES.values()):
        assert measure(even) == min(map(measure, vectors))


def test_every_measure_is_zero_without_members():
    assert [measure(()) for measure in MEASURES.values()] == [0, 0, 0, 0, 0]


def group_of_two(sizes="3", owned="") -> Group:
    return group(f"t:{sizes}", a=f"t | {owned}", b="t", idle="gone")


def test_idle_members_have_no_load():
    two = group_of_two()
    assert participants(two) == ("a", "b")
    assert loads(two, Assignment({"a": [("t", 0)], "idle": []})) == {"a": 1, "b": 0}
    assert participants(group("empty:0", a="empty")) == ()


def test_loads_and_imbalance_use_the_weights():
    group = group_of_two("5,1,1")
    assignment = Assignment({"a": [("t", 0)], "b": [("t", 1), ("t", 2)]})
    assert loads(group, assignment) == {"a": 5, "b": 2}
    assert imbalance(group, assignment) == 29
    assert imbalance(group, assignment, measure=Measure.MAKESPAN) == 5
    assert imbalance(group, assignment, measure="spread") == 3


def test_movement_counts_only_partitions_with_an_owner():
    group = group_of_two("5,1,1", "t-0..1")
    assignment = Assignment({"a": [("t", 1)], "b": [("t", 0), ("t", 2)]})
    count = movement_count(group, assignment)
    assert movement(group, assignment) == 1
    assert count == (1, 1, 1)
    group = group_of_two(owned="t-0..1")
    count = movement_count(group, Assignment({"a": [("t", 1)], "b": [("t", 2)]}))
    assert count == (1, 0, 1)


@given(st.data())
def test_movement_equals_a_count_over_single_partitions(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    before = {tp: member.id for member in group.members for tp in member.owned}
    after = {tp: member for member, tps in assignment.items() for tp in tps}
    expected = sum(tp in after and after[tp] != owner for tp, owner in before.items())
    assert movement(group, assignment) == expected


@given(st.data())
def test_weighted_loads_sum_to_the_weight_of_the_subscribed_partitions(data):
    group = data.draw(groups(weighted=True))
    assignment = data.draw(valid_assignments(group))
    subscribers = group.subscribers()
    total = sum(t.total_weight for t in group.topics if subscribers.get(t.name))
    assert sum(loads(group, assignment).values()) == total


def test_sum_of_squares_and_spread_of_a_known_vector():
    assert sum_of_squares([9, 10, 11]) - sum_of_squares([10, 10, 10]) == 2
    assert spread([9, 10, 11]) == 2


@pytest.mark.parametrize(
    ("assigned", "load"),
    [
        ([("t", 0), ("t", 3), ("u", 0), ("gone", 0)], 8),
        ([("gone", 0), ("t", 0)], 6),
        ([("gone", 0), ("gone", 1)], 2),
    ],
)
def test_partitions_that_do_not_exist_have_weight_one(assigned, load) -> None:
    assert loads(group("t:5,1,1 u:1", a="t u"), Assignment({"a": assigned})) == {"a": load}


RACKED = Group(
    topics=(Topic(name="t", partitions=3, racks=(("r0",), ("r0", "r1"), (None,))),),
    members=(
        Member(id="a", subscription=("t",), rack="r1", owned=[("t", 0)]),
        Member(id="b", subscription=("t",)),
    ),
)


def test_off_rack_counts_only_known_racks_of_members_and_partitions():
    assert off_rack(RACKED, Assignment({"a": [("t", 0), ("t", 1), ("t", 2)]})) == 1
    assert off_rack(RACKED, Assignment({"b": [("t", 0), ("t", 1), ("t", 2)]})) == 0
