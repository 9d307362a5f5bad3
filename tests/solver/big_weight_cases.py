"""Random small groups with weights from 0 to 2**62, compared with brute force."""

import random
from dataclasses import replace

import kassay
from kassay import Group, Topic
from kassay.reference.model.metrics import Measure
from kassay.solver import objective
from kassay.solver.constraints import Constraint
from tests import brute_force
from tests.solver.adversarial_cases import AdversarialCase
from tests.solver.random_cases import all_partitions, draw_member

LARGEST = 2**62
TOLERANCES = (
    kassay.Tolerance(),
    kassay.Tolerance(),
    kassay.Tolerance(absolute=2**40),
    kassay.Tolerance(relative=0.05),
)


def big_weight_case(seed: int, *, partitions: int = 6, members: int = 3) -> AdversarialCase:
    """Return a random group with imbalance and movement, and random constraints."""
    rng = random.Random(seed)
    group = _random_group(rng, rng.randint(1, partitions), rng.randint(1, members))
    measure = rng.choice(tuple(Measure))
    tolerance = kassay.Tolerance() if measure == "leximax" else rng.choice(TOLERANCES)
    cost = rng.choice(tuple(objective.MovementCost))
    levels = (kassay.Imbalance(measure, tolerance), kassay.Movement(cost))
    constraints = tuple(_random_constraint(rng, group) for _ in range(rng.choice((0, 0, 1, 2))))
    return AdversarialCase(group, levels, constraints)


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
