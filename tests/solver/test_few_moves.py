"""Few moves within a maximum load: valid bounds and placements."""

import random

import numpy as np

from kassay.reference import Group, Member, Topic
from kassay.solver import Imbalance, Movement, Tolerance, solve
from kassay.solver.bounds import overload_moves_bound
from kassay.solver.evaluation import level_value
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.weighted.few_moves import FewMovesSearch
from kassay.solver.weighted.movement_bound import exchange_bound
from tests import brute_force
from tests.solver.random_cases import weighted_problems


def crowded(seed: int, partitions: int, members: int) -> Group:
    rng = random.Random(seed)
    weights = tuple(max(1, round(100 * rng.lognormvariate(0, 1))) for _ in range(partitions))
    owners = [rng.randrange(members) for _ in range(partitions)]
    return Group(
        topics=(Topic(name="t", partitions=partitions, weights=weights),),
        members=tuple(
            Member(
                id=f"c{member}",
                subscription=("t",),
                owned=[("t", p) for p in range(partitions) if owners[p] == member],
                generation=1,
            )
            for member in range(members)
        ),
    )


def test_bounds_on_moves_never_exceed_the_fewest_possible():
    rng = random.Random(11)
    strict = 0
    for group, problem in weighted_problems(rng, 150):
        slack = rng.randint(0, 5)
        least, moves = brute_force.optimum(group, "makespan", slack=lambda x, s=slack: x + s)
        max_loads = [least + slack] * problem.member_count
        ones = np.ones(problem.partition_count, dtype=np.int64)
        turns = iter(range(60))
        bound = exchange_bound(
            problem,
            max_loads,
            ones,
            incumbent=moves + 1,
            may_continue=lambda turns=turns: next(turns, None) is not None,
        )
        simple = overload_moves_bound(problem, Movement(), max_loads)
        assert 0 <= bound <= moves
        assert simple <= moves
        strict += bound > 0
    assert strict > 20


def test_few_moves_search_stays_within_the_maximum_load():
    problem = build_problem(crowded(3, 120, 8))
    ceiling = problem.total // 8 * 103 // 100
    mover = FewMovesSearch(
        problem, ceiling, np.ones(problem.partition_count, dtype=np.int64), np.random.default_rng(0)
    )
    first = mover.initial_solution(keep_owned(problem))
    assert max(problem.loads(first)) <= ceiling
    turns = iter(range(10))
    better = mover.improve(first, 0, lambda: next(turns, None) is not None)
    assert max(problem.loads(better)) <= ceiling
    assert mover.cost(better) <= mover.cost(first)
    assert mover.cost(better) == level_value(problem, Movement(), better)


def test_a_deterministic_limit_gives_the_same_assignment_again():
    group = crowded(4, 80, 6)
    levels = [Imbalance("makespan", Tolerance(relative=0.02)), Movement()]
    first, second = (
        solve(group, levels=levels, limits=SearchLimits(time=300, deterministic=0.5))
        for _ in range(2)
    )
    assert first.assignment == second.assignment
    assert first.levels == second.levels
    assert first.movement.bound > 0
