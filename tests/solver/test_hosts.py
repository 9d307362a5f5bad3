"""Levels about hosts and speeds, against brute force."""

import os
import random

import pytest

from kassay.reference import violations
from kassay.solver import certificate_errors, certify, conflict_errors, solve
from kassay.solver.bounds import level_bound
from kassay.solver.problem import build_problem
from tests.solver.random_cases import LevelsCase, host_cases, is_minimal_conflict

GROUPS = int(os.environ.get("HOST_GROUPS", "240"))
PARTS = 8


def assert_optimal(case: LevelsCase, *, method: str = "auto", certified: bool = False) -> None:
    """Assert that the solver finds the values of brute force, or a minimal conflict."""
    group, rules = case.group, case.constraints
    if case.minimum is not None:
        assert level_bound(build_problem(group), case.levels[0]) <= case.minimum[0]
    solution = solve(group, levels=case.levels, constraints=rules, method=method)
    if case.minimum is None:
        assert solution.status == "infeasible"
        conflict = tuple(rule for rule in rules if str(rule) in solution.conflict)
        assert is_minimal_conflict(group, conflict)
        if certified:
            certificate = certify(group, solution)
            assert list(conflict_errors(group, certificate)) == []
        return
    assert not list(violations(group, solution.assignment))
    assert [level.bound for level in solution.levels] == case.minimum
    assert solution.is_optimal
    if certified:
        certificate = certify(group, solution)
        assert list(certificate_errors(group, solution.assignment, certificate)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_all_levels_of_small_groups_agree_with_brute_force(part):
    rng = random.Random(f"hosts {part}")
    for index, case in enumerate(host_cases(rng, GROUPS // PARTS)):
        assert_optimal(case, certified=index % 10 == 0)
        if index % 10 == 5:
            assert_optimal(case, method="cp-sat")
