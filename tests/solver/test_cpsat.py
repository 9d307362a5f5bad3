"""CP-SAT against brute force: every measure, level and constraint."""

import random

import pytest

from kassay.reference import Group, Member, Topic, violations
from kassay.solver import Imbalance, Measure, Movement, Tolerance, solve
from kassay.solver.constraints import MaxMoves, MaxPartitions, Pinned
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import leximax_rank
from tests import brute_force
from tests.solver.random_cases import (
    allows,
    random_constraint,
    random_group,
    random_level,
    value_of,
)

TOLERANCES = (Tolerance(), Tolerance(absolute=3), Tolerance(relative=0.1))


def as_number(value: object) -> object:
    return leximax_rank(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("measure", Measure)
def test_both_levels_agree_with_brute_force(measure, weighted):
    rng = random.Random(f"{measure} {weighted}")
    for _ in range(60):
        group = random_group(rng, weighted=weighted)
        tolerance = Tolerance() if measure == "leximax" else rng.choice(TOLERANCES)
        levels = [Imbalance(measure, tolerance), Movement()]
        solution = solve(group, levels=levels, method="cp-sat")
        least, moves = brute_force.optimum(group, str(measure), slack=tolerance.limit)
        assert solution.is_optimal
        assert solution.imbalance.bound == as_number(least)
        assert (solution.movement.value, solution.movement.bound) == (moves, moves)
        assert list(violations(group, solution.assignment)) == []


@pytest.mark.parametrize("seed", range(8))
def test_any_levels_under_any_constraints_agree_with_brute_force(seed):
    rng = random.Random(seed)
    for _ in range(25):
        group = random_group(rng, weighted=rng.random() < 0.5, racked=True, most=(3, 3, 6))
        levels = [random_level(rng, group) for _ in range(rng.randint(1, 3))]
        constraints = tuple(random_constraint(rng, group) for _ in range(rng.randint(0, 3)))
        solution = solve(group, levels=levels, constraints=constraints, method="cp-sat")
        best = brute_force.lexicographic_optimum(
            group,
            [value_of(group, level) for level in levels],
            allowed=allows(group, constraints),
        )
        if best is None:
            assert solution.status == "infeasible"
            continue
        expected = [as_number(value) for value in best]
        assert [level.value for level in solution.levels] == expected
        assert [level.bound for level in solution.levels] == expected


def test_a_conflict_is_infeasible_and_minimal():
    rng = random.Random(5)
    seen = 0
    while seen < 40:
        group = random_group(rng, most=(3, 3, 5))
        constraints = tuple(random_constraint(rng, group) for _ in range(4))
        solution = solve(group, constraints=constraints, method="cp-sat")
        if solution.status != "infeasible":
            continue
        seen += 1
        core = tuple(c for c in constraints if str(c) in solution.conflict)
        assert not any(map(allows(group, core), brute_force.every_placement(group)))
        for spared in set(core):
            rest = tuple(c for c in core if c != spared)
            assert any(map(allows(group, rest), brute_force.every_placement(group)))


def test_a_conflict_is_described_as_text():
    group = Group(
        topics=(Topic(name="t", partitions=4),),
        members=(
            Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
            Member(id="b", subscription=("t",)),
        ),
    )
    constraints = [MaxMoves(1), Pinned("t", 3, "a"), MaxPartitions(2)]
    solution = solve(group, constraints=constraints, method="cp-sat")
    assert solution.assignment is None
    assert set(solution.conflict) == {
        "at most 1 partitions move",
        "every member has at most 2 partitions",
    }


def test_capacities_of_members_always_apply():
    group = Group(
        topics=(Topic(name="t", partitions=4),),
        members=(
            Member(id="a", subscription=("t",), capacity=1),
            Member(id="b", subscription=("t",)),
        ),
    )
    assert solve(group).assignment.loads() == {"a": 1, "b": 3}


def test_the_same_input_and_seed_give_the_same_assignment():
    group = random_group(random.Random(3), weighted=True)
    answers = {
        solve(group, method="cp-sat", limits=SearchLimits(deterministic=1)).assignment
        for _ in range(3)
    }
    assert len(answers) == 1
