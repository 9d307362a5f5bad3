"""Numbers beyond the range of a method: valid values and bounds, and no exception."""

import random
from functools import partial

import numpy as np
import pytest

from kassay import Capacity, Group, MaxMoves, Member, Topic, solve
from kassay.reference.model.load_metrics import Measure
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.cpsat.expressions import level_terms
from kassay.solver.cpsat.level_search import search_level
from kassay.solver.cpsat.model import AssignmentModel, load_scale, symmetry_classes
from kassay.solver.evaluation import level_value
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, MembersUsed, Movement, MovementCost
from kassay.solver.problem import Arithmetic, build_problem, scale_to_fit
from kassay.solver.search_interface import LevelResult
from tests.notation import changed, even_group
from tests.solver.adversarial_cases import (
    METHODS,
    AdversarialCase,
    adversarial_case,
    adversarial_error,
)
from tests.tiers import short_and_long

LIMITS = SearchLimits(work=1)


def group_of(topics: dict[str, tuple[int, ...]], *subscriptions: tuple[str, ...]) -> Group:
    return Group(
        topics=tuple(
            Topic(name=name, partitions=len(weights), weights=weights)
            for name, weights in topics.items()
        ),
        members=tuple(
            Member(id=f"c{at}", subscription=topics) for at, topics in enumerate(subscriptions)
        ),
    )


FALSE_OPTIMUM = group_of(
    {
        "t0": (32556366332511601, 15821254620422696),
        "t1": (9513657169358482, 15442019704957532, 17440211856143291),
    },
    ("t1", "t0"),
    ("t0", "t1"),
    ("t0",),
)


@pytest.mark.parametrize("shift", [0, 20, 24])
def test_cpsat_proves_no_deviation_above_the_minimum(shift):
    topics = {
        topic.name: tuple(weight >> shift for weight in topic.weights)
        for topic in FALSE_OPTIMUM.topics
    }
    group = group_of(topics, *(member.subscription for member in FALSE_OPTIMUM.members))
    levels = [Imbalance(Measure.DEVIATION)]
    least = solve(group, levels=levels).imbalance.value
    assert shift or least == 19823805213776566
    found = solve(group, levels=levels, method="cp-sat", limits=LIMITS).imbalance
    assert 0.999 * least < found.bound <= least == found.value


def big_group(members: int = 4, partitions: int = 24, *, speeds: bool = False) -> Group:
    rng = random.Random(7)
    weights = [rng.randint(1, 2**62) for _ in range(partitions)]
    group = even_group(weights, members, [number % members for number in range(partitions)])
    return changed(group, **{f"c{at}": {"speed": at + 1} for at in range(members * speeds)})


def assert_valid(solution):
    assert solution.assignment is not None
    for level in solution.levels:
        assert 0 <= level.bound <= level.value


@pytest.mark.parametrize("measure", short_and_long(*Measure))
def test_speeds_with_loads_beyond_64_bits_have_a_value_and_a_bound(measure):
    group = big_group(partitions=20, speeds=True)
    assert_valid(solve(group, levels=[Imbalance(measure), Movement()], limits=LIMITS))


