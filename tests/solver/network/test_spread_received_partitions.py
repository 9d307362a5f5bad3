"""Partitions without an owner are spread over topics."""

import random
from dataclasses import replace

import pytest
from hypothesis import given

from benchmarks.timed_groups import mixed_group
from kassay import Group, Member, Topic, TopicSpread, certify, solve
from kassay.reference.model.assignment import movement
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.evaluation import level_value
from kassay.solver.network import optimal_flow
from kassay.solver.problem import build_problem
from tests.strategies import groups


def topic_spread(group, assignment):
    problem = build_problem(group)
    return level_value(problem, TopicSpread(), problem.to_placement(assignment))


def after_departure(group, assignment, gone):
    members = [
        replace(member, owned=assignment[member.id], generation=1)
        for index, member in enumerate(group.members)
        if index != gone
    ]
    return replace(group, members=tuple(members))


def test_the_optimum_needs_few_further_moves_after_a_departure():
    group = mixed_group(members=200, topics=400, partitions=800)
    solution = solve(group)
    assert solution.is_optimal
    for gone in random.Random(0).sample(range(200), 3):
        left = solve(after_departure(group, solution.assignment, gone))
        assert left.is_optimal
        assert left.movement.value <= 10


@pytest.mark.parametrize("partitions", [3, 10, 100])
def test_every_member_gets_partitions_of_most_of_its_topics(partitions):
    group = mixed_group(members=40, topics=30, partitions=partitions)
    assignment = solve(group).assignment
    for member in group.members:
        topics = {tp.topic for tp in assignment[member.id]}
        assert len(topics) >= min(len(assignment[member.id]), 15) * 0.6


def test_owned_partitions_stay_although_this_leaves_them_on_few_topics():
    members = (
        Member(id="a", subscription=("t", "u"), owned=[("t", number) for number in range(10)]),
        Member(id="b", subscription=("t", "u"), owned=[("u", number) for number in range(10)]),
    )
    group = Group(
        topics=(Topic(name="t", partitions=10), Topic(name="u", partitions=10)), members=members
    )
    solution = solve(group)
    assert movement(group, solution.assignment) == 0
    assert {tp.topic for tp in solution.assignment["a"]} == {"t"}


@given(groups(max_partitions=12, max_total=40))
def test_spreading_changes_neither_loads_nor_moves(group):
    solution = solve(group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimal_flow, "spread_received_partitions", lambda network, counts: counts)
        plain = solve(replace(group))
    assert solution.levels == plain.levels
    loads = sorted(solution.assignment.counts().values())
    assert loads == sorted(plain.assignment.counts().values())
    certificate = certify(group, solution)
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


def test_a_fresh_group_with_equal_subscriptions_is_spread_as_evenly_as_possible():
    names = [f"t{index}" for index in range(7)]
    group = Group(
        topics=tuple(Topic(name=name, partitions=12) for name in names),
        members=tuple(Member(id=f"m{at}", subscription=tuple(names)) for at in range(6)),
    )
    assert topic_spread(group, solve(group).assignment) == 7 * 6 * 2**2
