"""Equal weights with tolerances, constraints and further levels."""

import random
import time
from unittest.mock import patch

import pytest

from kassay import Measure, certify, imbalance, movement, solve, violations
from kassay.solver import engine
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.constraints import Capacity, Forbidden, MaxMoves, MaxPartitions, Pinned
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    MembersUsed,
    Movement,
    Tolerance,
    TopicSpread,
    default_levels,
)
from kassay.solver.problem import build_problem
from kassay.solver.search.level_flows import find_conflict_by_flow, is_infeasible
from kassay.solver.search_interface import Request
from kassay.solver.solve import solve_request
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.solver.random_cases import (
    all_partitions,
    allows,
    half_subscriptions,
    is_feasible,
    random_constraint,
    random_group,
    random_level,
    value_of,
)
from tests.tiers import short_and_long


def solve_without_enumeration(group, levels, constraints):
    """Solve by flows and CP-SAT, although the group is small."""
    problem = build_problem(group)
    if not problem.partition_count:
        return None
    with patch.object(engine, "METHODS", ()):
        return solve_request(
            Request(problem, tuple(levels), tuple(constraints), SearchBudget(60.0))
        )


def exact_levels(rng):
    """Return levels that network flows solve: imbalance, perhaps with a tolerance, and moves."""
    first = rng.choice(
        [
            Imbalance(),
            Imbalance(Measure.SUM_OF_SQUARES, Tolerance(absolute=rng.randint(1, 8))),
            Imbalance(Measure.SUM_OF_SQUARES, Tolerance(relative=0.2)),
            Imbalance(Measure.LEXIMAX),
            Imbalance(Measure.MAKESPAN),
            Imbalance(Measure.MAKESPAN, Tolerance(absolute=1)),
            Imbalance(Measure.SPREAD, Tolerance(absolute=rng.randint(0, 2))),
            Imbalance(Measure.DEVIATION, Tolerance(relative=0.3)),
        ]
    )
    return [Movement(), first] if rng.random() < 0.2 else [first, Movement()]


@pytest.mark.parametrize("seed", short_and_long(*range(12)))
def test_relaxations_and_constraints_of_equal_weights_agree_with_brute_force(seed):
    rng = random.Random(seed)
    for _ in range(30):
        group = random_group(rng, racked=True, most=(3, 3, 6))
        levels = exact_levels(rng)
        if rng.random() < 0.4:
            levels = [*levels, random_level(rng, group)]
        constraints = tuple(random_constraint(rng, group) for _ in range(rng.randint(0, 3)))
        found = solve_without_enumeration(group, levels, constraints)
        best = brute_force.lexicographic_optimum(
            group,
            [value_of(group, level) for level in levels],
            allowed=allows(group, constraints),
            slacks=[level.tolerance.limit for level in levels],
        )
        if found is None:
            continue
        if best is None:
            assert found.placement is None
            assert found.conflict
            continue
        assert list(violations(group, build_problem(group).to_assignment(found.placement))) == []
        assert all(claim.is_proven for claim in found.claims)
        assert [claim.bound for claim in found.claims] == list(best)


@pytest.mark.parametrize("seed", short_and_long(*range(8)))
def test_no_relaxation_void_constraint_or_later_level_is_worse_than_the_default(seed):
    rng = random.Random(100 + seed)
    for _ in range(25):
        group = random_group(rng, racked=True, most=(6, 6, 20))
        default = solve(group)
        first, second = default.imbalance.value, default.movement.value
        member, partitions = rng.choice(group.members).id, all_partitions(group)
        absent = rng.choice(partitions)
        void = [
            MaxMoves(second + rng.randint(0, 3)),
            MaxPartitions(max(default.assignment.counts().values())),
            Capacity(len(partitions), member),
            *(Pinned(*tp, m) for m, tps in default.assignment.items() for tp in [*tps][:1]),
            *(Forbidden(member, *absent) for _ in range(absent not in default.assignment[member])),
        ]
        for constraint in void:
            solution = solve(group, constraints=(constraint,))
            assert (solution.imbalance.value, solution.movement.value) == (first, second)
            assert solution.is_optimal
        for level in (TopicSpread(), CrossRack(), MembersUsed()):
            solution = solve(group, levels=(*default_levels(group), level))
            assert (solution.imbalance.value, solution.movement.value) == (first, second)
        for measure in (Measure.SUM_OF_SQUARES, Measure.MAKESPAN, Measure.SPREAD):
            tolerance = Tolerance(relative=rng.choice((0, 0.01, 0.3)))
            levels = default_levels(group, measure=measure, tolerance=tolerance)
            assert solve(group, levels=levels).movement.value <= second


