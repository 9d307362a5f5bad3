"""Time limits: the solver stops soon after the limit.

The environment variable ``LARGE_TIME_LIMITS`` sets the limits of large groups, for example
``0,1,5``. Without it, these groups have a tenth of the size.
"""

import os
import random
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.timed_groups import mixed_group
from benchmarks.weighted_groups import log_normal, weighted_group
from kassay import Group, Imbalance, MaxMoves, Movement, Pinned, solve, violations
from kassay.reference.model.errors import UsageError
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.search.movement_bound import MemberExchange
from tests.notation import even_group
from tests.tiers import short_and_long

# Processor time, as other processes may delay the solver.
SLACK = 2.0
LARGE_LIMITS = [float(limit) for limit in os.environ.get("LARGE_TIME_LIMITS", "0").split(",")]
SHARE = 1 if "LARGE_TIME_LIMITS" in os.environ else 10


def megabytes() -> Group:
    rng = random.Random(3)
    weights = [round(rng.lognormvariate(0, 1) * 10**6) for _ in range(30)]
    return even_group(weights, 6, [at % 6 for at in range(30)])


def owned_by_one() -> Group:
    rng = random.Random(3)
    return even_group([rng.randint(1, 2**48) for _ in range(30)], 6, [0] * 30)


def unowned() -> Group:
    rng = random.Random(3)
    return weighted_group([rng.randint(1, 10**6) for _ in range(120)], [-1] * 120, 20)


GROUPS = {
    "30 weights of megabytes": megabytes,
    "30 weights up to 2**48 of one owner": owned_by_one,
    "120 partitions without an owner": unowned,
    "20,000 partitions on 400 members": lambda: log_normal(1, 20_000, 400),
}


def large_flow() -> Group:
    """Return a group with equal weights and random owners; at full size, its flow takes seconds."""
    rng = random.Random(1)
    group = mixed_group(members=10_000 // SHARE, topics=1_000, partitions=10)
    subscribers = group.subscribers()
    owned: dict[int, list[tuple[str, int]]] = {}
    for topic in group.topics:
        for number in range(topic.partitions):
            owned.setdefault(rng.choice(subscribers[topic.name]), []).append((topic.name, number))
    members = [
        replace(member, owned=owned.get(index, ()), generation=1)
        for index, member in enumerate(group.members)
    ]
    return replace(group, members=tuple(members))


LARGE_GROUPS = {
    "different weights": lambda: log_normal(1, 100_000 // SHARE, 1_000),
    "equal weights": large_flow,
}


@pytest.mark.parametrize("limit", LARGE_LIMITS)
@pytest.mark.parametrize("case", LARGE_GROUPS)
def test_large_groups_have_an_assignment_and_bounds_soon_after_the_limit(case, limit):
    group = LARGE_GROUPS[case]()
    start = time.process_time()
    solution = solve(group, limits=SearchLimits(time=limit))
    assert time.process_time() - start < limit + SLACK
    assert list(violations(group, solution.assignment)) == []
    assert all(0 < level.bound <= level.value for level in solution.levels)


@pytest.mark.parametrize("limit", short_and_long(0.0, 1.0))
@pytest.mark.parametrize("measure", ["makespan", "sum_of_squares", "leximax"])
@pytest.mark.parametrize("case", GROUPS)
def test_the_solver_stops_at_the_limit(case, measure, limit):
    group = GROUPS[case]()
    start = time.process_time()
    levels = [Imbalance(measure), Movement()]
    solution = solve(group, levels=levels, limits=SearchLimits(time=limit))
    assert time.process_time() - start < limit + SLACK
    assert list(violations(group, solution.assignment)) == []


def test_the_greedy_rule_for_constraints_needs_time_or_the_lack_of_a_placement(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "kassay.solver.engine.place_within", lambda problem, rules, units: calls.append(rules)
    )
    group = weighted_group([7, 5, 4, 3] * 10, [0] * 20 + [1] * 20, 3)
    solve(group, constraints=[MaxMoves(3)], limits=0)
    assert calls == []
    together = [Pinned("t", number, "c002") for number in (0, 4, 8)]
    solve(group, constraints=together, limits=0)
    assert len(calls) == 1


def test_a_budget_ends_when_its_work_is_spent():
    budget = SearchBudget.start(SearchLimits(work=2))
    may_continue = budget.counted(0.5)
    assert [may_continue() for _ in range(5)] == [True, True, True, True, False]
    assert not budget.counter.is_interrupted
    few = SearchBudget.start(SearchLimits(work=2)).counted(0.5, 2)
    assert [few() for _ in range(3)] == [True, True, False]


def test_parts_of_a_budget_share_its_work():
    budget = SearchBudget.start(SearchLimits(work=8))
    part = budget.part(1 / 4)
    part.spend(1)
    assert (part.left, budget.left, budget.part(1 / 2).left) == (1, 7, 3.5)
    limits = part.rest()
    SearchBudget.start(limits).spend(0.5)
    assert (limits.work, budget.left) == (1, 6.5)


def test_a_reached_safety_limit_is_reported():
    budget = SearchBudget.start(SearchLimits(time=0))
    assert (budget.left, budget.counter.is_interrupted) == (0, True)
    assert not budget.may_start(2.0)
    assert not solve(megabytes(), limits=SearchLimits(work=0)).interrupted
    assert solve(megabytes(), limits=SearchLimits(time=0)).interrupted


def test_only_owned_partitions_have_rows_in_the_knapsacks():
    weights = tuple(random.Random(0).randint(1_000, 100_000) for _ in range(160))
    group = even_group(weights, 20, [0] * 160)
    ones = np.ones(160, dtype=np.int64)
    exchange = MemberExchange(build_problem(group), [10**6] * 20, ones, grid=2000)
    knapsacks = exchange.solve(ones)
    assert sum(step.chosen.size for step in knapsacks.giving) == 160 * exchange.width


def test_a_negative_seed_is_refused():
    with pytest.raises(UsageError, match="seed must be at least 0, got -1"):
        SearchBudget.start(SearchLimits(), -1)


def test_a_time_limit_is_a_number_of_seconds():
    for limits in ({"time": 10**400}, {"time": "5"}, {"work": "x"}):
        with pytest.raises(UsageError, match="limit must be a number"):
            SearchLimits(**limits)
    with pytest.raises(UsageError, match="workers must be an integer, got '2'"):
        SearchLimits(workers="2")
