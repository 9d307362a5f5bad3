"""Flows for levels about hosts, members and moves, against brute force."""

import os
import random
from dataclasses import replace

import pytest

from kassay import Group, Imbalance, MaxMoves, Member, Movement, Tolerance, Topic, solve
from kassay.reference.model.group import Client
from kassay.reference.model.load_metrics import Measure
from kassay.solver.evaluation import level_value, violated
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import HostImbalance, TopicSpread
from kassay.solver.problem import build_problem
from kassay.solver.search.level_flows import solve_levels_by_flow
from tests import brute_force
from tests.solver.random_cases import allows, random_constraint, random_group, value_of

GROUPS = int(os.environ.get("HOST_GROUPS", "150"))
MEASURES = (Measure.SUM_OF_SQUARES, Measure.MAKESPAN)


def flows(group, levels, rules=()):
    problem = build_problem(group)
    return problem, solve_levels_by_flow(problem, levels, rules)


def test_flows_find_the_values_of_brute_force_for_levels_in_any_order():
    rng = random.Random("ordered flows")
    levels_found = constrained = 0
    for _ in range(GROUPS):
        group = random_group(rng, weighted=False, hosted=True, timed=True, most=(4, 3, 6))
        if not brute_force.partitions_to_place(group):
            continue
        levels = [
            HostImbalance(rng.choice(MEASURES), Tolerance(absolute=rng.choice((0, 0, 0, 1)))),
            Imbalance(rng.choice(MEASURES)),
            Movement(),
        ]
        rng.shuffle(levels)
        rules = tuple(random_constraint(rng, group) for _ in range(rng.choice((0, 0, 1, 2))))
        minimum = brute_force.lexicographic_optimum(
            group,
            [value_of(group, level) for level in levels],
            allowed=allows(group, rules),
            slacks=[level.tolerance.limit for level in levels],
        )
        problem, found = flows(group, levels, rules)
        if minimum is None:
            continue
        bounds = {index: bound for index, (bound, _) in found.bounds.items()}
        assert all(bound <= minimum[index] for index, bound in bounds.items())
        if rules:
            constrained += any(bounds.get(i) == value for i, value in enumerate(minimum))
            continue
        exact = next(
            (at + 1 for at, level in enumerate(levels) if level.tolerance.absolute), len(levels)
        )
        assert [bounds[index] for index in range(exact)] == list(minimum[:exact])
        assert not list(violated(problem, rules, found.placements[-1]))
        levels_found += exact
    assert levels_found > GROUPS
    assert constrained > GROUPS // 20


def test_flows_spread_topics_first_and_then_minimise_further_levels():
    rng = random.Random("spread first")
    further = [
        *([Imbalance(measure), Movement()] for measure in MEASURES),
        [Movement(), Imbalance(Measure.MAKESPAN)],
        [Imbalance(Measure.MAKESPAN), Movement(), Imbalance()],
    ]
    evened = 0
    for at in range(GROUPS):
        group = random_group(rng, weighted=False, most=(4, 3, 6))
        if not brute_force.partitions_to_place(group):
            continue
        levels = [TopicSpread(), *further[at % len(further)]]
        values = [value_of(group, level) for level in levels]
        problem, found = flows(group, levels)
        bounds = [found.bounds[index].value for index in range(len(levels))]
        assert bounds == list(brute_force.lexicographic_optimum(group, values))
        assert bounds in [
            [level_value(problem, level, placement) for level in levels]
            for placement in found.placements
        ]
        evened += problem.group.has_equal_speeds
    assert evened > GROUPS // 2


def pods(hosts: int, partitions: int, seed: int = 1) -> Group:
    """Return hosts of 2 to 4 members with equal or different speeds and mixed subscriptions."""
    rng = random.Random(seed)
    topics = tuple(Topic(name=f"t{n}", partitions=partitions // 8 + n) for n in range(8))
    members = [
        Member(
            id=f"m{host}-{number}",
            subscription=tuple(sorted(topic.name for topic in rng.sample(topics, 3))),
            speed=rng.choice((2, 3)) if seed % 2 else 1,
            generation=1,
            client=Client(host=f"h{host}"),
        )
        for host in range(hosts)
        for number in range(rng.randint(2, 4))
    ]
    owned: dict[str, list[tuple[str, int]]] = {member.id: [] for member in members}
    for topic in topics:
        consumers = [member.id for member in members if topic.name in member.subscription]
        for number in range(topic.partitions if consumers else 0):
            owned[rng.choice(consumers[: 1 + len(consumers) // 2])].append((topic.name, number))
    return Group(topics=topics, members=tuple(replace(one, owned=owned[one.id]) for one in members))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("measure", MEASURES)
def test_hosts_with_different_numbers_of_members_are_balanced_with_proof(seed, measure):
    levels = (HostImbalance(measure), Imbalance(measure), Movement())
    solution = solve(pods(12, 400, seed), levels=levels, limits=SearchLimits(time=60))
    assert (solution.method, solution.status) == ("flow", "optimal")


def test_a_limit_on_moves_leaves_valid_bounds():
    group = pods(4, 40)
    levels = (HostImbalance(), Imbalance(), Movement())
    _, free = flows(group, levels)
    _, limited = flows(group, levels, (MaxMoves(1),))
    assert set(free.bounds) == {0, 1, 2}
    assert [limited.bounds[0][0]] == [bound for bound, _ in [free.bounds[0]]]
    assert set(limited.bounds) == {0}
