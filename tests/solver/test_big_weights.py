"""Weights up to 2**62 and totals beyond 2**63: exact results in every small group."""

import random

import pytest

from kassay import Assignment, Imbalance, Movement, Tolerance, certify, solve, violations
from kassay.reference.model.group import Group
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.constraints import (
    Capacity,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.counting_bounds import large_partition_moves_bound
from kassay.solver.evaluation import violated
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from tests.notation import even_group
from tests.notation import group as small_group
from tests.tiers import short_and_long


@pytest.mark.parametrize(
    ("weights", "constraints", "makespan"),
    [
        ((1, 2**60 - 1, 2, 2), [MaxPartitions(2)], 2**60),
        ((2**60,), [Pinned("t", 0, "c1")], 2**60),
        ((2**62, 2**62, 2**62), [Capacity(2**63)], 2**63),
        ((2**60, 2**60, 1), [MaxPartitions(1)], None),
        ((2**62,), [Pinned("t", 0, "c0"), Pinned("t", 0, "c1")], None),
        ((2**62, 2**62, 2**62), [Capacity(2**63 - 1)], None),
    ],
)
def test_totals_beyond_64_bits_with_constraints_are_optimal_or_infeasible(
    weights, constraints, makespan
):
    levels = [Imbalance("makespan")]
    solution = solve(even_group(weights, 2), levels=levels, constraints=constraints)
    assert solution.status == ("infeasible" if makespan is None else "optimal")
    assert bool(solution.conflict) == (makespan is None)
    assert makespan is None or solution.imbalance.value == makespan


CONSTRAINTS = (
    Pinned("t", 0, "c1"),
    Forbidden("c0", "t"),
    MaxPartitions(10),
    MaxMoves(3),
    Capacity(2**61),
    Separated((("t", 0), ("t", 1), ("t", 2), ("t", 3))),
)


def forty_partitions() -> Group:
    rng = random.Random(40)
    weights = [rng.randint(1, 2**58) for _ in range(40)]
    return even_group(weights, 4, [0] * 3 + [rng.randrange(4) for _ in range(37)])


@pytest.mark.parametrize("constraint", short_and_long(*CONSTRAINTS), ids=str)
@pytest.mark.parametrize("measure", ["makespan", "sum_of_squares"])
def test_large_groups_with_totals_beyond_64_bits_have_a_value_and_a_bound(constraint, measure):
    group = forty_partitions()
    solution = solve(
        group,
        levels=[Imbalance(measure), Movement()],
        constraints=[constraint],
        limits=SearchLimits(work=0.05),
    )
    assert solution.status in {"feasible", "optimal"}
    assert list(violations(group, solution.assignment)) == []
    problem = build_problem(group)
    placement = problem.to_placement(solution.assignment)
    assert not any(violated(problem, [constraint], placement))
    assert 0 < solution.imbalance.bound <= solution.imbalance.value


def test_a_capacity_below_the_mean_load_of_a_large_group_is_infeasible():
    solution = solve(
        forty_partitions(),
        constraints=[Capacity(2**59), MaxMoves(40)],
        limits=SearchLimits(work=0.05),
    )
    assert solution.status == "infeasible"
    assert solution.conflict == ("the load of every member is at most 576460752303423488",)


def test_five_partitions_of_31_bits_are_proven_on_squares():
    weights = [2**31 + 7, 2**31 - 1, 2**31 + 3, 2**31, 2**31 - 9]
    group = even_group(weights, 3, [0, 0, 0, 0, 0])
    solution = solve(group, levels=[Imbalance("sum_of_squares"), Movement()])
    assert solution.is_optimal
    assert solution.movement.value == 3


def test_two_partitions_of_half_the_maximum_load_are_not_large():
    weight = 2**61 + 1
    group = even_group((weight, weight) + (2**60,) * 4, 2, [0, 0, 1, 1, 1, 1])
    assert large_partition_moves_bound(build_problem(group), [2 * weight] * 2) == 0
    levels = (Imbalance("makespan", Tolerance(absolute=1)), Movement())
    lists = {"c0": [("t", 0), ("t", 2), ("t", 3)], "c1": [("t", 1), ("t", 4), ("t", 5)]}
    moved = Assignment(lists)
    assert not certify(group, moved, levels=levels).is_optimal
    assert solve(group, levels=levels, limits=5).movement.value == 0


@pytest.mark.parametrize("limit", [2**70, 10**400])
@pytest.mark.parametrize("weights", ["6", "1,2,3,4,5,6"])
def test_limits_of_any_size_are_permitted(limit, weights):
    group = small_group(f"t:{weights} u:2", a="t | t-0..1", b="t u")
    for tolerance in (Tolerance(absolute=limit), Tolerance(up_to=limit)):
        level = Imbalance("makespan", tolerance)
        solution = solve(group, levels=(level, Movement()), limits=5)
        assert solution.movement.value == 0
        errors = certificate_errors(group, solution.assignment, certify(group, solution))
        assert list(errors) == []
