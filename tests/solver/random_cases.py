"""Random small groups with levels and constraints, with independent definitions of these."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import kassay
from kassay import Group, Member, Topic
from kassay.reference.model.group import NO_CLIENT, Client
from kassay.reference.model.joined_groups import join_groups
from kassay.reference.model.load_metrics import Measure
from kassay.solver import objective
from kassay.solver.constraints import Constraint
from kassay.solver.objective import Level
from kassay.solver.problem import Problem, build_problem
from tests import brute_force
from tests.brute_force import Placement

RACKS = ("r0", "r1", "r2")
HOSTS = ("h0", "h1", None)
TOLERANCES = (kassay.Tolerance(), kassay.Tolerance(absolute=3), kassay.Tolerance(relative=0.1))


def random_group(
    rng: random.Random,
    *,
    weighted: bool = False,
    racked: bool = False,
    hosted: bool = False,
    timed: bool = False,
    most: tuple[int, int, int] = (4, 4, 8),
) -> Group:
    """Return a random group, with about half of the partitions owned.

    The members of a ``hosted`` group have hosts, those of a ``timed`` group different speeds.
    """
    members, topics, left = most
    drawn: list[Topic] = []
    for index in range(rng.randint(1, topics)):
        size = min(left, rng.randint(1, 4))
        left -= size
        if size:
            weights = tuple(rng.randint(0, 9) * rng.choice((1, 1, 3)) for _ in range(size))
            racks = tuple(tuple(rng.sample((*RACKS, None), rng.randint(0, 2))) for _ in range(size))
            drawn.append(
                Topic(
                    name=f"t{index}",
                    partitions=size,
                    weights=weights if weighted else None,
                    racks=racks if racked and rng.random() < 0.7 else None,
                )
            )
    taken: set[tuple[str, int]] = set()
    crew: list[Member] = []
    for index in range(rng.randint(1, members)):
        subscription = tuple(topic.name for topic in drawn if rng.random() < 0.7)
        crew.append(
            replace(
                draw_member(rng, index, drawn, subscription, taken),
                rack=rng.choice((*RACKS, None)) if racked else None,
                speed=rng.choice((1, 1, 2, 3, 4, 10)) if timed else 1,
                client=Client(host=rng.choice(HOSTS)) if hosted else NO_CLIENT,
            )
        )
    return Group(topics=tuple(drawn), members=tuple(crew))


def half_subscriptions(topics: int, partitions: int, members: int, seed: int = 0) -> Group:
    """Return members with a random half of the topics; partitions have random owners."""
    rng = random.Random(seed)
    names = [f"t{index}" for index in range(topics)]
    chosen = [rng.sample(names, topics // 2) for _ in range(members)]
    subscribers = {n: [m for m in range(members) if n in chosen[m]] for n in names}
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    for name in names:
        for number in range(partitions):
            owned[rng.choice(subscribers[name])].append((name, number))
    crew = (
        Member(f"m{at}", tuple(chosen[at]), owned=owned[at], generation=1) for at in range(members)
    )
    return Group(tuple(Topic(name, partitions) for name in names), tuple(crew))


def draw_member(
    rng: random.Random,
    index: int,
    topics: Iterable[Topic],
    subscription: tuple[str, ...],
    taken: set[tuple[str, int]],
) -> Member:
    """Draw a member that owns half of its partitions that are not taken; they are taken then."""
    owned = [
        tp
        for tp in ((topic.name, n) for topic in topics for n in range(topic.partitions))
        if tp[0] in subscription and tp not in taken and rng.random() < 0.5
    ]
    taken.update(owned)
    return Member(id=f"c{index}", subscription=subscription, owned=owned, generation=1)


def weighted_problems(rng: random.Random, count: int) -> Iterator[tuple[Group, Problem]]:
    """Yield those of `count` random weighted groups that have partitions to assign."""
    for _ in range(count):
        group = random_group(rng, weighted=True, most=(4, 3, 7))
        problem = build_problem(group)
        if problem.partition_count:
            yield group, problem


def limited_problems(
    rng: random.Random, count: int, *, slack: int
) -> Iterator[tuple[Group, Problem, int, int]]:
    """Yield weighted problems, with a maximum load and the fewest moves within this load.

    The maximum load exceeds the minimum by at most ``slack``.
    """
    for group, problem in weighted_problems(rng, count):
        extra = rng.randint(0, slack)
        least, moves = brute_force.optimum(group, "makespan", slack=lambda x, s=extra: x + s)
        yield group, problem, least + extra, moves


def all_partitions(group: Group) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in group.topics for number in range(topic.partitions)]


def random_level(rng: random.Random, group: Group) -> Level:
    costs = {tp: rng.randint(0, 5) for tp in all_partitions(group) if rng.random() < 0.8}
    names = [topic.name for topic in group.topics]
    return rng.choice(
        (
            kassay.Imbalance(rng.choice(tuple(Measure))),
            objective.HostImbalance(rng.choice(tuple(Measure))),
            kassay.Movement(),
            kassay.Movement(objective.MovementCost.WEIGHT),
            kassay.Movement(tuple(costs.items()), other=2),
            kassay.CrossRack(),
            kassay.TopicSpread(),
            kassay.MembersUsed(),
            objective.Colocation([rng.sample(names, min(2, len(names)))] if names else []),
        )
    )


def random_constraint(rng: random.Random, group: Group) -> Constraint:
    member = rng.choice(group.members).id
    anyone = rng.choice((member, None))
    partitions = all_partitions(group)
    topic, number = rng.choice(partitions)
    names = [topic.name for topic in group.topics]
    return rng.choice(
        (
            kassay.Capacity(rng.randint(0, 25), anyone),
            kassay.MaxPartitions(rng.randint(0, 5), anyone),
            kassay.MaxMoves(rng.randint(0, 4)),
            kassay.Pinned(topic, number, member),
            kassay.Forbidden(member, topic, rng.choice((number, None))),
            kassay.Colocated(tuple(rng.sample(names, min(2, len(names))))),
            kassay.Separated(tuple(rng.sample(partitions, min(2, len(partitions))))),
        )
    )


@dataclass(frozen=True)
class LevelsCase:
    """Group with levels and constraints, and their minimum by brute force, None if infeasible."""

    group: Group
    levels: list[Level]
    constraints: tuple[Constraint, ...]
    minimum: list[int] | None


def levels_cases(rng: random.Random, count: int) -> Iterator[LevelsCase]:
    """Yield random groups with any levels and constraints."""
    for _ in range(count):
        group = random_group(
            rng,
            weighted=rng.random() < 0.5,
            racked=True,
            hosted=rng.random() < 0.5,
            timed=rng.random() < 0.5,
            most=(3, 3, 6),
        )
        levels = [random_level(rng, group) for _ in range(rng.randint(1, 3))]
        constraints = tuple(random_constraint(rng, group) for _ in range(rng.randint(0, 3)))
        minimum = brute_force.lexicographic_optimum(
            group, [value_of(group, level) for level in levels], allowed=allows(group, constraints)
        )
        yield LevelsCase(group, levels, constraints, None if minimum is None else list(minimum))


def host_cases(rng: random.Random, count: int) -> Iterator[LevelsCase]:
    """Yield groups with hosts or speeds, a third of them joined from two groups on shared hosts."""
    for _ in range(count):
        weighted, timed = rng.random() < 0.5, rng.random() < 0.7
        draw = partial(random_group, rng, weighted=weighted, hosted=True, timed=timed, racked=True)
        if rng.random() < 0.3:
            parts = [replace(draw(most=(2, 2, 3)), id=id) for id in ("a", "b")]
            group = join_groups(parts)
        else:
            group = draw(most=(4, 3, 6))
        levels = [random_level(rng, group) for _ in range(rng.randint(0, 2))]
        first = rng.choice((objective.HostImbalance, kassay.Imbalance))(rng.choice(tuple(Measure)))
        levels = [
            level
            if getattr(level, "measure", None) is Measure.LEXIMAX
            else replace(level, tolerance=rng.choice(TOLERANCES))
            for level in rng.sample([first, *levels], len(levels) + 1)
        ]
        rules = tuple(
            random_constraint(rng, group)
            for _ in range(rng.choice((0, 0, 1, 2, 4)) if all_partitions(group) else 0)
        )
        minimum = brute_force.lexicographic_optimum(
            group,
            [value_of(group, level) for level in levels],
            allowed=allows(group, rules),
            slacks=[level.tolerance.limit for level in levels],
        )
        yield LevelsCase(group, levels, rules, None if minimum is None else list(minimum))


def infeasible_cases(
    rng: random.Random, count: int
) -> Iterator[tuple[Group, tuple[Constraint, ...]]]:
    """Yield random groups with four constraints that no assignment meets."""
    while count:
        group = random_group(rng, most=(3, 3, 5))
        constraints = tuple(random_constraint(rng, group) for _ in range(4))
        if not is_feasible(group, constraints):
            count -= 1
            yield group, constraints


def is_feasible(group: Group, constraints: tuple[Constraint, ...]) -> bool:
    """Return whether an assignment meets all constraints, by brute force."""
    return any(map(allows(group, constraints), brute_force.every_placement(group)))


def is_minimal_conflict(group: Group, conflict: tuple[Constraint, ...]) -> bool:
    """Return whether no assignment meets all constraints, but one meets all except any one."""
    return not is_feasible(group, conflict) and all(
        is_feasible(group, tuple(other for other in conflict if other != left_out))
        for left_out in conflict
    )


def value_of(group: Group, level: Level) -> Callable[[Placement], int]:
    """Measure a placement on a level by its definition."""
    weight, owner = brute_force.weights(group), brute_force.owners(group)
    rack = {member.id: member.rack for member in group.members}
    racks = {
        (topic.name, number): topic.racks[number] if topic.racks else ()
        for topic in group.topics
        for number in range(topic.partitions)
    }

    units = [brute_force.units(group, by_host=by_host) for by_host in (False, True)]
    participants = brute_force.participants(group)

    def cost(tp: tuple[str, int]) -> int:
        if level.cost == "count":
            return 1
        return weight[tp] if level.cost == "weight" else dict(level.cost).get(tp, level.other)

    def value(placement: Placement) -> int:
        match level:
            case kassay.Imbalance() | objective.HostImbalance():
                unit = units[isinstance(level, objective.HostImbalance)]
                loads = dict.fromkeys(participants, 0)
                for tp, member in placement.items():
                    loads[member] += weight[tp]
                found = unit.value(str(level.measure), loads)
                if not isinstance(found, tuple):
                    return found
                base = sum(weight[tp] for tp in placement) * max(unit.factors, default=1) + 1
                return sum(load * base**at for at, load in enumerate(reversed(found)))
            case kassay.Movement():
                return sum(cost(tp) for tp, m in placement.items() if owner.get(tp, m) != m)
            case kassay.CrossRack():
                known = {tp: [r for r in racks[tp] if r is not None] for tp in placement}
                return sum(
                    bool(known[tp]) and rack[m] is not None and rack[m] not in known[tp]
                    for tp, m in placement.items()
                )
            case kassay.TopicSpread():
                piles: dict[tuple[str, str], int] = {}
                for (topic, _), member in placement.items():
                    piles[topic, member] = piles.get((topic, member), 0) + 1
                return sum(pile * pile for pile in piles.values())
            case kassay.MembersUsed():
                return len(set(placement.values()))
            case objective.Colocation():
                blocks: dict[tuple[tuple[str, ...], int], set[str]] = {}
                for (topic, number), member in placement.items():
                    for names in level.topics:
                        if topic in names:
                            blocks.setdefault((names, number), set()).add(member)
                return sum(len(members) - 1 for members in blocks.values())

    return value


def member_capacities(group: Group) -> tuple[Constraint, ...]:
    """Return the capacities of the members as constraints."""
    return tuple(
        kassay.Capacity(member.capacity, member.id)
        for member in group.members
        if member.capacity is not None
    )


def allows(group: Group, constraints: tuple[Constraint, ...]) -> Callable[[Placement], bool]:
    """Return whether a placement meets all constraints by their definitions."""
    weight, owner = brute_force.weights(group), brute_force.owners(group)

    def holds(constraint: Constraint, placement: Placement) -> bool:
        named = getattr(constraint, "member", None)
        members = [member.id for member in group.members] if named is None else [named]
        of = {m: [tp for tp, holder in placement.items() if holder == m] for m in members}
        match constraint:
            case kassay.Capacity():
                return all(sum(weight[tp] for tp in of[m]) <= constraint.limit for m in members)
            case kassay.MaxPartitions():
                return all(len(of[m]) <= constraint.limit for m in members)
            case kassay.MaxMoves():
                moves = sum(owner.get(tp, holder) != holder for tp, holder in placement.items())
                return moves <= constraint.limit
            case kassay.Pinned():
                return placement.get((constraint.topic, constraint.partition)) == constraint.member
            case kassay.Forbidden():
                numbers = [n for topic, n in of[constraint.member] if topic == constraint.topic]
                return constraint.partition not in numbers and (
                    constraint.partition is not None or not numbers
                )
            case kassay.Colocated():
                numbers = {number for _, number in placement}
                return all(
                    len({placement[t, n] for t in constraint.topics if (t, n) in placement}) <= 1
                    for n in numbers
                )
            case kassay.Separated():
                holders = [placement[tp] for tp in constraint.partitions if tp in placement]
                return len(set(holders)) == len(holders)
            case _:
                assert_never(constraint)

    return lambda placement: all(holds(constraint, placement) for constraint in constraints)
