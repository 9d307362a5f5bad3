"""Claims about levels: their creation, with bounds by counting, and their check."""

from collections.abc import Iterator, Sequence

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import (
    host_units,
    load_vector,
    member_units,
    movement_count,
)
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import Conflict, LevelClaim, Origin
from kassay.solver.certificate.refutation import cases_refute, prices_refute
from kassay.solver.constraints import Constraint, group_constraints
from kassay.solver.evaluation import imbalance_of, level_value, valid_placement
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Problem, build_problem


def value_of(group: Group, assignment: Assignment, level: Level) -> int:
    """Return the value of a valid assignment on one level of the objective."""
    match level:
        case Imbalance() | HostImbalance():
            is_host = isinstance(level, HostImbalance)
            units = host_units(group) if is_host else member_units(group)
            vector = units.loads(load_vector(group, assignment))
            return imbalance_of(level.measure, vector, units)
        case Movement(cost=MovementCost.COUNT):
            return movement_count(group, assignment).moved
        case Movement(cost=MovementCost.WEIGHT):
            return movement_count(group, assignment).moved_weight
        case _:
            problem = build_problem(group)
            return level_value(problem, level, valid_placement(problem, assignment))


def level_limits(
    group: Group, assignment: Assignment, claims: Sequence[LevelClaim]
) -> list[tuple[Level, int]]:
    """Return, per claim, the maximum value of its level while later levels are minimised.

    It is the tolerance limit of the value of the best known assignment.
    """
    return [
        (claim.level, claim.level.tolerance.limit(value_of(group, best, claim.level)))
        for claim in claims
        for best in (claim.best or assignment,)
    ]


def counted_claims(
    group: Group, assignment: Assignment, levels: Sequence[Level]
) -> tuple[LevelClaim, ...]:
    """Return one claim per level about an assignment, with bounds computed without search."""
    problem = build_problem(group)
    claims: list[LevelClaim] = []
    for level in levels:
        value = value_of(group, assignment, level)
        limits = level_limits(group, assignment, claims)
        bound = min(counted_bound(problem, level, limits), value)
        claims.append(LevelClaim(level, value, bound, Origin.COUNTING))
    return tuple(claims)


def counted_bound(problem: Problem, level: Level, limits: Sequence[tuple[Level, int]]) -> int:
    """Compute a lower bound on a level without search, given limits on earlier levels."""
    return level_bound(problem, level, limits)


def wrong_claims(
    group: Group,
    assignment: Assignment,
    claims: Sequence[LevelClaim],
    constraints: Sequence[Constraint] = (),
) -> Iterator[str]:
    """Check claims about an assignment without search, and yield a message per error.

    The best known assignments of the claims must be valid and meet the constraints.
    """
    if not claims:
        yield "the certificate has no claims"
        return
    limits = level_limits(group, assignment, claims)
    problem = build_problem(group)
    rules = (*group_constraints(group), *constraints)
    for index, claim in enumerate(claims):
        name = claim.level.name
        value = value_of(group, assignment, claim.level)
        if value != claim.value:
            yield f"{name} is {value}, not {claim.value}"
        if claim.bound < 0:
            yield f"the bound {claim.bound} on {name} is below 0"
        if claim.bound > value:
            yield f"the bound {claim.bound} on {name} is above the value {value}"
        if claim.origin is Origin.PRICES and claim.bound < value:
            yield f"the bound {claim.bound} on {name} is not the value {value} that prices prove"
        yield from _bound_errors(problem, rules, limits[:index], claim)
        if claim.best is not None:
            yield from _best_errors(group, claim, limits[:index])


def _bound_errors(
    problem: Problem,
    rules: Sequence[Constraint],
    limits: Sequence[tuple[Level, int]],
    claim: LevelClaim,
) -> Iterator[str]:
    """Check the bound of a claim, by counting or by its evidence, and yield a message per error."""
    name = f"the bound {claim.bound} on {claim.level.name}"
    if claim.origin is Origin.COUNTING:
        bound = counted_bound(problem, claim.level, limits)
        if claim.bound > bound:
            yield f"{name} is above {bound}, the bound by counting"
        return
    error = evidence_error(problem, rules, (*limits, (claim.level, claim.bound - 1)), claim)
    if error is not None:
        yield f"{name} is not proven: {error}"


def evidence_error(
    problem: Problem,
    rules: Sequence[Constraint],
    limits: Sequence[tuple[Level, int]],
    evidence: LevelClaim | Conflict,
) -> str | None:
    """Return the reason why evidence does not prove a bound or a conflict.

    Return None if the evidence is valid. Only partition prices and cases are checked here.
    """
    if evidence.origin is Origin.CASES and not cases_refute(problem, rules, limits):
        return "there are too many cases, or a case meets all limits"
    if evidence.origin is not Origin.PARTITION_PRICES:
        return None
    if evidence.prices is None:
        return "the certificate contains no partition prices"
    if not prices_refute(problem, rules, limits, evidence.prices):
        return "the partition prices do not exceed the limits"
    return None


def _best_errors(
    group: Group, claim: LevelClaim, limits: Sequence[tuple[Level, int]]
) -> Iterator[str]:
    """Yield a message per error of the best known assignment in a claim.

    Its value must not be below the bound, and it must be within the limits of earlier levels.
    """
    if claim.best is None:
        return
    name = f"the best known assignment on {claim.level.name}"
    value = value_of(group, claim.best, claim.level)
    if value < claim.bound:
        yield f"{name} has the value {value}, below the bound {claim.bound}"
    for level, limit in limits:
        reached = value_of(group, claim.best, level)
        if reached > limit:
            yield f"{name} has {level.name} {reached}, above its limit {limit}"
