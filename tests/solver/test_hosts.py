"""Levels about hosts and speeds, against brute force."""

import os
import random

import numpy as np
import pytest

from kassay import Capacity, MaxPartitions, Pinned, certify, solve, violations
from kassay.reference.model.group import Client, Group, Member, Topic
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.counting_bounds import level_bound
from kassay.solver.evaluation import level_value, violated
from kassay.solver.greedy_placements import keep_owned, longest_processing_time
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import HostImbalance, Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.search.overload_repair import LoadLimit, OverloadRepair
from kassay.solver.search.overload_searches import add_repaired, load_limits
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


def large_group(seed: int, *, members: int = 20, hosts: int = 5, partitions: int = 120) -> Group:
    """Return a weighted group with a random owner per partition, and hosts of two speeds."""
    rng = random.Random(seed)
    weights = tuple(max(1, int(rng.lognormvariate(6, 1))) for _ in range(partitions))
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    for number in range(partitions):
        rng.choice(owned).append(("t", number))
    return Group(
        topics=(Topic(name="t", partitions=partitions, weights=weights),),
        members=tuple(
            Member(
                id=f"m{index:02}",
                subscription=("t",),
                owned=owned[index],
                speed=2 if index % hosts < 2 else 3,
                client=Client(host=f"h{index % hosts}"),
            )
            for index in range(members)
        ),
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_tolerance_of_two_per_cent_saves_most_moves_of_a_large_group(seed):
    group = large_group(seed)
    tolerance = Tolerance(relative=0.02)
    levels = (HostImbalance("makespan", tolerance), Imbalance("makespan", tolerance), Movement())
    solution = solve(group, levels=levels, limits=SearchLimits(work=2))
    hosts, members, moves = solution.levels
    assert hosts.gap <= hosts.slack
    assert members.gap <= 2 * members.slack
    assert moves.value <= 60
    certificate = certify(group, solution)
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


@pytest.mark.parametrize("added", ["hosts", "capacities", "pins", "numbers"])
def test_the_first_placement_has_few_moves(added):
    group = large_group(1)
    rules = {
        "hosts": (),
        "capacities": (Capacity(7_000, "m04"), Capacity(7_000, "m09")),
        "pins": tuple(Pinned("t", at, f"m{at:02}") for at in range(8)),
        "numbers": (MaxPartitions(21), MaxPartitions(12, "m04")),
    }[added]
    tolerance = Tolerance(relative=0.02)
    levels = (HostImbalance("makespan", tolerance), Imbalance("makespan", tolerance), Movement())
    problem = build_problem(group)
    units = (problem.host_units, problem.member_units)
    pool = IncumbentPool(problem, levels, rules, [longest_processing_time(problem, units)])
    add_repaired(pool, SearchBudget.start(SearchLimits(work=10)))
    limits = [(level, level.tolerance.limit(level_bound(problem, level))) for level in levels[:2]]
    # The longest-processing-time rule makes 112 moves.
    assert level_value(problem, levels[2], pool.best(levels[2], limits)) <= 40
    assert not list(violated(problem, rules, pool.placements[-1]))


def test_overloads_are_repaired_within_the_limits_of_members_and_hosts():
    group = large_group(7)
    problem = build_problem(group)
    bounds = [
        (level, level_bound(problem, level) * 21 // 20)
        for level in (HostImbalance("makespan"), Imbalance("makespan"))
    ]
    limits = load_limits(problem, bounds)
    search = OverloadRepair(problem, limits, np.random.default_rng(0))
    costs = np.ones(problem.partition_count, dtype=np.int64)
    found = search.run(keep_owned(problem), costs, rounds=20, may_continue=lambda: True)
    assert all(level_value(problem, level, found) <= limit for level, limit in bounds)
    # No placement is within limits of zero.
    none = [LoadLimit(limit.unit_of, limit.max_loads * 0, limit.weight) for limit in limits]
    search = OverloadRepair(problem, none, np.random.default_rng(0))
    assert search.run(keep_owned(problem), costs, rounds=2, may_continue=lambda: True) is None
