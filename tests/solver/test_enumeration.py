"""Comparison of all placements, against brute force: every level and constraint."""

import random

import pytest

from kassay import Group
from kassay.solver.enumeration import enumerate_levels, list_placements, minimal_conflict
from kassay.solver.problem import build_problem
from tests.notation import even_group
from tests.solver.random_cases import infeasible_cases, is_minimal_conflict, levels_cases


@pytest.mark.parametrize("seed", range(4))
def test_any_levels_under_any_constraints_agree_with_brute_force(seed):
    for case in levels_cases(random.Random(seed), 60):
        result = enumerate_levels(build_problem(case.group), case.levels, case.constraints)
        assert (result.placement is None) == (case.minimum is None)
        assert [claim.bound for claim in result.claims] == (case.minimum or [])


def test_a_conflict_is_infeasible_and_minimal():
    for group, constraints in infeasible_cases(random.Random(7), 30):
        assert is_minimal_conflict(group, minimal_conflict(build_problem(group), constraints))


def test_a_group_without_partitions_has_one_placement():
    table = list_placements(build_problem(Group(topics=(), members=())), ())
    assert len(table.members) == 1


def test_a_group_with_many_placements_is_not_listed():
    assert list_placements(build_problem(even_group([1] * 40, 3)), ()) is None
