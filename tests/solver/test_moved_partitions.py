"""CP-SAT model with variables for moves only, compared with brute force."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kassay import Group
from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.constraints import MaxMoves
from kassay.solver.cpsat import level_search
from kassay.solver.cpsat.level_search import MovedPartitionsModel
from kassay.solver.cpsat.model import SearchResult
from kassay.solver.evaluation import level_value
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import WeightScale, build_problem
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.notation import even_group
from tests.solver.random_cases import levels_cases, weighted_problems
from tests.tiers import short_and_long


def _budget(work: float = 60.0) -> SearchBudget:
    return SearchBudget.start(SearchLimits(work=work))


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


def test_a_hint_that_violates_a_constraint_does_not_bound_the_values():
    model = MovedPartitionsModel(build_problem(even_group([1] * 4, 2, [0] * 4)), (MaxMoves(0),))
    balanced = np.array([0, 0, 1, 1], dtype=np.int32)
    found = model.minimise(Imbalance("sum_of_squares"), [], budget=_budget(), hint=balanced)
    assert (found.infeasible, found.bound) == (False, 16)
    assert found.placement is not None
    assert not found.placement.any()


def _heavy_group(seed: int, bits: int) -> Group:
    """Return a group with weights up to 2**bits, of which some are nearly equal."""
    rng = random.Random(seed)
    size, members, most = rng.randint(3, 6), rng.randint(2, 4), 2**bits
    weights = tuple(
        rng.choice((rng.randint(0, most), most - rng.randint(0, 3), rng.randint(0, 2_000)))
        for _ in range(size)
    )
    return even_group(weights, members, [rng.randrange(members) for _ in range(size)])


@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize(
    ("measure", "bits", "seed"),
    [
        ("deviation", 31, 27),
        ("spread", 40, 17),
        *short_and_long(
            ("deviation", 31, 6),
            *product(("deviation", "spread", "balance_score"), (31, 40), range(10)),
        ),
    ],
)
def test_cpsat_keeps_optimal_solutions_of_heavy_partitions(
    measure, bits, seed, is_scaled, monkeypatch
):
    if not is_scaled:
        monkeypatch.setattr(level_search, "load_scale", lambda *_: WeightScale())
    group = _heavy_group(seed, bits)
    problem, level = build_problem(group), Imbalance(measure)
    placements = [
        np.array(one, dtype=np.int32)
        for one in product(range(problem.member_count), repeat=problem.partition_count)
    ]
    values = [level_value(problem, level, one) for one in placements]
    moves = [level_value(problem, Movement(), one) for one in placements]
    fewest = min(count for value, count in zip(values, moves, strict=True) if value == min(values))
    found = MovedPartitionsModel(problem).minimise(
        Movement(), [(level, min(values))], budget=_budget()
    )
    assert not found.infeasible
    assert found.bound in (range(fewest + 1) if is_scaled else [fewest])


def test_no_model_is_built_that_needs_more_than_the_work_that_is_left():
    problem = build_problem(log_normal_group(2_000, 60))
    model = MovedPartitionsModel(problem)
    found = model.minimise(Movement(), [], budget=_budget(1.0), hint=keep_owned(problem))
    assert found == SearchResult(None, None)


def test_the_moves_and_loads_of_weighted_groups_agree_with_brute_force():
    rng = random.Random("moves and loads")
    for group, problem in weighted_problems(rng, 20):
        model = MovedPartitionsModel(problem)
        hint = np.array([consumers[0] for consumers in problem.consumer_sets], dtype=np.int32)
        for moves, makespan in brute_force.frontier(group, "makespan"):
            limits = [(Imbalance("makespan"), makespan)]
            start = hint[problem.consumer_set]
            fewest = model.minimise(Movement(), limits, budget=_budget(), hint=start)
            lowest = model.minimise(
                Imbalance("makespan"), [(Movement(), moves)], budget=_budget(), hint=start
            )
            assert (fewest.bound, lowest.bound) == (moves, makespan)
            assert max(problem.loads(lowest.placement)) == makespan
            squares = model.minimise(
                Imbalance(), [(Movement(), moves), *limits], budget=_budget(), hint=start
            )
            assert squares.bound == min(
                sum(load**2 for load in loads)
                for loads, needed in brute_force.reachable(group).items()
                if needed <= moves and max(loads) <= makespan
            )


def test_a_limit_below_the_greatest_weight_is_infeasible():
    problem = build_problem(log_normal_group(40, 5, 1))
    limits = [(Imbalance("makespan"), int(problem.weight.max()) - 1)]
    found = MovedPartitionsModel(problem).minimise(Movement(), limits, budget=_budget())
    assert found.infeasible
    assert found.placement is None


def test_partitions_without_an_owner_are_placed_without_a_move():
    problem = build_problem(log_normal_group(40, 5, 1))
    free = replace(problem, owner=np.full_like(problem.owner, NO_OWNER))
    found = MovedPartitionsModel(free).minimise(
        Movement(), [(Imbalance("makespan"), problem.total)], budget=_budget()
    )
    assert found.bound == 0
    assert (found.placement != NO_OWNER).all()


def test_no_work_gives_no_bound():
    problem = build_problem(log_normal_group(40, 5, 1))
    model = MovedPartitionsModel(problem, movement=Movement("weight"))
    result = model.minimise(model.movement, [], budget=_budget(0))
    assert (result.placement, result.bound, result.infeasible) == (None, None, False)
