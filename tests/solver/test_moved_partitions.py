"""CP-SAT model with variables for moves only, compared with brute force."""

import random
import time
from dataclasses import replace

import numpy as np
import pytest

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.cpsat.model import SearchResult
from kassay.solver.cpsat.moved_partitions import MovedPartitionsModel
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import build_problem
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.solver.random_cases import levels_cases, weighted_problems


def _budget(seconds: float = 60.0) -> SearchBudget:
    return SearchBudget(time.monotonic() + seconds, SearchLimits())


@pytest.mark.parametrize("seed", range(3))
def test_each_level_under_any_constraints_agrees_with_brute_force(seed):
    rng = random.Random(f"moved partitions {seed}")
    for case in levels_cases(rng, 25):
        if any(getattr(level, "measure", None) == "leximax" for level in case.levels):
            continue
        problem = build_problem(case.group)
        limits = []
        for index, level in enumerate(case.levels):
            model = MovedPartitionsModel(problem, case.constraints)
            found = model.minimise(level, limits, budget=_budget())
            if case.minimum is None:
                assert found.infeasible
                break
            assert found.placement is not None
            assert found.bound == case.minimum[index]
            limits.append((level, case.minimum[index]))


def test_no_model_is_built_that_needs_more_than_the_remaining_time():
    problem = build_problem(log_normal_group(2_000, 60))
    model = MovedPartitionsModel(problem)
    found = model.fewest_moves([], budget=_budget(1.0), hint=keep_owned(problem))
    assert found == SearchResult(None, None)


def test_the_moves_and_loads_of_weighted_groups_agree_with_brute_force():
    rng = random.Random("moves and loads")
    for group, problem in weighted_problems(rng, 20):
        model = MovedPartitionsModel(problem)
        hint = np.array([consumers[0] for consumers in problem.consumer_sets], dtype=np.int32)
        for moves, makespan in brute_force.frontier(group, "makespan"):
            limits = [(Imbalance("makespan"), makespan)]
            start = hint[problem.consumer_set]
            fewest = model.fewest_moves(limits, budget=_budget(), hint=start)
            lowest = model.minimise(
                Imbalance("makespan"), [(Movement(), moves)], budget=_budget(), hint=start
            )
            assert (fewest.bound, lowest.bound) == (moves, makespan)
            assert max(problem.loads(lowest.placement)) == makespan
            squares = model.lowest_squares(moves, makespan, budget=_budget(), hint=start)
            assert squares.bound == min(
                sum(load**2 for load in loads)
                for loads, needed in brute_force.reachable(group).items()
                if needed <= moves and max(loads) <= makespan
            )


def test_a_limit_below_the_greatest_weight_is_infeasible():
    problem = build_problem(log_normal_group(40, 5, 1))
    limits = [(Imbalance("makespan"), int(problem.weight.max()) - 1)]
    found = MovedPartitionsModel(problem).fewest_moves(limits, budget=_budget())
    assert found.infeasible
    assert found.placement is None


def test_partitions_without_an_owner_are_placed_without_a_move():
    problem = build_problem(log_normal_group(40, 5, 1))
    free = replace(problem, owner=np.full_like(problem.owner, NO_OWNER))
    found = MovedPartitionsModel(free).fewest_moves(
        [(Imbalance("makespan"), problem.total)], budget=_budget()
    )
    assert found.bound == 0
    assert (found.placement != NO_OWNER).all()


@pytest.mark.long
def test_weights_beyond_64_bits_give_a_value_and_a_bound():
    problem = build_problem(log_normal_group(40, 5, 1))
    heavy = replace(problem, weight=problem.weight.astype(object) * 2**60 + 1)
    makespan, limits = Imbalance("makespan"), [(Movement(), 5)]
    found = MovedPartitionsModel(heavy).minimise(makespan, limits, budget=_budget())
    assert heavy.total / 5 <= found.bound <= max(heavy.loads(found.placement))


def test_no_time_gives_no_bound():
    problem = build_problem(log_normal_group(40, 5, 1))
    model = MovedPartitionsModel(problem, movement=Movement("weight"))
    result = model.fewest_moves([], budget=_budget(0))
    assert (result.placement, result.bound, result.infeasible) == (None, None, False)
