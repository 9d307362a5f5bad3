"""Random small groups with weights up to 2**62, and any levels, tolerances and constraints."""

import random
from dataclasses import dataclass, replace
from functools import cached_property

import kassay
from kassay import Assignment, Group, Topic, violations
from kassay.reference.model.group import NO_CLIENT, Client
from kassay.reference.model.load_metrics import Measure
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, Tolerance
from tests import brute_force
from tests.brute_force import Placement
from tests.solver.random_cases import (
    HOSTS,
    RACKS,
    all_partitions,
    allows,
    draw_member,
    member_capacities,
    random_constraint,
    random_level,
    value_of,
)

MAX_PLACEMENTS = 3_000
"""Maximum number of placements that brute force compares."""
_LIMITS = {"auto": SearchLimits(work=5), "cp-sat": SearchLimits(work=5)}
"""Limits per method. CP-SAT does not count all of its work on large weights as steps."""
METHODS = tuple(_LIMITS)


@dataclass(frozen=True)
class AdversarialCase:
    """Group with levels and constraints."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]

    @cached_property
    def rows(self) -> list[tuple[Placement, list[int]]]:
        """Placements that meet the constraints, each with its value on each level."""
        allowed = allows(self.group, (*member_capacities(self.group), *self.constraints))
        values = [value_of(self.group, level) for level in self.levels]
        return [
            (placement, [value(placement) for value in values])
            for placement in brute_force.every_placement(self.group)
            if allowed(placement)
        ]


def adversarial_case(seed: int) -> AdversarialCase:
    """Return a random group with up to three levels and three constraints."""
    rng = random.Random(f"adversary/{seed}")
    group = _random_group(rng)
    while _placements(group) > MAX_PLACEMENTS or not all_partitions(group):
        group = _random_group(rng)
    total = sum(brute_force.weights(group).values())
    levels = [_random_level(rng, group, total) for _ in range(rng.randint(1, 3))]
    rules = tuple(_random_rule(rng, group, total) for _ in range(rng.choice((0, 0, 1, 2, 3))))
    return AdversarialCase(group, tuple(levels), rules)


def _placements(group: Group) -> int:
    count = 1
    for topic in group.topics:
        consumers = sum(topic.name in member.subscription for member in group.members)
        count *= max(consumers, 1) ** topic.partitions
    return count


def _random_weights(rng: random.Random, count: int) -> tuple[int, ...] | None:
    bits = rng.choice((0, 1, 3, 10, 20, 31, 32, 33, 40, 48, 50, 53, 54, 56, 58, 60, 61, 62))
    if not bits:
        return None
    near, unit = 2**bits, rng.choice((1, 1, 1, 3, 2**20))
    drawn = (
        rng.choice((rng.randint(0, near), max(near - rng.randint(0, 3), 0), rng.randint(0, 9)))
        for _ in range(count)
    )
    return tuple(min(weight // unit * unit, 2**62) for weight in drawn)


def _random_group(rng: random.Random) -> Group:
    topics, left = [], rng.randint(1, 8)
    weighted, racked = rng.random() < 0.9, rng.random() < 0.4
    hosted, timed = rng.random() < 0.4, rng.random() < 0.4
    while left:
        size = rng.randint(1, left)
        left -= size
        racks = tuple(tuple(rng.sample((*RACKS, None), rng.randint(0, 2))) for _ in range(size))
        topics.append(
            Topic(
                name=f"t{len(topics)}",
                partitions=size,
                weights=_random_weights(rng, size) if weighted else None,
                racks=racks if racked else None,
            )
        )
    taken: set[tuple[str, int]] = set()
    total = sum(topic.total_weight for topic in topics)
    members, count = [], rng.randint(1, 4)
    for index in range(count):
        subscription = tuple(topic.name for topic in topics if rng.random() < 0.8)
        members.append(
            replace(
                draw_member(rng, index, topics, subscription, taken),
                rack=rng.choice((*RACKS, None)) if racked else None,
                speed=rng.choice((1, 1, 2, 3, 10, 997, 10_000)) if timed else 1,
                client=Client(host=rng.choice(HOSTS)) if hosted else NO_CLIENT,
                capacity=rng.choice((None,) * 8 + (total // count, total)),
            )
        )
    return Group(topics=tuple(topics), members=tuple(members))


def _random_level(rng: random.Random, group: Group, total: int) -> Level:
    level = random_level(rng, group)
    if isinstance(level, kassay.Movement) and rng.random() < 0.2:
        costs = {tp: rng.randint(0, 2**62) for tp in all_partitions(group)}
        level = kassay.Movement(tuple(costs.items()))
    if getattr(level, "measure", None) is Measure.LEXIMAX:
        return level
    tolerance = rng.choice(
        (
            Tolerance(),
            Tolerance(),
            Tolerance(relative=rng.choice((0.02, 0.5))),
            Tolerance(absolute=rng.choice((1, 2**40))),
            Tolerance(up_to=rng.choice((total // 2, total**2))),
        )
    )
    return replace(level, tolerance=tolerance)


def _random_rule(rng: random.Random, group: Group, total: int) -> Constraint:
    if rng.random() < 0.3:
        share = total // rng.randint(1, len(group.members)) + rng.randint(-1, 3)
        return kassay.Capacity(max(share, 0), rng.choice((rng.choice(group.members).id, None)))
    return random_constraint(rng, group)


def adversarial_error(case: AdversarialCase, method: str) -> str | None:
    """Describe an invalid value, bound or status of the solver; None if all are valid."""
    try:
        solution = kassay.solve(
            case.group,
            levels=case.levels,
            constraints=case.constraints,
            method=method,
            limits=_LIMITS[method],
        )
    except Exception as error:  # noqa: BLE001 - every exception is an error of the solver
        return f"{type(error).__name__}: {error}"
    if solution.assignment is None:
        if case.rows:
            return f"{solution.status}, but an assignment exists"
        return None if solution.status == "infeasible" or method != "auto" else solution.status
    if not case.rows:
        return f"{solution.status}, but no assignment exists"
    chosen = _as_placement(solution.assignment)
    is_valid = next(violations(case.group, solution.assignment), None) is None
    if not is_valid or all(chosen != row for row, _ in case.rows):
        return "the assignment violates a constraint"
    if method == "auto" and not solution.is_optimal:
        return f"{solution.status}: {solution.levels}"
    return _invalid_level(case, chosen, solution)


def _as_placement(assignment: Assignment) -> Placement:
    return {(tp[0], tp[1]): member for member, tps in assignment.items() for tp in tps}


def _invalid_level(
    case: AdversarialCase, chosen: Placement, solution: kassay.Solution
) -> str | None:
    assert solution.certificate is not None
    claims, rows = solution.certificate.claims, case.rows
    if tuple(claim.level for claim in claims) != case.levels:
        return f"claims about {[claim.level for claim in claims]}"
    for at, (level, claim) in enumerate(zip(solution.levels, claims, strict=True)):
        value = value_of(case.group, claim.level)
        if level.value != value(chosen):
            return f"{level}: the assignment has the value {value(chosen)}"
        minimum = min(values[at] for _, values in rows)
        if level.bound > minimum:
            return f"{level}: the minimum is {minimum}"
        if level.is_proven and level.value > claim.level.tolerance.limit(minimum):
            return f"{level}: not optimal, the minimum is {minimum}"
        best = level.value if claim.best is None else value(_as_placement(claim.best))
        limit = claim.level.tolerance.limit(best)
        rows = [(row, values) for row, values in rows if values[at] <= limit]
        if all(chosen != row for row, _ in rows):
            return f"{level}: the assignment exceeds the limit {limit}"
    return None
