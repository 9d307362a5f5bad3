"""Repair of placements that violate constraints."""

import random

import numpy as np
import pytest

from benchmarks.typical_groups import log_normal_group
from kassay.solver import (
    Capacity,
    Forbidden,
    Imbalance,
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
