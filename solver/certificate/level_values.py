"""Values of assignments on the levels of an objective, and the limits that they set."""

from collections.abc import Sequence

from kassay.reference.model.assignment import Assignment, movement_count
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import host_units, load_vector, member_units
from kassay.solver.certificate.certificate import Certificate, LevelClaim
from kassay.solver.constraints import group_constraints
from kassay.solver.evaluation import imbalance_of, level_value, violated
from kassay.solver.improvement.transfer_chains import Transfer, apply_chain
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Problem, build_problem


def value_of(group: Group, assignment: Assignment, level: Level) -> int:
    """Return the value of a valid assignment on one level of the objective."""
    if group.has_copies:
        problem = build_problem(group)
        return level_value(problem, level, problem.valid_placement(assignment))
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
            return level_value(problem, level, problem.valid_placement(assignment))


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


def stable_claims(problem: Problem, claims: Sequence[LevelClaim]) -> Sequence[LevelClaim]:
    """Return the claims whose bounds are valid in a search that starts from their assignment.

    If the search lowers the value of a level, fewer assignments are within its limit: the bound on
    the next level stays valid. The next level's value can then rise, so later bounds are not valid.
    """
    for index, claim in enumerate(claims):
        value, limit = claim.value, claim.level.tolerance.limit
        if claim.best is not None:
            value = level_value(problem, claim.level, problem.valid_placement(claim.best))
        if limit(value) != limit(claim.bound):
            return claims[: index + 2]
    return claims


def improves(
    group: Group, assignment: Assignment, certificate: Certificate, chain: tuple[Transfer, ...]
) -> bool:
    """Return whether a chain of transfers improves the levels and violates no constraint."""
    better = apply_chain(group, assignment, chain)
    rules = (*group_constraints(group), *certificate.constraints)
    problem = build_problem(group)
    if any(violated(problem, rules, problem.valid_placement(better))):
        return False
    levels = [claim.level for claim in certificate.claims]
    values, improved = (
        [value_of(group, one, level) for level in levels] for one in (assignment, better)
    )
    return improved < values
