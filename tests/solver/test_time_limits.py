"""Time limits: the solver stops soon after the limit.

The environment variable ``LARGE_TIME_LIMITS`` sets the limits of large groups, for example
``0,1,5``. Without it, these groups have a tenth of the size.
"""

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from math import inf

import pytest

from benchmarks.timed_groups import mixed_group
from benchmarks.weighted_groups import log_normal, weighted_group
from kassay.reference import Group, violations
from kassay.solver import Imbalance, Movement, solve
from kassay.solver.limits import SearchBudget, SearchLimits
from tests.solver.test_weighted import even_group
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


SMALL_GROUP = """
import sys

import kassay

topic = kassay.Topic(name="t", partitions=3, weights=(5, 9, 4))
members = tuple(kassay.Member(id=name, subscription=("t",)) for name in "ab")
assert kassay.solve(kassay.Group(topics=(topic,), members=members)).is_optimal
assert not {"ortools", "scipy", "pandas", "networkx"} & set(sys.modules)
"""


def test_a_small_weighted_group_needs_no_large_library():
    subprocess.run([sys.executable, "-c", SMALL_GROUP], check=True)


def test_a_reproducible_budget_ends_after_a_number_of_questions():
    budget = SearchBudget(inf, SearchLimits(deterministic=0.02)).reproducible()
    assert [budget.has_time for _ in range(5)] == [True, True, True, True, False]
    assert SearchBudget(inf).reproducible().part(0.5).has_time
