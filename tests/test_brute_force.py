"""Brute force: its two methods agree, and known cases have the expected optimum."""

from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Member, Topic
from tests import brute_force
from tests.strategies import groups

E = Group(
    topics=(Topic(name="t", partitions=3),),
    members=(
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
        Member(id="b", subscription=("t",)),
    ),
)


def test_moving_one_of_three_partitions_is_best_and_the_frontier_has_both_ends():
    assert brute_force.optimum(E) == (5, 1)
    assert brute_force.frontier(E) == [(0, 9), (1, 5)]


def test_a_tolerance_on_the_makespan_avoids_the_move():
    assert brute_force.optimum(E, "makespan") == (2, 1)
    assert brute_force.optimum(E, "makespan", slack=lambda least: least + 1) == (2, 0)


@given(group=groups(max_total=6, messy=True), measure=st.sampled_from(list(brute_force.MEASURES)))
def test_both_brute_force_methods_find_the_same_optimum(group, measure):
    value = brute_force.MEASURES[measure]
    vector = brute_force.lexicographic_optimum(
        group,
        [
            lambda placement: value(brute_force.loads_of(group, placement)),
            lambda placement: brute_force.moves_of(group, placement),
        ],
    )
    assert vector == brute_force.optimum(group, measure)
