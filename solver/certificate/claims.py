"""What is said of a level, where the bound comes from, and what can be checked of it."""

from collections.abc import Iterator, Sequence

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import MEASURES, loads, movement_count
from kassay.reference.model.metrics import Measure as IntegerMeasure
from kassay.solver.bounds import level_bound, load_ceiling
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.evaluation import level_value
from kassay.solver.objective import Imbalance, Level, Measure, Movement, MovementCost, leximax_rank
from kassay.solver.problem import Problem, build_problem


def value_of(group: Group, assignment: Assignment, level: Level) -> int:
    """Measure a valid assignment on one level: by the ruler of `reference` where it has one.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> topic = Topic(name="t", partitions=2, weights=(3, 4))
    >>> group = Group(topics=(topic,), members=(Member(id="a", subscription=("t",)),))
    >>> value_of(group, Assignment({"a": [("t", 0), ("t", 1)]}), Imbalance(Measure.MAKESPAN))
    7
    """
    match level:
        case Imbalance(measure=Measure.LEXIMAX):
            return leximax_rank(loads(group, assignment).values())
        case Imbalance():
            return MEASURES[IntegerMeasure(level.measure)](list(loads(group, assignment).values()))
        case Movement(cost=MovementCost.COUNT):
            return movement_count(group, assignment).moved
        case Movement(cost=MovementCost.WEIGHT):
            return movement_count(group, assignment).moved_weight
        case _:
            problem = build_problem(group)
            placement = problem.to_placement(assignment)
            if placement is None:
                raise InternalError("a valid assignment leaves rows unplaced")
            return level_value(problem, level, placement)


def counted_claims(
    group: Group, assignment: Assignment, levels: Sequence[Level]
) -> tuple[LevelClaim, ...]:
    """Claim of a valid assignment what needs no search at all."""
    problem = build_problem(group)
    claims: list[LevelClaim] = []
    for level in levels:
        value = value_of(group, assignment, level)
        bound = min(counted_bound(problem, level, claims), value)
        claims.append(LevelClaim(level, value, bound, Origin.COUNTING))
    return tuple(claims)


def counted_bound(problem: Problem, level: Level, earlier: Sequence[LevelClaim]) -> int:
    """Bound a level without search, given what the levels before it may use up."""
    tops = [
        load_ceiling(problem, claim.level.measure, claim.level.tolerance.limit(claim.value))
        for claim in earlier
        if isinstance(claim.level, Imbalance)
    ]
    return level_bound(problem, level, [min(tops)] * problem.width if tops else None)


def wrong_claims(
    group: Group, assignment: Assignment, claims: Sequence[LevelClaim]
) -> Iterator[str]:
    """Say which claims about a valid assignment are false, as far as no search can tell."""
    counted = [claim for claim in claims if claim.origin is Origin.COUNTING]
    problem = build_problem(group) if counted else None
    for index, claim in enumerate(claims):
        name = claim.level.name
        value = value_of(group, assignment, claim.level)
        if value != claim.value:
            yield f"{name} is {value}, not {claim.value}"
        if claim.bound > value:
            yield f"the bound {claim.bound} on {name} is above the value {value}"
        if claim.origin is Origin.PRICES and claim.bound < value:
            yield f"the bound {claim.bound} on {name} is not the value {value} that prices prove"
        if problem is not None and claim.origin is Origin.COUNTING:
            bound = counted_bound(problem, claim.level, claims[:index])
            if claim.bound > bound:
                yield f"the bound {claim.bound} on {name} is above {bound}, which counting gives"
