"""Chains, stars and other special networks."""

import random
import time

import pytest

from benchmarks.network_shapes import SHAPES, chain, path, plain_network
from kassay import Assignment, certify, solve
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.network.improving_chains import explain, improving_chain
from tests.random_groups import random_group
from tests.tiers import short_and_long


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("members", [9, 100, 625])
def test_every_shape_has_the_optimum_of_its_plain_network(name, members):
    group = SHAPES[name][0](min(members, 100) if name == "staircase" else members)
    solution = solve(group)
    highest = max(solution.assignment.counts().values())
    values = (solution.imbalance.value, solution.movement.value)
    assert values == plain_network(group, highest)
    certificate = certify(group, solution)
    assert certificate.is_optimal
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


def test_a_long_chain_is_solved_and_certified_in_seconds():
    group = chain(2_000)
    start = time.process_time()
    solution = solve(group)
    certificate = certify(group, solution.assignment)
    assert time.process_time() - start < 8
    assert (solution.imbalance.value, solution.movement.value) == (2_000, 1_999)
    assert certificate.is_optimal
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


def test_a_given_assignment_of_a_long_path_is_certified_or_improved():
    group = path(2_000)
    best = solve(group).assignment
    assert certify(group, best).is_optimal
    member = next(member for member, owned in best.items() if len(owned) > 1)
    moved, place = best[member][0], int(member[1:])
    neighbour = f"m{place + 1 if int(moved.topic[1:]) == place else place - 1}"
    lists = {name: [tp for tp in owned if tp != moved] for name, owned in best.items()}
    lists[neighbour].append(moved)
    worse = certify(group, Assignment(lists))
    assert worse.chain or worse.is_optimal


@pytest.mark.parametrize("number", short_and_long(100, 300))
def test_chains_lead_from_a_random_assignment_to_the_optimum(number):
    rng = random.Random(4)
    for seed in range(number):
        group = random_group(seed)
        subscribers = group.subscribers()
        lists = {member.id: [] for member in group.members}
        for topic in group.topics:
            for number in range(topic.partitions if subscribers[topic.name] else 0):
                taker = group.members[rng.choice(subscribers[topic.name])]
                lists[taker.id].append((topic.name, number))
        assignment = Assignment(lists)
        steps = explain(group, assignment)
        assert bool(steps) == bool(improving_chain(group, assignment))
        optimum = solve(group)
        squares = sum(load**2 for load in assignment.counts().values())
        reached = squares + sum(after - before for before, after in (s.imbalance for s in steps))
        assert reached == optimum.imbalance.value
