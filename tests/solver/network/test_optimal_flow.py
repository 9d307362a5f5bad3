from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Imbalance, Member, Method, Movement, Topic, movement, solve, violations
from kassay.reference.model.load_metrics import MEASURES, Measure, imbalance, leximax, loads
from kassay.solver.network.optimal_flow import level_sets, optimal_counts
from kassay.solver.network.subscription_network import build_network
from kassay.solver.problem import build_problem
from tests import brute_force
from tests.exhaustive import PARTITIONS, difference, small_groups
from tests.notation import group as small_group
from tests.strategies import groups
from tests.tiers import short_and_long


def optimum_of(group):
    solution = solve(group, method=Method.FLOW)
    assert list(violations(group, solution.assignment)) == []
    assert solution.status == "optimal"
    assert solution.imbalance.value == imbalance(group, solution.assignment)
    assert solution.movement.value == movement(group, solution.assignment)
    return solution.imbalance.value, solution.movement.value


@given(groups())
def test_both_levels_agree_with_brute_force(group):
    assert optimum_of(group) == brute_force.optimum(group)


@given(groups(messy=True))
def test_attributes_of_real_groups_are_accepted(group):
    assert optimum_of(group) == brute_force.optimum(group)


@pytest.mark.parametrize(("partitions", "step"), short_and_long((4, 100), (PARTITIONS, 40)))
def test_both_methods_agree_with_brute_force_on_a_sample_of_all_small_groups(partitions, step):
    sample = islice(small_groups(partitions), 0, None, step)
    assert [error for error in map(difference, sample) if error is not None] == []


@given(groups())
def test_one_optimum_minimises_every_measure_at_once(group):
    found = loads(group, solve(group).assignment).values()
    reachable = brute_force.reachable(group)
    for measure in MEASURES.values():
        assert measure(tuple(found)) == min(measure(vector) for vector in reachable)
    assert leximax(found) == min(leximax(vector) for vector in reachable)


@given(groups(), st.integers(2, 9))
def test_a_common_weight_scales_only_the_imbalance(group, weight):
    topics = (replace(one, weights=(weight,) * one.partitions) for one in group.topics)
    weighted = replace(group, topics=tuple(topics))
    plain, scaled = solve(group), solve(weighted, levels=[Imbalance(), Movement()])
    assert scaled.method == "flow"
    assert scaled.imbalance.value == weight**2 * plain.imbalance.value
    assert scaled.movement.value == plain.movement.value


def test_level_sets_split_the_members_by_load():
    # a can only have t0, so it carries all five; b and c share the rest.
    network = build_network(build_problem(small_group("t0:5 t1:3", a="t0", b="t1", c="t1", d="t1")))
    levels = level_sets(network, optimal_counts(network))
    assert levels == ((0,), (1, 2, 3))


def test_groups_with_many_level_sets_are_solved():
    names = [f"t{index:02}" for index in range(40)]
    group = Group(
        topics=tuple(Topic(name=n, partitions=2 * i + 1) for i, n in enumerate(names)),
        members=tuple(Member(id=n, subscription=(n,)) for n in names),
    )
    assert list(solve(group).assignment.counts().values()) == [2 * i + 1 for i in range(40)]


def test_an_owner_keeps_its_partitions_with_the_lowest_numbers():
    assignment = solve(small_group("t:6", a="t | t-5 t-3 t-1 t-0", b="t")).assignment
    assert assignment["a"] == [("t", 0), ("t", 1), ("t", 3)]
    assert assignment["b"] == [("t", 2), ("t", 4), ("t", 5)]


def test_measures_that_are_not_strictly_convex_need_their_own_flow():
    group = small_group("t:3", a="t", b="t")
    assert solve(group, levels=[Imbalance(Measure.MAKESPAN), Movement()]).method == "enumeration"
    assert solve(group, levels=[Imbalance(Measure.MAKESPAN)]).method == "flow"
    with pytest.raises(ValueError, match="'flow' requires equal weights"):
        solve(group, levels=[Imbalance(Measure.MAKESPAN), Movement()], method="flow")
