"""Weights up to 2**62 and totals beyond 2**63: exact results in every small group."""

import os

import pytest

from kassay.reference import Group, Member, Topic
from kassay.solver import Capacity, Imbalance, MaxPartitions, Movement, Pinned, solve
from tests.solver.big_weight_cases import big_weight_case, big_weight_difference
from tests.solver.test_weighted import even_group

CASES = int(os.environ.get("BIG_WEIGHT_CASES", "2000"))
BLOCKS = 10


@pytest.mark.parametrize("block", range(BLOCKS))
def test_small_groups_with_any_weights_are_proven_and_agree_with_brute_force(block):
    differences = {
        seed: difference
        for seed in range(block, CASES, BLOCKS)
        if (difference := big_weight_difference(big_weight_case(seed))) is not None
    }
    assert differences == {}


def pair(*weights: int, capacity: int | None = None) -> Group:
    return Group(
        topics=(Topic(name="t", partitions=len(weights), weights=weights),),
        members=tuple(
            Member(id=name, subscription=("t",), capacity=capacity) for name in ("a", "b")
        ),
    )


FEASIBLE = {
    "two partitions per member": (pair(1, 2**60 - 1, 2, 2), (MaxPartitions(2),), 2**60),
    "a pin": (pair(2**60), (Pinned("t", 0, "b"),), 2**60),
    "capacities that suffice": (pair(2**60, 2**60, capacity=2**60), (), 2**60),
    "a limit that suffices": (pair(2**62, 2**62, 2**62), (Capacity(2**63),), 2**63),
}


@pytest.mark.parametrize("case", FEASIBLE)
def test_totals_beyond_64_bits_with_constraints_are_optimal(case):
    group, constraints, makespan = FEASIBLE[case]
    solution = solve(group, levels=[Imbalance("makespan")], constraints=constraints)
    assert solution.status == "optimal"
    assert solution.imbalance.value == makespan


INFEASIBLE = {
    "three partitions, one per member": (pair(2**60, 2**60, 1), (MaxPartitions(1),)),
    "two pins": (pair(2**62), (Pinned("t", 0, "a"), Pinned("t", 0, "b"))),
    "capacities": (pair(2**60, 2**60, 2**60, capacity=2**60), ()),
    "one limit": (pair(2**62, 2**62, 2**62), (Capacity(2**63 - 1),)),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_conflicts_beyond_64_bits_are_infeasible(case):
    group, constraints = INFEASIBLE[case]
    solution = solve(group, constraints=constraints)
    assert solution.status == "infeasible"
    assert solution.conflict


def test_five_partitions_of_31_bits_are_proven_on_squares():
    weights = [2**31 + 7, 2**31 - 1, 2**31 + 3, 2**31, 2**31 - 9]
    group = even_group(weights, 3, [0, 0, 0, 0, 0])
    solution = solve(group, levels=[Imbalance("sum_of_squares"), Movement()])
    assert solution.is_optimal
    assert solution.movement.value == 3
