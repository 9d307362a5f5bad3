"""Random small groups with levels and constraints, with independent definitions of these."""

import random
from collections.abc import Callable

from kassay.reference import Group, Member, Topic
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    Level,
    MembersUsed,
    Movement,
    MovementCost,
    TopicSpread,
)
from tests import brute_force
from tests.brute_force import Placement

RACKS = ("r0", "r1", "r2")


def random_group(
    rng: random.Random,
    *,
    weighted: bool = False,
    racked: bool = False,
    most: tuple[int, int, int] = (4, 4, 8),
) -> Group:
    """Return a random group, with about half of the partitions owned."""
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
        owned = [
            tp
            for tp in ((t.name, p) for t in drawn for p in range(t.partitions))
            if tp[0] in subscription and tp not in taken and rng.random() < 0.5
        ]
        taken.update(owned)
        crew.append(
            Member(
                id=f"c{index}",
                subscription=subscription,
                owned=owned,
                generation=1,
                rack=rng.choice((*RACKS, None)) if racked else None,
            )
        )
    return Group(topics=tuple(drawn), members=tuple(crew))


def all_partitions(group: Group) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in group.topics for number in range(topic.partitions)]


def random_level(rng: random.Random, group: Group) -> Level:
    costs = {tp: rng.randint(0, 5) for tp in all_partitions(group) if rng.random() < 0.8}
    return rng.choice(
        (
            Imbalance(rng.choice(tuple(Measure))),
            Movement(),
            Movement(MovementCost.WEIGHT),
            Movement(tuple(costs.items()), other=2),
            CrossRack(),
            TopicSpread(),
            MembersUsed(),
        )
    )


def random_constraint(rng: random.Random, group: Group) -> Constraint:
    member = rng.choice(group.members).id
    anyone = rng.choice((member, None))
    topic, number = rng.choice(all_partitions(group))
    names = [topic.name for topic in group.topics]
    return rng.choice(
        (
            Capacity(rng.randint(0, 25), anyone),
            MaxPartitions(rng.randint(0, 5), anyone),
            MaxMoves(rng.randint(0, 4)),
            Pinned(topic, number, member),
            Forbidden(member, topic, rng.choice((number, None))),
            Colocated(tuple(rng.sample(names, min(2, len(names))))),
            Separated(tuple(rng.sample(all_partitions(group), min(2, len(all_partitions(group)))))),
        )
    )


def value_of(group: Group, level: Level) -> Callable[[Placement], object]:
    """Measure a placement on a level by its definition."""
    weight, owner = brute_force.weights(group), brute_force.owners(group)
    rack = {member.id: member.rack for member in group.members}
    racks = {
        (topic.name, number): topic.racks[number] if topic.racks else ()
        for topic in group.topics
        for number in range(topic.partitions)
    }

    def cost(tp: tuple[str, int]) -> int:
        if level.cost == "count":
            return 1
        return weight[tp] if level.cost == "weight" else dict(level.cost).get(tp, level.other)

    def value(placement: Placement) -> object:
        match level:
            case Imbalance():
                loads = brute_force.loads_of(group, placement)
                return brute_force.MEASURES[str(level.measure)](loads)
            case Movement():
                return sum(cost(tp) for tp, m in placement.items() if owner.get(tp, m) != m)
            case CrossRack():
                known = {tp: [r for r in racks[tp] if r is not None] for tp in placement}
                return sum(
                    bool(known[tp]) and rack[m] is not None and rack[m] not in known[tp]
                    for tp, m in placement.items()
                )
            case TopicSpread():
                piles: dict[tuple[str, str], int] = {}
                for (topic, _), member in placement.items():
                    piles[topic, member] = piles.get((topic, member), 0) + 1
                return sum(pile * pile for pile in piles.values())
            case MembersUsed():
                return len(set(placement.values()))

    return value


def allows(group: Group, constraints: tuple[Constraint, ...]) -> Callable[[Placement], bool]:
    """Return whether a placement meets all constraints by their definitions."""
    weight = brute_force.weights(group)

    def holds(constraint: Constraint, placement: Placement) -> bool:
        named = getattr(constraint, "member", None)
        members = [member.id for member in group.members] if named is None else [named]
        of = {m: [tp for tp, holder in placement.items() if holder == m] for m in members}
        match constraint:
            case Capacity():
                return all(sum(weight[tp] for tp in of[m]) <= constraint.limit for m in members)
            case MaxPartitions():
                return all(len(of[m]) <= constraint.limit for m in members)
            case MaxMoves():
                return brute_force.moves_of(group, placement) <= constraint.limit
            case Pinned():
                return placement.get((constraint.topic, constraint.partition)) == constraint.member
            case Forbidden():
                numbers = [n for topic, n in of[constraint.member] if topic == constraint.topic]
                return constraint.partition not in numbers and (
                    constraint.partition is not None or not numbers
                )
            case Colocated():
                numbers = {number for _, number in placement}
                return all(
                    len({placement[t, n] for t in constraint.topics if (t, n) in placement}) <= 1
                    for n in numbers
                )
            case Separated():
                holders = [placement[tp] for tp in constraint.partitions if tp in placement]
                return len(set(holders)) == len(holders)

    return lambda placement: all(holds(constraint, placement) for constraint in constraints)
