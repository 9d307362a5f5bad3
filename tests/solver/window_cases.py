"""Random small groups with several windows, and their optima by comparison of all assignments.

Values and constraints in one window are those of `random_cases`, which uses nothing of the solver.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from kassay.reference.model.group import Group, Topic, Windows
from kassay.solver.constraints import Capacity, Constraint
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from tests import brute_force
from tests.brute_force import Placement
from tests.solver.random_cases import TOLERANCES, allows, random_constraint, random_group, value_of


@dataclass(frozen=True)
class WindowCase:
    """Group with levels and constraints."""

    group: Group
    levels: tuple[Level, ...]
    rules: tuple[Constraint, ...]


def random_case(seed: int, *, windows: int | None = None) -> WindowCase:
    """Return a random tiny case: at most 6 partitions and 3 members."""
    rng = Random(seed)
    count, most = windows or rng.randint(2, 4), rng.choice([2, 9, 60])

    def row() -> tuple[int, ...]:
        return tuple(rng.choice([0, rng.randint(0, most)]) for _ in range(count))

    has_hosts = rng.random() < 0.3
    drawn = random_group(rng, hosted=has_hosts, timed=rng.random() < 0.3, most=(3, 2, 6))
    has_capacities = rng.random() < 0.3
    topics = tuple(
        replace(topic, profiles=tuple(row() for _ in range(topic.partitions)))
        for topic in drawn.topics
        if topic.partitions
    )
    members = tuple(
        replace(
            member,
            capacity=rng.choice(
                [
                    None,
                    rng.randint(most, 4 * most),
                    [rng.randint(0, 4 * most) for _ in range(count)],
                ]
            )
            if has_capacities
            else None,
        )
        for member in drawn.members
    )
    if rng.random() < 0.1:
        topics += (Topic("ones", 1),)
        members = (
            replace(members[0], subscription=(*members[0].subscription, "ones")),
            *members[1:],
        )
    capacities = tuple(rng.randint(1, 5) for _ in range(count)) if rng.random() < 0.2 else None
    group = Group(topics, members, windows=Windows(capacities=capacities))
    levels: list[Level] = [Imbalance("makespan", rng.choice(TOLERANCES))]
    if rng.random() < 0.2:
        levels = [Imbalance("sum_of_squares")]
    elif has_hosts and rng.random() < 0.6:
        levels = [HostImbalance("makespan"), *levels]
    levels.append(Movement(rng.choice(["count", "count", "weight"])))
    if rng.random() < 0.4:
        levels.append(Imbalance("sum_of_squares", is_preference=True))
    rules = [random_constraint(rng, group) for _ in range(rng.choice((0, 0, 1, 2)))]
    if rng.random() < 0.1:
        rules.append(Capacity(rng.randint(0, 3 * most), None, rng.randrange(count)))
    return WindowCase(group, tuple(levels), tuple(rules))


def _column(group: Group, at: int, factor: int = 1) -> Group:
    """Return the group with the weights of one window, times a factor."""
    topics = (
        replace(topic, profiles=None, weights=[w * factor for w in _weights(group, topic, at)])
        for topic in group.topics
    )
    members = (replace(member, capacity=None) for member in group.members)
    return Group(tuple(topics), tuple(members))


def _weights(group: Group, topic: Topic, at: int) -> Sequence[int]:
    if topic.profiles is not None:
        return [row[at] for row in topic.profiles]
    return topic.weights or [1] * topic.partitions


def value_in_windows(group: Group, level: Level) -> Callable[[Placement], int]:
    """Measure a placement on a level by its definition."""
    if isinstance(level, Movement):
        topics = tuple(replace(topic, profiles=None) for topic in group.topics)
        return value_of(Group(topics, _column(group, 0).members), level)
    capacities = group.windows.capacities or (1,) * group.window_count
    multiple = brute_force.lcm(*capacities)
    factors = [multiple // capacity for capacity in capacities]
    divisor = brute_force.gcd(*factors)
    values = [value_of(_column(group, at, f // divisor), level) for at, f in enumerate(factors)]
    merge = max if level.measure == "makespan" else sum
    return lambda placement: merge(value(placement) for value in values)


def optimum(case: WindowCase) -> list[int] | None:
    """Return the minimum of each level within the tolerances before, or None if infeasible."""
    group, rules = case.group, [*case.rules]
    columns = [_column(group, at) for at in range(group.window_count)]
    for member in group.members:
        limits = member.capacity
        pairs = enumerate(limits) if isinstance(limits, tuple) else [(None, limits)]
        rules += [Capacity(limit, member.id, at) for at, limit in pairs if limit is not None]
    checks = [
        allows(column, (replace(rule, window=None) if isinstance(rule, Capacity) else rule,))
        for rule in rules
        for at, column in enumerate(columns)
        if getattr(rule, "window", None) in (None, at)
    ]
    found = brute_force.lexicographic_optimum(
        group,
        [value_in_windows(group, level) for level in case.levels],
        allowed=lambda placement: all(check(placement) for check in checks),
        slacks=[level.tolerance.limit for level in case.levels],
    )
    return None if found is None else list(found)
