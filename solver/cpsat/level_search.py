"""Minimise one level of the objective with CP-SAT, within the limits of earlier levels."""

from collections.abc import Sequence
from itertools import accumulate

from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import MaxMoves
from kassay.solver.cpsat.constraint_expressions import add_constraint
from kassay.solver.cpsat.level_expressions import Term, level_terms
from kassay.solver.cpsat.model import AssignmentModel, is_small_enough, minimise
from kassay.solver.cpsat.model_ranges import load_scale
from kassay.solver.cpsat.moved_partitions import MovedPartitionsModel
from kassay.solver.cpsat.partition_classes import symmetry_classes
from kassay.solver.evaluation import load_units
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Placement, Problem


def search_level(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> int:
    """Search for better placements on one level with CP-SAT; return a lower bound.

    Return 0 without a search, or if leximax before the level is not proven: then the model also
    excludes placements with a lower leximax value.
    """
    found = _search(pool, level, bound, budget)
    leximax = (done.claim for done in pool.reached if _is_leximax(done.claim.level))
    return found if all(claim.is_proven for claim in leximax) else 0


def _search(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> int:
    limits = pool.limits()
    measured = [level, *(each for each, _ in limits)]
    movement = next((each for each in measured if isinstance(each, Movement)), None)
    limits_moves = any(isinstance(rule, MaxMoves) for rule in pool.constraints)
    is_leximax = any(map(_is_leximax, measured))
    if (movement is not None or limits_moves) and not is_leximax and not pool.limits_squares():
        # Few partitions move, so that a model with variables for moves only is smaller.
        moved = MovedPartitionsModel(pool.problem, pool.constraints, movement or Movement())
        found = moved.minimise(
            level, limits, budget=budget, hint=pool.incumbent(level), bound=bound
        )
        if found.placement is not None:
            pool.add(found.placement)
        return found.bound or 0
    model = _build_model(pool, level, budget)
    terms = None if model is None else level_terms(model, level, pool.value(level))
    if model is None or terms is None:
        return 0
    if len(terms) > 1:
        return _search_leximax(pool, model, terms, level, budget)
    model.hint(pool.incumbent(level))
    return _minimise(pool, model, terms[0], bound, budget) or 0


def _is_leximax(level: Level) -> bool:
    return isinstance(level, Imbalance | HostImbalance) and level.measure is Measure.LEXIMAX


def _build_model(pool: IncumbentPool, level: Level, budget: SearchBudget) -> AssignmentModel | None:
    """Build the CP-SAT model of all constraints and limits.

    Return None if it is too large, or too large for the remaining work.

    The weights are scaled so that the model can also express ``level``.
    """
    problem = pool.problem
    classes = symmetry_classes(problem, pool.levels, pool.constraints)
    levels = [level, *(done.claim.level for done in pool.reached)]
    if not is_small_enough(problem, classes, levels, budget):
        return None
    scale = load_scale(problem, [*pool.limits(), (level, pool.value(level))])
    model = AssignmentModel(problem, classes, scale)
    for constraint in pool.constraints:
        add_constraint(model, constraint)
    for done in pool.reached:
        terms = level_terms(model, done.claim.level, done.limit)
        if terms is None:
            return None
        limits = [done.limit]
        if len(terms) > 1:
            limits = _sums_of_greatest(problem, done.claim.level, done.placement)
        for term, limit in zip(terms, limits, strict=True):
            model.add_limit(term.expression, term.scaled(limit))
    return model


def _minimise(
    pool: IncumbentPool, model: AssignmentModel, term: Term, bound: int, budget: SearchBudget
) -> int | None:
    result = minimise(
        model, term.expression, budget, term.scaled_up(bound), is_direct=term.is_plain
    )
    if result.placement is not None:
        pool.add(result.placement)
    return None if result.bound is None else term.value(result.bound)


def _search_leximax(
    pool: IncumbentPool,
    model: AssignmentModel,
    terms: Sequence[Term],
    level: Level,
    budget: SearchBudget,
) -> int:
    """Minimise the greatest load, then the sum of the two greatest loads, and so on."""
    problem, units = pool.problem, load_units(pool.problem, level)
    members, unit = len(terms), problem.weight_unit
    base = problem.total * max(units.factors) + 1
    rank, before = 0, 0
    for index, term in enumerate(terms):
        bound = before
        if units.has_equal_speeds:
            bound += -(-((problem.total - before) // unit) // (members - index)) * unit
        reached = _sums_of_greatest(problem, level, pool.incumbent(level))[index]
        if reached > bound:
            model.hint(pool.incumbent(level))
            # The greatest load needs most of the work.
            part = budget.part(1 / min(members - index, 2))
            bound = max(_minimise(pool, model, term, bound, part) or 0, bound)
            reached = _sums_of_greatest(problem, level, pool.incumbent(level))[index]
        rank = rank * base + min(bound, reached) - before
        if bound < reached:
            return rank * int(base ** (members - index - 1))
        model.add_limit(term.expression, term.scaled(reached))
        before = reached
    return rank


def _sums_of_greatest(problem: Problem, level: Level, placement: Placement) -> list[int]:
    """Return the sums of the k greatest relative loads for k = 1, 2, and so on."""
    units = load_units(problem, level)
    loads = units.relative_loads(units.loads(problem.loads(placement)))
    return list(accumulate(sorted(loads, reverse=True)))
