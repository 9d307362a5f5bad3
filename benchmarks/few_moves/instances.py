"""Random instances of the few-moves benchmark; the name determines the instance."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_UNIT = 1_000  # median log-normal weight


@dataclass(frozen=True, slots=True)
class Instance:
    """Benchmark instance: group with owned partitions, and maximum load of a solution."""

    name: str
    group: Group
    max_load: int


def log_normal_weights(rng: random.Random, count: int) -> list[int]:
    """Return random weights with a log-normal distribution (sigma 1)."""
    return [1 + int(_UNIT * math.exp(rng.gauss(0, 1))) for _ in range(count)]


def zipf_weights(rng: random.Random, count: int) -> list[int]:
    """Return weights proportional to 1 / sqrt(rank + 10), in random order."""
    weights = [1 + int(20 * _UNIT / math.sqrt(rank + 10)) for rank in range(count)]
    rng.shuffle(weights)
    return weights


def two_speed_weights(rng: random.Random, count: int) -> list[int]:
    """Return random weights near 1,000; about one in five is near 8,000."""
    return [
        rng.randint(7 * _UNIT, 9 * _UNIT) if rng.random() < 0.2 else rng.randint(500, 1_500)
        for _ in range(count)
    ]


WEIGHTS: dict[str, Callable[[random.Random, int], list[int]]] = {
    "log-normal": log_normal_weights,
    "zipf": zipf_weights,
    "two-speed": two_speed_weights,
}
SUBSCRIPTIONS = ("identical", "mixed")
STARTS = ("in-turn", "drifted")
TOLERANCES = {"exact": Fraction(0), "1%": Fraction(1, 100)}
_TOPICS = 10


def instance(name: str) -> Instance:
    """Build the benchmark instance that a name describes.

    Names consist of weights, subscriptions, start, tolerance, partitions, members and seed.

    Examples
    --------
    >>> one = instance("log-normal/identical/in-turn/exact/300/20/1")
    >>> one.max_load, one.group.partition_count, len(one.group.members)
    (26248, 300, 20)
    """
    weights_name, subscriptions, start, tolerance, *numbers = name.split("/")
    partitions, members, seed = map(int, numbers)
    rng = random.Random(seed)
    weights = WEIGHTS[weights_name](rng, partitions)
    topics = _topics(weights, 1 if subscriptions == "identical" else _TOPICS)
    names = [topic.name for topic in topics]
    readers = [
        names if subscriptions == "identical" or member < 2 else rng.sample(names, _TOPICS // 2)
        for member in range(members)
    ]
    owner = _owners(rng, topics, [set(topics) for topics in readers], drifted=start == "drifted")
    group = Group(
        id=name,
        topics=tuple(topics),
        members=tuple(
            Member(
                id=f"c{member:03}",
                subscription=tuple(sorted(readers[member])),
                owned=Partitions.of(tp for tp, holder in owner.items() if holder == member),
                generation=1,
            )
            for member in range(members)
        ),
    )
    least = max(-(-sum(weights) // members), *weights)
    return Instance(name, group, least + int(TOLERANCES[tolerance] * least))


def _topics(weights: Sequence[int], count: int) -> list[Topic]:
    parts = [tuple(weights[at::count]) for at in range(count)]
    return [
        Topic(name=f"t{at}", partitions=len(part), weights=part) for at, part in enumerate(parts)
    ]


def _owners(
    rng: random.Random, topics: Sequence[Topic], readers: Sequence[set[str]], *, drifted: bool
) -> dict[TopicPartition, int]:
    """Choose owners: members in turn, or balanced by weights that changed by up to 30% since."""
    owner: dict[TopicPartition, int] = {}
    loads = [0.0] * len(readers)
    turn = 0
    for topic in topics:
        consumers = [at for at, names in enumerate(readers) if topic.name in names]
        for number in range(topic.partitions):
            if drifted:
                earlier = topic.weight(number) * rng.uniform(0.7, 1.3)
                member = min(consumers, key=lambda at: (loads[at], at))
                loads[member] += earlier
            else:
                member = consumers[turn % len(consumers)]
                turn += 1
            owner[TopicPartition(topic.name, number)] = member
    return owner


def published_names() -> Iterator[str]:
    """Yield the names of the published benchmark instances."""
    for seed in (1, 2):
        yield f"log-normal/identical/in-turn/exact/300/20/{seed}"
    yield "log-normal/identical/in-turn/exact/600/30/1"
    for weights in WEIGHTS:
        for subscriptions in SUBSCRIPTIONS:
            for start in STARTS:
                yield f"{weights}/{subscriptions}/{start}/1%/1000/50/1"
