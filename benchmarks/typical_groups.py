"""Typical weighted groups: seeded, with constraints, racks, hosts or speeds, and recorded."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.weighted_groups import weighted_group
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.group import Client, Group, Member, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.solver.constraints import (
    Colocated,
    Constraint,
    Forbidden,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.objective import WEIGHTED_TOLERANCE, CrossRack, HostImbalance, Imbalance, Level

LIVE_RATES = Path(__file__).with_name("live_rates.json")
"""Group with measured rates: 400 partitions, 12 members."""

_OWNERS_IN_RACK = 0.9
"""Share of the partitions with a replica in the rack of their owner, whatever is drawn."""


class Case(NamedTuple):
    """Group with its kind, the levels before the moves, and constraints."""

    kind: str
    group: Group
    levels: tuple[Level, ...] = (Imbalance(Measure.MAKESPAN, WEIGHTED_TOLERANCE),)
    rules: tuple[Constraint, ...] = ()


def zipf_group(rng: random.Random, partitions: int, members: int, exponent: float) -> Group:
    """Build a group with Zipf weights in random order, and random owners.

    Examples
    --------
    >>> group = zipf_group(random.Random(1), 6, 2, 1.0)
    >>> sorted(group.topics[0].weights)
    [166666, 200000, 250000, 333333, 500000, 1000000]
    """
    weights = [max(1, int(1_000_000 / rank**exponent)) for rank in range(1, partitions + 1)]
    rng.shuffle(weights)
    return _owned(rng, weights, members)


def log_normal_group(rng: random.Random, partitions: int, members: int) -> Group:
    """Build a group with log-normal weights (sigma 1), and random owners."""
    weights = [max(1, round(1000 * rng.lognormvariate(0, 1))) for _ in range(partitions)]
    return _owned(rng, weights, members)


def _owned(rng: random.Random, weights: list[int], members: int, *, ranges: bool = False) -> Group:
    count = len(weights)
    owners = [at * members // count if ranges else rng.randrange(members) for at in range(count)]
    return weighted_group(weights, owners, members)


def named_groups() -> Iterator[Group]:
    """Yield the groups of the table in docs/results/performance.md."""
    sizes = ((60, 12, 1.0), (400, 12, 0.6), (400, 20, 1.0), (3_000, 60, 1.0))
    for partitions, members, exponent in sizes:
        group = zipf_group(random.Random(0), partitions, members, exponent)
        yield replace(group, id=f"{partitions:,} x {members}, Zipf {exponent}")
    yield replace(parse_group(json.loads(LIVE_RATES.read_text())), id="400 x 12, live rates")
    for partitions, members in ((200, 20), (1_000, 30)):
        group = log_normal_group(random.Random(0), partitions, members)
        yield replace(group, id=f"{partitions:,} x {members}, log-normal")


def random_groups(count: int) -> Iterator[Group]:
    """Yield seeded groups of up to 400 partitions and 20 members, with random or range owners."""
    for seed in range(count):
        rng = random.Random(seed)
        partitions, members = rng.choice((60, 100, 200, 300, 400)), rng.choice((5, 8, 12, 20))
        exponent = rng.choice((0.6, 0.8, 1.0, 1.2, None))
        if exponent is None:
            group, kind = log_normal_group(rng, partitions, members), "log-normal"
        else:
            group, kind = zipf_group(rng, partitions, members, exponent), f"Zipf {exponent}"
        ranges = rng.random() < 0.5
        if ranges:
            group = _owned(rng, list(group.topics[0].weights or ()), members, ranges=True)
        owners = "range" if ranges else "random"
        yield replace(group, id=f"{partitions} x {members}, {kind}, {owners} owners, seed {seed}")


def cases(count: int) -> Iterator[Case]:
    """Yield the seeded groups; six of ten get constraints, racks, hosts, speeds or topics."""
    additions = (None, _pins, None, _racks, None, _hosts, _speeds, None, _capacities, _topics)
    for seed, group in enumerate(random_groups(count)):
        add = additions[seed % len(additions)]
        if add is None:
            yield Case((group.id or "").split(", ")[1], group)
        else:
            kind = add.__name__.removeprefix("_")
            case = add(random.Random(seed), Case(kind, group))
            yield case._replace(group=replace(case.group, id=f"{group.id}, {kind}"))


def constrained_cases(count: int) -> Iterator[Case]:
    """Yield the seeded groups, each with constraints of one kind."""
    additions = (_numbers, _exclusions, _separations, _colocations)
    for seed, group in enumerate(random_groups(count)):
        add = additions[seed % len(additions)]
        kind = add.__name__.removeprefix("_")
        case = add(random.Random(seed), Case(kind, group))
        yield case._replace(group=replace(case.group, id=f"{group.id}, {kind}"))


def _numbers(_: random.Random, case: Case) -> Case:
    """Limit the number of partitions of each member to 1.1 times the mean, rounded down, plus 1."""
    (topic,), members = case.group.topics, case.group.members
    return case._replace(rules=(MaxPartitions(1 + topic.partitions * 11 // (10 * len(members))),))


def _exclusions(rng: random.Random, case: Case) -> Case:
    """Exclude a twentieth of the partitions from their owners."""
    (topic,) = case.group.topics
    owners = {at: member.id for member in case.group.members for _, at in member.owned}
    excluded = rng.sample(range(topic.partitions), topic.partitions // 20)
    return case._replace(rules=tuple(Forbidden(owners[at], topic.name, at) for at in excluded))


def _separations(rng: random.Random, case: Case) -> Case:
    """Separate a tenth of the partitions in pairs, and the heaviest partitions."""
    (topic,), members = case.group.topics, case.group.members
    drawn = rng.sample(range(topic.partitions), topic.partitions // 20 * 2)
    order = sorted(range(topic.partitions), key=lambda at: -topic.weight(at))
    sets = [order[: min(8, len(members))], *zip(drawn[::2], drawn[1::2], strict=True)]
    return case._replace(
        rules=tuple(Separated(tuple(TopicPartition(topic.name, at) for at in one)) for one in sets)
    )


def _colocations(rng: random.Random, case: Case) -> Case:
    """Keep half of the topic, and add a topic of equal size: equal numbers are colocated.

    Equal numbers have equal owners. Partitions of the second topic have lower weights.
    """
    (topic,), names = case.group.topics, ("t0", "t1")
    size = topic.partitions // 2
    first = (topic.weights or ())[:size]
    second = tuple(max(1, round(weight * rng.uniform(0.2, 0.8))) for weight in first)
    topics = tuple(
        Topic(name, size, weights=weights)
        for name, weights in zip(names, (first, second), strict=True)
    )
    owned = [[at for _, at in member.owned if at < size] for member in case.group.members]
    members = _changed(
        case.group.members,
        lambda at: {
            "subscription": names,
            "owned": Partitions.of([(name, number) for number in owned[at] for name in names]),
        },
    )
    group = replace(case.group, topics=topics, members=members)
    return case._replace(group=group, rules=(Colocated(names),))


def _pins(rng: random.Random, case: Case) -> Case:
    """Pin a tenth of the partitions, half of them to their owner."""
    (topic,), members = case.group.topics, case.group.members
    owners = {at: member.id for member in members for _, at in member.owned}
    pinned = rng.sample(range(topic.partitions), topic.partitions // 10)
    return case._replace(
        rules=tuple(
            Pinned(topic.name, at, owners[at] if index % 2 else rng.choice(members).id)
            for index, at in enumerate(pinned)
        )
    )


def _racks(rng: random.Random, case: Case) -> Case:
    """Add three racks and two replicas per partition, most of them in the rack of the owner."""
    (topic,), names = case.group.topics, ("r0", "r1", "r2")
    members = _changed(case.group.members, lambda at: {"rack": names[at % len(names)]})
    own = {at: member.rack for member in members for _, at in member.owned}
    racks = []
    for at in range(topic.partitions):
        replicas = rng.sample(names, 2)
        if own[at] not in replicas and rng.random() < _OWNERS_IN_RACK:
            replicas[0] = own[at]
        racks.append(tuple(replicas))
    group = replace(case.group, topics=(replace(topic, racks=tuple(racks)),), members=members)
    return case._replace(group=group, levels=(*case.levels, CrossRack()))


def _hosts(_: random.Random, case: Case) -> Case:
    """Spread the members over at most four hosts, the last one with fewest members."""
    members = _changed(case.group.members, lambda at: {"client": Client(host=f"h{at % 7 % 4}")})
    host_level = HostImbalance(Measure.MAKESPAN, WEIGHTED_TOLERANCE)
    group = replace(case.group, members=members)
    return case._replace(group=group, levels=(*case.levels, host_level))


def _speeds(rng: random.Random, case: Case) -> Case:
    members = _changed(case.group.members, lambda _: {"speed": rng.choice((1, 1, 2, 3))})
    return case._replace(group=replace(case.group, members=members))


def _capacities(rng: random.Random, case: Case) -> Case:
    """Limit the load of every third member to 70 to 95% of the mean load."""
    mean = case.group.topics[0].total_weight // len(case.group.members)
    members = _changed(
        case.group.members,
        lambda at: {"capacity": None if at % 3 else round(mean * rng.uniform(0.7, 0.95))},
    )
    return case._replace(group=replace(case.group, members=members))


def _topics(rng: random.Random, case: Case) -> Case:
    """Split the topic into eight, and subscribe each member to the first and four of the others.

    Members own what they consume.
    """
    (topic,), width = case.group.topics, len(case.group.members)
    names, size = [f"t{at}" for at in range(8)], topic.partitions // 8
    weights = topic.weights or ()
    topics = [
        Topic(name, size, weights=weights[at * size : (at + 1) * size])
        for at, name in enumerate(names)
    ]
    consumed = [(names[0], *sorted(rng.sample(names[1:], 4))) for _ in range(width)]
    owned: list[list[tuple[str, int]]] = [[] for _ in range(width)]
    for one in topics:
        consumers = [at for at in range(width) if one.name in consumed[at]]
        for at in range(size if consumers else 0):
            owned[rng.choice(consumers)].append((one.name, at))
    members = _changed(
        case.group.members,
        lambda at: {"subscription": consumed[at], "owned": Partitions.of(owned[at])},
    )
    return case._replace(group=replace(case.group, topics=tuple(topics), members=members))


def _changed(
    members: Sequence[Member], values: Callable[[int], dict[str, Any]]
) -> tuple[Member, ...]:
    return tuple(replace(member, **values(at)) for at, member in enumerate(members))