@pytest.mark.parametrize("method", METHODS)
def test_a_capacity_below_a_total_beyond_60_bits_has_a_value_and_a_bound(method):
    group = big_group(3, 20)
    problem = build_problem(group)
    rules = [Capacity(problem.total // 2)]
    limits = SearchLimits(work=0.2)
    assert_valid(solve(group, constraints=rules, method=method, limits=limits))


def test_leximax_of_weights_of_32_bits_is_proven_by_cpsat():
    rng = random.Random(32)
    group = group_of({"t": tuple(2**32 + rng.randint(-999, 999) for _ in range(4))}, *[("t",)] * 3)
    levels = [Imbalance(Measure.LEXIMAX)]
    found = solve(group, levels=levels, method="cp-sat", limits=LIMITS)
    assert found.imbalance.bound <= solve(group, levels=levels).imbalance.value
    assert found.imbalance.value == solve(group, levels=levels).imbalance.value


def test_a_bound_after_leximax_without_proof_holds_for_lower_loads():
    # The loads 5, 5 and 0 are lower than 6, 2 and 2, but the two greatest sum to 10 instead of 8.
    problem = build_problem(group_of({"t": (5, 1, 2, 2)}, *[("t",)] * 3))
    levels = (Imbalance(Measure.LEXIMAX), MembersUsed())
    placement = np.array([0, 0, 1, 2], dtype=np.int32)
    pool = IncumbentPool(problem, levels, (), [placement])
    value = pool.value(levels[0])
    claim = LevelClaim(levels[0], value, 0, Origin.COUNTING)
    pool.reached = [LevelResult(claim, value, placement)]
    assert search_level(pool, levels[1], 0, SearchBudget.start(SearchLimits(time=60))) <= 2


# Seeds on which wider ranges of numbers, or other searches, raise exceptions or give false bounds.
SEEDS = (
    *(1062, 1095, 1150, 1162, 1237, 1432, 1546, 1665, 1821, 1908, 1924, 1952),
    *(60643, 60650, 8000776, 8047700, 8060197, 8085517),
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_beyond_the_range_of_cpsat_give_valid_values_and_bounds(seed, method):
    assert adversarial_error(adversarial_case(seed), method) is None


@pytest.mark.long
@pytest.mark.parametrize("seed", [1008968, 1010994])
def test_all_assignments_are_compared_if_cpsat_finds_none(seed):
    assert adversarial_error(adversarial_case(seed), "cp-sat") is None


@pytest.mark.parametrize(
    ("first", "end"), short_and_long((0, 15), *((n, n + 60) for n in range(15, 1500, 60)))
)
def test_adversarial_groups_agree_with_brute_force(first, end):
    errors = {
        (seed, method): error
        for seed in range(first, end)
        for method in METHODS
        if (error := adversarial_error(adversarial_case(seed), method)) is not None
    }
    assert errors == {}


def test_the_check_of_adversarial_groups_detects_a_false_optimum(monkeypatch):
    case = AdversarialCase(FALSE_OPTIMUM, (Imbalance(Measure.DEVIATION),), ())
    assert adversarial_error(case, "auto") is None
    monkeypatch.setattr("kassay.solver.engine.enumerate_levels", lambda *_: None)
    monkeypatch.setattr("kassay.solver.engine.level_bound", lambda *_: 86619491644251028)
    assert "minimum" in adversarial_error(case, "cp-sat")


def activities(model: AssignmentModel) -> list[int]:
    """Return the greatest magnitude of the terms of each constraint, from its coefficients."""
    proto = model.cp.proto
    most = [max(abs(variable.domain[0]), abs(variable.domain[-1])) for variable in proto.variables]

    def magnitude(expression) -> int:
        pairs = zip(expression.vars, expression.coeffs, strict=True)
        return sum(abs(factor) * most[at] for at, factor in pairs)

    found = []
    for constraint in proto.constraints:
        if constraint.has_linear():
            found.append(magnitude(constraint.linear))
        elif constraint.has_int_prod():
            found.append(magnitude(constraint.int_prod.target))
    return [*found, sum(most) // 2**17]


@pytest.mark.parametrize("bits", [8, 31, 40, 50, 62])
@pytest.mark.parametrize("measure", list(Measure))
def test_the_numbers_of_each_model_are_in_the_range_of_cpsat(measure, bits):
    rng = random.Random(bits)
    for members in (1, 2, 5, 9):
        weights = tuple(rng.randint(0, 2**bits) for _ in range(12))
        speeds = {f"c{at}": {"speed": rng.choice((1, 3, 997))} for at in range(members)}
        group = changed(even_group(weights, members), **speeds)
        problem, level = build_problem(group), Imbalance(measure)
        placement = problem.to_placement(solve(group, limits=SearchLimits(time=0)).assignment)
        worst = level_value(problem, level, placement)
        scale = load_scale(problem, [(level, worst)])
        model = AssignmentModel(problem, symmetry_classes(problem, [level], ()), scale)
        assert level_terms(model, level, worst) is not None
        assert max(activities(model)) < 2 * Arithmetic.CP_SAT.value


LISTED_COSTS = tuple((("t", at), 2**62) for at in range(6))


@pytest.mark.parametrize("cost", [MovementCost.WEIGHT, LISTED_COSTS])
def test_costs_of_moves_beyond_64_bits_have_a_value_and_a_bound(cost):
    group = even_group([2**62 - at for at in range(6)], 3, [0] * 6)
    levels = [Imbalance(Measure.MAKESPAN), Movement(cost)]
    for rules in ((), (MaxMoves(5),)):
        exact = solve(group, levels=levels, constraints=rules)
        assert exact.is_optimal
        found = solve(group, levels=levels, constraints=rules, method="cp-sat", limits=LIMITS)
        assert found.movement.bound <= exact.movement.value <= found.movement.value


def fits_40_bits(total: int, unit: int) -> bool:
    return total // unit < 2**40


def test_a_scale_bounds_sums_from_below_and_above():
    rng = random.Random(1)
    for _ in range(50):
        values = [rng.randint(0, 2**62) for _ in range(rng.randint(1, 9))]
        scale = scale_to_fit(values, partial(fits_40_bits, sum(values)))
        chosen = [value for value in values if rng.random() < 0.5]
        low = scale.unit * sum(map(scale.quotient, chosen))
        assert low <= sum(chosen) <= low + scale.rest
        assert sum(map(scale.quotient, values)) < 2**40
