"""CP-SAT against brute force: every measure, level and constraint."""

import random
from typing import get_args

import pytest

from kassay import Imbalance, Measure, Movement, Tolerance, solve, violations
from kassay.solver.constraints import Constraint, MaxMoves, MaxPartitions, Pinned
from kassay.solver.evaluation import leximax_rank
from kassay.solver.limits import SearchLimits
from tests import brute_force
from tests.notation import changed
from tests.notation import group as small_group
from tests.solver.random_cases import (
    all_partitions,
    infeasible_cases,
    is_minimal_conflict,
    levels_cases,
    random_constraint,
    random_group,
)
from tests.tiers import short_and_long

TOLERANCES = (Tolerance(), Tolerance(absolute=3), Tolerance(relative=0.1))


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("count", short_and_long(20, 60))
def test_both_levels_agree_with_brute_force(count, measure, weighted):
    rng = random.Random(f"{measure} {weighted}")
    for _ in range(count):
        group = random_group(rng, weighted=weighted)
        tolerance = Tolerance() if measure == "leximax" else rng.choice(TOLERANCES)
        levels = [Imbalance(measure, tolerance), Movement()]
        solution = solve(group, levels=levels, method="cp-sat")
        least, moves = brute_force.optimum(group, str(measure), slack=tolerance.limit)
        assert solution.is_optimal
        assert solution.imbalance.bound == (leximax_rank(least) if measure == "leximax" else least)
        assert (solution.movement.value, solution.movement.bound) == (moves, moves)
        assert list(violations(group, solution.assignment)) == []


@pytest.mark.parametrize("seed", range(8))
def test_any_levels_under_any_constraints_agree_with_brute_force(seed):
    for case in levels_cases(random.Random(seed), 25):
        solution = solve(
            case.group, levels=case.levels, constraints=case.constraints, method="cp-sat"
        )
        if case.minimum is None:
            assert solution.status == "infeasible"
            continue
        assert [level.value for level in solution.levels] == case.minimum
        assert [level.bound for level in solution.levels] == case.minimum


def test_the_random_constraints_are_of_each_kind():
    rng = random.Random(1)
    groups = [group for group in (random_group(rng) for _ in range(40)) if all_partitions(group)]
    drawn = {type(random_constraint(rng, group)) for group in groups * 5}
    missing = set(get_args(Constraint)) - drawn
    assert not missing, "tests/solver/random_cases.py draws no constraint of this kind"


def test_a_conflict_is_infeasible_and_minimal():
    for group, constraints in infeasible_cases(random.Random(5), 40):
        solution = solve(group, constraints=constraints, method="cp-sat")
        assert solution.status == "infeasible"
        conflict = tuple(c for c in constraints if str(c) in solution.conflict)
        assert is_minimal_conflict(group, conflict)


def test_a_conflict_is_described_as_text():
    constraints = [MaxMoves(1), Pinned("t", 3, "a"), MaxPartitions(2)]
    solution = solve(
        small_group("t:4", a="t | t-0..3", b="t"), constraints=constraints, method="cp-sat"
    )
    assert solution.assignment is None
    assert set(solution.conflict) == {
        "at most 1 partition moves",
        "every member has at most 2 partitions",
    }


def test_capacities_of_members_always_apply():
    group = changed(small_group("t:4", a="t", b="t"), a={"capacity": 1})
    assert solve(group).assignment.counts() == {"a": 1, "b": 3}


def test_the_same_input_and_seed_give_the_same_assignment():
    group = random_group(random.Random(3), weighted=True)
    answers = {
        solve(group, method="cp-sat", limits=SearchLimits(work=10)).assignment for _ in range(3)
    }
    assert len(answers) == 1
