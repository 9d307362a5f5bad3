"""Random small groups with weights from 0 to 2**62, compared with brute force."""

import random
from dataclasses import dataclass, replace

import kassay
from kassay import Group, Topic, violations
from kassay.reference.model.metrics import Measure
from kassay.solver import objective
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level
from tests import brute_force
from tests.solver.random_cases import (
    all_partitions,
    allows,
    draw_member,
    member_capacities,
    value_of,
)

LARGEST = 2**62
TOLERANCES = (
    kassay.Tolerance(),
    kassay.Tolerance(),
    kassay.Tolerance(absolute=2**40),
    kassay.Tolerance(relative=0.05),
)


@dataclass(frozen=True)
class BigWeightCase:
    """Group with levels and constraints."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]


def big_weight_case(seed: int, *, partitions: int = 6, members: int = 3) -> BigWeightCase:
    """Return a random group with imbalance and movement, and random constraints."""
    rng = random.Random(seed)
    group = _random_group(rng, rng.randint(1, partitions), rng.randint(1, members))
    measure = rng.choice(tuple(Measure))
    tolerance = kassay.Tolerance() if measure == "leximax" else rng.choice(TOLERANCES)
    cost = rng.choice(tuple(objective.MovementCost))
    levels = (kassay.Imbalance(measure, tolerance), kassay.Movement(cost))
    constraints = tuple(_random_constraint(rng, group) for _ in range(rng.choice((0, 0, 1, 2))))
    return BigWeightCase(group, levels, constraints)


def _random_weight(rng: random.Random, bits: int) -> int:
    return rng.choice((rng.randint(0, 2**bits), 2**bits, rng.randint(0, 9), 2**bits - 1))


def _random_group(rng: random.Random, partitions: int, members: int) -> Group:
    bits = rng.choice((3, 31, 33, 53, 60, 61, 62))
    weights = [min(_random_weight(rng, bits), LARGEST) for _ in range(partitions)]
    cut = rng.randint(0, partitions)
    columns = [column for column in (weights[:cut], weights[cut:]) if column]
    topics = tuple(
        Topic(name=f"t{at}", partitions=len(column), weights=tuple(column))
        for at, column in enumerate(columns)
    )
    full = tuple(topic.name for topic in topics)
    taken: set[tuple[str, int]] = set()
    crew = []
    for index in range(members):
        subscription = full if rng.random() < 0.8 else full[:1]
        member = draw_member(rng, index, topics, subscription, taken)
        capacity = rng.choice((None, None, None, sum(weights) // rng.randint(1, members)))
        crew.append(replace(member, capacity=capacity))
    return Group(topics=topics, members=tuple(crew))


def _random_constraint(rng: random.Random, group: Group) -> Constraint:
    topic, number = rng.choice(all_partitions(group))
    share = sum(brute_force.weights(group).values()) // rng.randint(1, len(group.members))
    member = rng.choice(group.members).id
    anyone = rng.choice((member, None))
    return rng.choice(
        (
            kassay.Capacity(share + rng.randint(0, 3), anyone),
            kassay.MaxPartitions(rng.randint(1, 4), anyone),
            kassay.MaxMoves(rng.randint(0, 3)),
            kassay.Pinned(topic, number, member),
            kassay.Forbidden(member, topic, rng.choice((number, None))),
        )
    )


def big_weight_difference(case: BigWeightCase, *, proven: bool = True) -> str | None:
    """Describe the difference between the solver and brute force; None if there is none.

    With ``proven``, every level must be proven. Otherwise values and bounds must be valid.
    """
    group = case.group
    constraints = (*member_capacities(group), *case.constraints)
    solution = kassay.solve(
        group, levels=case.levels, constraints=case.constraints, limits=SearchLimits(time=5)
    )
    allowed = allows(group, constraints)
    rows = [one for one in brute_force.every_placement(group) if allowed(one)]
    if not rows:
        return None if solution.status == "infeasible" else f"{solution.status}, not infeasible"
    if solution.assignment is None or next(violations(group, solution.assignment), None):
        return f"{solution.status}, without a valid assignment"
    chosen = {tp: m for m, tps in solution.assignment.items() for tp in map(tuple, tps)}
    if not allowed(chosen):
        return "the assignment breaks a constraint"
    return _difference_of_levels(case, rows, chosen, solution, proven=proven)


def _difference_of_levels(
    case: BigWeightCase,
    rows: list[brute_force.Placement],
    chosen: brute_force.Placement,
    solution: kassay.Solution,
    *,
    proven: bool,
) -> str | None:
    for index, (level, found) in enumerate(zip(case.levels, solution.levels, strict=True)):
        value = value_of(case.group, level)
        least = min(map(value, rows))
        if found.value != value(chosen):
            return f"{level.name}: {found.value} differs from the assignment's value"
        if found.bound > least or (proven and found.bound != least):
            return f"{level.name}: bound {found.bound}, minimum {least}"
        limit = level.tolerance.limit(least)
        if proven and found.value > (least if index + 1 == len(case.levels) else limit):
            return f"{level.name}: value {found.value}, minimum {least}"
        if not proven and not found.is_proven:
            return None
        rows = [row for row in rows if value(row) <= limit]
    return None
