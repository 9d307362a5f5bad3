"""Family of groups as in Kafka's ``ConsumerAssignorBenchmark``.

Upstream: org.apache.kafka.jmh.assignor.ConsumerAssignorBenchmark (commit 32524aba of apache/kafka).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple
from uuid import UUID

from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.study.families.random_groups import Family
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group import Group, Member, Topic

_SIZES = ("equal", "skewed")
_SUBSCRIPTIONS = ("homogeneous", "disjoint", "nested")
_EVENTS = (
    *("full", "stable", "join-one", "join-many", "leave-one", "leave-many"),
    "partitions-added",
)
_BUCKETS = 5
_RACKS = 3
_EVENT_SHARE = 10  # a tenth of the members or topics
_DEFAULT_ASSIGNOR = "uniform"


class GridPoint(NamedTuple):
    """Parameters of one group. ``members`` is the number after the event."""

    members: int
    topics: int
    partitions: int
    sizes: str
    subscriptions: str
    event: str
    has_racks: bool = False


@dataclass(frozen=True, kw_only=True)
class KafkaGridFamily(Family):
    """Family with one group per combination of the benchmark's parameters, except the assignor.

    The members own the answer of the studied assignor for the earlier group. ``largest`` limits
    the product of members and topics.
    """

    members: tuple[int, ...] = (5, 50, 500, 5_000)
    topics: tuple[int, ...] = (5, 50, 500, 5_000)
    partitions: tuple[int, ...] = (5_000, 10_000, 20_000)
    racks: tuple[bool, ...] = (False, True)
    largest: int = 25_000_000

    @cached_property
    def points(self) -> tuple[GridPoint, ...]:
        """Return all combinations of parameters."""
        axes = (self.members, self.topics, self.partitions, _SIZES, _SUBSCRIPTIONS, _EVENTS)
        points = (GridPoint(*point) for point in product(*axes, self.racks))
        return tuple(point for point in points if point.members * point.topics <= self.largest)

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(self.points)

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group at position ``seed`` of the grid, with the past of ``start``."""
        point = self.points[seed]
        members, owners = _members(point), dict[str, Member]()
        if point.event != "full":
            before = Group(topics=_topics(point, grown=0), members=_members(point, earlier=True))
            past = run_until_stable(before, start or _DEFAULT_ASSIGNOR).assignment
            after = before if past is None else rejoin(before, past)
            owners = {member.id: member for member in after.members}
        return Group(
            topics=_topics(point, grown=(point.event == "partitions-added") * _share(point.topics)),
            members=tuple(owners.get(member.id, member) for member in members),
            id=self.id_of(seed, start),
        )


def _share(number: int) -> int:
    return -(-number // _EVENT_SHARE)


def _topics(point: GridPoint, *, grown: int) -> tuple[Topic, ...]:
    """Return the topics. With ``grown``, some have one more partition."""
    counts = partition_counts(point.sizes, point.topics, point.partitions)
    for index in range(grown):
        counts[index * point.topics // grown] += 1
    racks = [f"rack{number}" for number in range(_RACKS)]
    replicas = [(racks[n % _RACKS], racks[(n + 1) % _RACKS]) for n in range(max(counts))]
    return tuple(
        Topic(
            name=f"topic-{index}",
            partitions=count,
            id=id,
            racks=tuple(replicas[:count]) if point.has_racks else None,
        )
        for index, (count, id) in enumerate(zip(counts, topic_ids(point.topics), strict=True))
    )


def partition_counts(sizes: str, topics: int, partitions: int) -> list[int]:
    """Return the partition counts of the topics, as the benchmark divides them.

    Examples
    --------
    >>> partition_counts("equal", 3, 8), partition_counts("skewed", 9, 40)
    ([3, 3, 2], [17, 9, 8, 1, 1, 1, 1, 1, 1])
    """
    base, more = divmod(partitions, topics)
    equal = [max(1, base) + (index < more) for index in range(topics)]
    tiers, left, divisor = list[int](), topics, 3
    while left:
        rounded = (4 * topics + divisor) // (2 * divisor)  # 2/3, 2/9, ... of the topics, half up
        tiers.append(min(left, max(1, rounded)))
        left, divisor = left - tiers[-1], 3 * divisor
    # Topics of later tiers are larger: twice as many partitions per topic with each tier.
    weights = [count << place for place, count in enumerate(tiers[1:])]
    rest = partitions - tiers[0]
    if sizes == "equal" or topics == 1 or sum(weights) > rest:
        return equal
    counts: list[int] = []
    running = shared = 0
    for count, weight in zip(reversed(tiers[1:]), reversed(weights), strict=True):
        running += weight
        total = rest * running // sum(weights)
        base, more = divmod(total - shared, count)
        counts += [base + (index < more) for index in range(count)]
        shared = total
    return counts + [1] * tiers[0]


def topic_ids(number: int) -> Iterator[UUID]:
    """Return the first topic ids, each from two values of ``java.util.Random(42).nextLong``."""
    halves = _java_ints(42)
    longs = ((high << 32) + low & (1 << 64) - 1 for high, low in zip(halves, halves, strict=False))
    pairs = zip(longs, longs, strict=False)
    return (UUID(int=most << 64 | least) for most, least in islice(pairs, number))


def _java_ints(seed: int) -> Iterator[int]:
    """Yield the values of ``nextInt`` of ``java.util.Random``."""
    state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1
    while True:
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        yield (state >> 16) - (state >> 47 << 32)


def _members(point: GridPoint, *, earlier: bool = False) -> tuple[Member, ...]:
    """Return the members. The number of members after the event decides their buckets."""
    buckets = min(_BUCKETS, point.members, point.topics)
    names = [f"topic-{index}" for index in range(point.topics)]
    ends = [point.topics * bucket // buckets for bucket in range(buckets + 1)]
    first = ends if point.subscriptions == "disjoint" else [0] * buckets
    last = ends[1:] if point.subscriptions != "homogeneous" else [point.topics] * buckets
    subscriptions = [tuple(names[first[one] : last[one]]) for one in range(buckets)]
    event, _, number = point.event.partition("-")
    change = {"one": 1, "many": _share(point.members)}.get(number, 0) if earlier else 0
    count = point.members + (change if event == "leave" else -change)
    return tuple(
        Member(
            id=f"member{index}",
            subscription=subscriptions[index % buckets],
            rack=f"rack{index % _RACKS}" if point.has_racks else None,
        )
        for index in range(count)
    )