@pytest.mark.parametrize("time_limit", [5, 0])
def test_relaxations_of_a_large_group_keep_its_optimum(time_limit):
    group = half_subscriptions(100, 100, 100)
    limits = SearchLimits(time=time_limit)
    default = solve(group)
    for constraint in (MaxPartitions(1_000_000), MaxMoves(1_000_000), Capacity(100, "m7")):
        solution = solve(group, constraints=(constraint,), limits=limits)
        assert solution.status == "optimal"
        assert solution.imbalance.value == default.imbalance.value == 1_000_000
        assert solution.movement.value == default.movement.value
    levels = default_levels(group, tolerance=Tolerance(relative=0.01))
    relaxed = solve(group, levels=levels, limits=limits)
    assert relaxed.movement.value <= default.movement.value / 2
    if time_limit:
        assert relaxed.movement.gap <= 1
        assert imbalance(group, relaxed.assignment) <= 1_010_000


def test_a_level_after_the_optimum_of_a_large_group_keeps_it():
    group = half_subscriptions(60, 30, 60)
    default = solve(group)
    levels = (*default_levels(group), TopicSpread())
    solution = solve(group, levels=levels, limits=SearchLimits(time=1))
    assert solution.imbalance.is_proven
    assert solution.movement.is_proven
    assert solution.imbalance.value == default.imbalance.value
    assert solution.movement.value == default.movement.value
    certificate = certify(group, solution)
    assert [claim.origin for claim in certificate.claims[:2]] == ["node_prices", "node_prices"]
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


def test_a_limit_on_moves_of_a_large_group_is_used_up():
    group = half_subscriptions(100, 100, 100, seed=1)
    solution = solve(group, constraints=(MaxMoves(100),), limits=SearchLimits(time=5))
    assert movement(group, solution.assignment) <= 100
    before = imbalance(group, solve(group, constraints=(MaxMoves(0),)).assignment)
    assert solution.imbalance.value < before
    assert solution.imbalance.gap <= solution.imbalance.value / 1_000


def test_a_conflict_of_many_constraints_is_small():
    group = half_subscriptions(60, 50, 60)
    taker = next(member for member in group.members if "t3" not in member.subscription)
    pin = Pinned("t3", 0, taker.id)
    capacities = [Capacity(60, member.id) for member in group.members]
    for constraints, size in (([pin, *capacities], 1), ([*capacities, MaxPartitions(49)], 1)):
        solution = solve(group, constraints=constraints, limits=SearchLimits(time=10))
        assert solution.status == "infeasible"
        assert len(solution.conflict) == size
    moves = solve(group, constraints=(MaxMoves(3), *capacities, Capacity(0, "m1")))
    assert len(moves.conflict) == 2


@pytest.mark.parametrize("seed", short_and_long(*range(20)))
def test_conflicts_of_numbers_of_weighted_partitions_agree_with_brute_force(seed):
    rng, found = random.Random(f"numbers {seed}"), 0
    for _ in range(60):
        group = random_group(rng, weighted=True)
        drawn = [random_constraint(rng, group) for _ in range(rng.randint(1, 4))]
        rules = tuple(rule for rule in drawn if not isinstance(rule, Capacity))
        problem = build_problem(group)
        is_refuted = is_infeasible(problem, rules)
        conflict = find_conflict_by_flow(problem, rules, lambda: True) if is_refuted else ()
        counted = all(isinstance(rule, MaxPartitions | Forbidden) for rule in rules)
        assert not conflict or not is_feasible(group, conflict)
        assert conflict or not counted or is_feasible(group, rules)
        found += bool(conflict)
    assert found > 5


def test_too_low_numbers_of_weighted_partitions_need_no_search():
    group = log_normal_group()
    most = group.topics[0].partitions // len(group.members) - 1
    rules = (MaxMoves(20), MaxPartitions(most))
    solution = solve(group, constraints=rules)
    assert solution.method == "flow"
    assert solution.certificate.conflict.constraints == (MaxPartitions(most),)


def test_a_flow_without_enough_time_leaves_an_assignment_and_a_bound(monkeypatch):
    group = half_subscriptions(30, 20, 30)
    best = solve(group)
    monkeypatch.setattr("kassay.solver.engine.flow_work", lambda problem: 100.0)
    for constraints in ((), (MaxPartitions(1_000),), (MaxMoves(5),)):
        start = time.process_time()
        solution = solve(group, constraints=constraints, limits=SearchLimits(time=0))
        assert time.process_time() - start < 30
        assert list(violations(group, solution.assignment)) == []
        assert solution.imbalance.bound <= best.imbalance.value <= solution.imbalance.value
    assert solve(group, limits=SearchLimits(work=100)).is_optimal
