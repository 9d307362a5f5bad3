"""Repair of placements that violate constraints."""

import random

import numpy as np
import pytest

from benchmarks.typical_groups import log_normal_group
from kassay.reference import Group, Member, Topic
from kassay.solver import (
    Capacity,
    Colocated,
    Forbidden,
    Imbalance,
    MaxMoves,
    MaxPartitions,
    Movement,
    Pinned,
    Separated,
    Tolerance,
    solve,
)
from kassay.solver.constraint_repair import meet_constraints
from kassay.solver.evaluation import level_value, violated
from kassay.solver.initial_solutions import longest_processing_time
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from tests.solver.random_cases import random_constraint, weighted_problems

LOOSE = (Imbalance("makespan", Tolerance(relative=0.02)), Movement())
MET = Capacity | Forbidden | MaxPartitions | Pinned | Separated


def _has_consumer(problem, rule):
    """Return whether a pinned partition may be assigned."""
    return not isinstance(rule, Pinned) or (rule.topic, rule.partition) in problem.partition_index


def test_repaired_placements_meet_the_constraints():
    rng = random.Random(1)
    repaired = 0
    for group, problem in weighted_problems(rng, 300):
        drawn = (random_constraint(rng, group) for _ in range(3))
        rules = [rule for rule in drawn if isinstance(rule, MET) and _has_consumer(problem, rule)]
        start = longest_processing_time(problem)
        found = meet_constraints(problem, rules, start)
        if found is None:
            continue
        assert not list(violated(problem, rules, found))
        assert problem.may_consume[problem.consumer_set, found].all()
        if any(violated(problem, rules, start)):
            repaired += 1
        else:
            assert np.array_equal(found, start)
    assert repaired > 50


@pytest.mark.parametrize("kind", ["pins", "numbers", "separations"])
def test_a_repair_changes_few_partitions_and_the_maximum_load_little(kind):
    group = log_normal_group(random.Random(3), 400, 12)
    problem = build_problem(group)
    start = problem.to_placement(solve(group, levels=LOOSE).assignment)
    rules = {
        "pins": [Pinned("t", at, group.members[at % 12].id) for at in range(20)],
        "numbers": [MaxPartitions(35)],
        "separations": [Separated(tuple(("t", at) for at in range(10)))],
    }[kind]
    assert list(violated(problem, rules, start))
    found = meet_constraints(problem, rules, start)
    assert not list(violated(problem, rules, found))
    assert level_value(problem, LOOSE[0], found) <= 1.1 * level_value(problem, LOOSE[0], start)
    excess = np.maximum(np.bincount(start, minlength=12) - 35, 0).sum()
    assert (found != start).sum() <= {"numbers": excess + 5}.get(kind, 60)


def test_pinned_partitions_remain_when_others_leave_their_member():
    topic = Topic("t", 4, weights=(1, 2, 3, 4))
    problem = build_problem(Group((topic,), (Member("a", ("t",)), Member("b", ("t",)))))
    start = np.zeros(4, dtype=np.int32)
    for rules in (
        [Pinned("t", 0, "a"), MaxPartitions(2)],
        [Pinned("t", 0, "a"), Separated((("t", 0), ("t", 3)))],
    ):
        found = meet_constraints(problem, rules, start)
        assert not list(violated(problem, rules, found))
    assert meet_constraints(problem, [Pinned("t", 3, "a"), Capacity(3, "a")], start) is None


def test_speeds_whose_least_common_multiple_is_huge_are_accepted():
    primes = [n for n in range(9_000, 10_000) if all(n % d for d in range(2, 100))]
    members = tuple(Member(f"m{n}", ("t",), speed=n) for n in primes)
    topic = Topic("t", 200, weights=tuple(range(1, 201)))
    problem = build_problem(Group((topic,), members))
    rules = [Separated(tuple(("t", at) for at in range(50)))]
    found = meet_constraints(problem, rules, np.zeros(200, dtype=np.int32))
    assert not list(violated(problem, rules, found))


@pytest.mark.parametrize("rules", [(MaxPartitions(9),), (Colocated(("t", "u")), MaxMoves(13))])
def test_costs_of_moves_beyond_64_bits_are_accepted(rules):
    rng = random.Random(2)
    topics = tuple(
        Topic(name, 12, weights=tuple(rng.randint(1, 50) for _ in range(12))) for name in "tu"
    )
    owned = [[(name, at) for name in "tu" for at in range(12) if at % 3 == m] for m in range(3)]
    members = tuple(
        Member(f"m{at}", ("t", "u"), owned=owned[at], generation=1, speed=1 + at // 2)
        for at in range(3)
    )
    costs = {(name, at): 2**80 + at for name in "tu" for at in range(12)}
    levels = (Imbalance("makespan"), Movement(costs))
    for group in (Group(topics, members), Group(topics, members[:2])):
        limits = SearchLimits(work=0.5)
        solution = solve(group, levels=levels, constraints=rules, limits=limits)
        assert solution.assignment is None or solution.levels[0].bound > 0
