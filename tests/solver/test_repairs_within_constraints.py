"""Repairs of overloads on groups at the edges of what they support."""

import random

import pytest

import kassay
from kassay import Group, Member, Topic, violations
from kassay.reference.model.load_metrics import Measure
from kassay.solver.counting_bounds import level_bound
from kassay.solver.evaluation import level_value, violated
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.search.overload_searches import add_any_repaired, add_repaired, repair_overloads
from tests.solver.void_additions import LIMITS

STEPS = SearchLimits(work=10)
SQUARES = kassay.Imbalance(Measure.SUM_OF_SQUARES)
MAKESPAN = kassay.Imbalance(Measure.MAKESPAN)


def group_of(sizes, members, *, speeds=(1,), weight=999, seed=0):
    """Return a group of topics with different weights; the first member owns all partitions."""
    rng = random.Random(seed)
    topics = [
        Topic(f"t{at}", size, weights=tuple(rng.randint(1, weight) for _ in range(size)))
        for at, size in enumerate(sizes)
    ]
    owned = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    names = tuple(topic.name for topic in topics)
    crew = [
        Member(
            f"m{at:03}",
            names,
            owned=() if at else owned,
            generation=1,
            speed=speeds[at % len(speeds)],
        )
        for at in range(members)
    ]
    return Group(tuple(topics), tuple(crew))


@pytest.mark.parametrize(
    "idle", [kassay.Forbidden("m003", "t0"), kassay.MaxPartitions(0, "m003")], ids=str
)
def test_a_member_without_partitions_gives_none(idle):
    group = group_of([43], 7)
    found = kassay.solve(group, levels=[SQUARES], constraints=[idle], limits=LIMITS)
    assert list(violations(group, found.assignment)) == []
    assert not found.assignment["m003"]


@pytest.mark.parametrize(
    "other", [kassay.Pinned("t1", 0, "m001"), kassay.Forbidden("m000", "t1", 0)], ids=str
)
def test_colocated_partitions_without_a_permitted_member_are_infeasible(other):
    rules = [kassay.Colocated(("t0", "t1")), kassay.Pinned("t0", 0, "m000"), other]
    found = kassay.solve(group_of([24, 24], 3), constraints=rules, limits=LIMITS)
    assert found.status == "infeasible"
    assert set(found.conflict) == set(map(str, rules))


def test_racks_before_moves_may_require_more_moves_than_permitted():
    weights = tuple(100 + 7 * number % 50 for number in range(24))
    topic = Topic("t", 24, weights=weights, racks=tuple((f"r{at % 2}",) for at in range(24)))
    owned = tuple(("t", number) for number in range(24))
    members = tuple(
        Member(f"m{at}", ("t",), owned=() if at else owned, generation=1, rack=f"r{at % 2}")
        for at in range(4)
    )
    group = Group((topic,), members)
    found = kassay.solve(
        group,
        levels=[MAKESPAN, kassay.CrossRack(), kassay.Movement()],
        constraints=[kassay.MaxMoves(5)],
        limits=LIMITS,
    )
    assert found.movement.value <= 5


def test_sums_of_squares_of_members_with_110_different_speeds_are_lowered():
    primes = [n for n in range(9_000, 10_000) if all(n % d for d in range(2, 100))][:110]
    group = group_of([230], 110, speeds=primes)
    problem = build_problem(group)
    rules = (kassay.Separated((("t0", 0), ("t0", 1))),)
    pool = IncumbentPool(problem, (SQUARES,), rules, [])
    add_any_repaired(pool, SearchBudget.start(STEPS))
    before = pool.value(SQUARES)
    repair_overloads(pool, SQUARES, 0, SearchBudget.start(STEPS))
    assert pool.value(SQUARES) < before


def test_separated_partitions_move_alone():
    group = group_of([2_000], 4)
    owned = [("t0", number) for number in range(2_000)]
    members = [Member(f"m{at:03}", ("t0",), owned=owned[at::4], generation=1) for at in range(4)]
    problem = build_problem(Group(group.topics, tuple(members)))
    rules = (kassay.Separated((("t0", 0), ("t0", 4))),)
    pool = IncumbentPool(problem, (MAKESPAN,), rules, [])
    add_any_repaired(pool, SearchBudget.start(STEPS))
    assert level_value(problem, kassay.Movement(), pool.placements[0]) == 1


def test_colocated_partitions_with_one_common_consumer_stay_valid():
    group = group_of([20, 20], 4)
    members = list(group.members)
    members[3] = Member("m003", ("t0",), generation=1)
    problem = build_problem(Group(group.topics, tuple(members)))
    rules = (kassay.Colocated(("t0", "t1")),)
    pool = IncumbentPool(problem, (MAKESPAN, kassay.Movement()), rules, [keep_owned(problem)])
    add_repaired(pool, SearchBudget.start(STEPS))
    repair_overloads(pool, MAKESPAN, level_bound(problem, MAKESPAN), SearchBudget.start(STEPS))
    assert not any(any(violated(problem, rules, one)) for one in pool.placements)
