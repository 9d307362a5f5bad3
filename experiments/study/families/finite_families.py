"""Families of fixed size: hand-written, exhaustive, benchmark and simulated groups."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import combinations, combinations_with_replacement, islice, permutations, product
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.families.base_family import Family, random_even_assignment
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGroup:
    """Hand-written group, with the loads and moves of its optimum."""

    group: Group
    loads: tuple[int, ...]  # of assignments with minimum imbalance, in descending order
    moves: int  # fewest moves to such an assignment


_FOLDER = files(__package__)  # on Spark workers, this package is in an archive
_NAMED = json.loads((_FOLDER / "named_groups.json").read_text(encoding="utf-8"))
NAMED_GROUPS = {
    name: NamedGroup(
        group=parse_group(fields["group"]), loads=tuple(fields["loads"]), moves=fields["moves"]
    )
    for name, fields in _NAMED.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFamily(Family):
    """Family of the hand-written groups. A seed is a position in `NAMED_GROUPS`."""

    name: str = "named"

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(NAMED_GROUPS)

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Return the group at position ``seed`` of `NAMED_GROUPS`."""
        name, named = list(NAMED_GROUPS.items())[seed]
        return replace(named.group, id=f"{self.name}/{name}")


# A topic as one number per member, its owned partitions or _NOT_SUBSCRIBED, and the number of
# partitions without an owner.
_Topic = tuple[tuple[int, ...], int]
_NOT_SUBSCRIBED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustiveFamily(Family):
    """Family of all groups with up to ``members`` members and ``partitions`` partitions."""

    members: int
    partitions: int

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(_family_groups(self.members, self.partitions))

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Return the group at position ``seed`` of the family."""
        group = _family_groups(self.members, self.partitions)[seed]
        return replace(group, id=f"{self.name}/{seed}")


@cache
def _family_groups(members: int, partitions: int) -> tuple[Group, ...]:
    return tuple(exhaustive_groups_up_to(members=members, partitions=partitions))


def exhaustive_groups_up_to(*, members: int, partitions: int) -> Iterator[Group]:
    """Yield all groups with 1 to ``members`` members and 1 to ``partitions`` partitions."""
    for partition_count in range(1, partitions + 1):
        for member_count in range(1, members + 1):
            yield from exhaustive_groups(members=member_count, partitions=partition_count)


def exhaustive_groups(*, members: int, partitions: int) -> Iterator[Group]:
    """Yield all groups of one size, except copies that differ only in names.

    Every topic has a subscriber, and every member has a subscription.
    """
    for sizes in _descending_sums(partitions, partitions):
        for topics in _topic_combinations(sizes, members):
            rows = zip(*(row for row, _ in topics), strict=True)  # one per member
            are_subscribed = all(set(row) != {_NOT_SUBSCRIBED} for row in rows)
            if are_subscribed and _is_canonical(topics, members):
                yield _group(topics, members)


def _descending_sums(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
        return
    for part in range(min(total, largest), 0, -1):
        for rest in _descending_sums(total - part, part):
            yield (part, *rest)


def _topic_combinations(sizes: tuple[int, ...], members: int) -> Iterator[tuple[_Topic, ...]]:
    by_size = [
        combinations_with_replacement(tuple(_topics_of_size(size, members)), sizes.count(size))
        for size in dict.fromkeys(sizes)
    ]
    for chosen in product(*by_size):
        yield tuple(topic for topics in chosen for topic in topics)


def _topics_of_size(size: int, members: int) -> Iterator[_Topic]:
    for count in range(1, members + 1):
        for subscribers in combinations(range(members), count):
            for owned in product(range(size + 1), repeat=count):
                if sum(owned) <= size:
                    row = [_NOT_SUBSCRIBED] * members
                    for member, number in zip(subscribers, owned, strict=True):
                        row[member] = number
                    yield tuple(row), size - sum(owned)


def _is_canonical(topics: tuple[_Topic, ...], members: int) -> bool:
    own = _sorted(topics)
    return all(
        own <= _sorted(tuple((tuple(row[m] for m in order), rest) for row, rest in topics))
        for order in permutations(range(members))
    )


def _sorted(topics: tuple[_Topic, ...]) -> tuple[tuple[int, _Topic], ...]:
    sized = ((_size(topic), topic) for topic in topics)
    return tuple(sorted(sized, key=lambda pair: (-pair[0], pair[1])))


def _size(topic: _Topic) -> int:
    row, unowned = topic
    return unowned + sum(number for number in row if number != _NOT_SUBSCRIBED)


def _group(topics: tuple[_Topic, ...], members: int) -> Group:
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    subscriptions: list[list[str]] = [[] for _ in range(members)]
    for index, (row, _) in enumerate(topics):
        name, start = f"t{index}", 0
        for member, number in enumerate(row):
            if number == _NOT_SUBSCRIBED:
                continue
            subscriptions[member].append(name)
            owned[member].extend((name, start + offset) for offset in range(number))
            start += number
    return Group(
        topics=tuple(
            Topic(name=f"t{index}", partitions=_size(topic)) for index, topic in enumerate(topics)
        ),
        members=tuple(
            Member(
                id=f"c{index}",
                subscription=tuple(subscriptions[index]),
                owned=Partitions.of(owned[index]),
                generation=1 if owned[index] else -1,
            )
            for index in range(members)
        ),
    )


_BUCKETS = 5
_DEFAULT_ASSIGNOR = "sticky"


class GridPoint(NamedTuple):
    """Parameters of one group of a `GridFamily`."""

    members: int
    partitions_per_member: int
    topics: int
    mixed: bool
    incremental: bool

    @property
    def partitions_per_topic(self) -> int:
        """Divide the partitions of all members equally among the topics, rounded down."""
        return self.members * self.partitions_per_member // self.topics


@dataclass(frozen=True, kw_only=True)
class GridFamily(Family):
    """Base class of families with one group per combination of parameters."""

    members: tuple[int, ...] = (100, 500, 1_000, 5_000, 10_000)
    partitions_per_member: tuple[int, ...] = (5, 10, 50)
    topics: tuple[int, ...] = (10, 100, 1_000)
    mixed: tuple[bool, ...] = (False, True)
    incremental: tuple[bool, ...] = (False, True)  # a member joins; else no member owns partitions
    largest: int = 10_000_000  # members times topics; larger points are skipped

    @cached_property
    def points(self) -> tuple[GridPoint, ...]:
        """Return all combinations of parameters within the size limit ``largest``."""
        axes = (self.members, self.partitions_per_member, self.topics)
        points = (GridPoint(*point) for point in product(*axes, self.mixed, self.incremental))
        return tuple(
            point
            for point in points
            if point.partitions_per_topic and point.members * point.topics <= self.largest
        )

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True)
class BenchmarkFamily(GridFamily):
    """Family of the groups of Kafka's ``ServerSideAssignorBenchmark``, without racks.

    With mixed subscriptions, five buckets of members subscribe to disjoint sets of topics. If
    ``incremental``, the members own the result of the studied assignor, and a new member joins the
    last bucket.
    """

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group at position ``seed``. Members own partitions assigned by ``start``."""
        point = self.points[seed]
        names = [f"topic{index}" for index in range(point.topics)]
        topics = tuple(Topic(name=n, partitions=point.partitions_per_topic) for n in names)
        present = point.members - point.incremental
        buckets = min(_BUCKETS, present, point.topics) if point.mixed else 1
        size, width = -(-present // buckets), -(-point.topics // buckets)
        subscriptions = [tuple(sorted(names[b * width : (b + 1) * width])) for b in range(buckets)]
        members = tuple(
            Member(id=f"member{index}", subscription=subscriptions[index // size])
            for index in range(present)
        )
        group = Group(topics=topics, members=members)
        if point.incremental:
            past = run_until_stable(group, start or _DEFAULT_ASSIGNOR).assignment
            after = group if past is None else rejoin(group, past)
            joined = replace(members[-1], id="newMember", generation=NO_GENERATION)
            group = replace(after, members=(*after.members, joined))
        return replace(group, id=self.id_of(seed, start))


@dataclass(frozen=True, kw_only=True)
class WindowFamily(GridFamily):
    """Family in which each member subscribes to half of the topics or to all topics.

    If ``incremental``, the members own a random even assignment, and a new member joins.
    """

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group at position ``seed`` of the family."""
        point = self.points[seed]
        names = [f"topic-{index:04}" for index in range(point.topics)]
        total = point.members * point.partitions_per_member
        topics = tuple(
            Topic(name=name, partitions=max(1, (total + index) // point.topics))
            for index, name in enumerate(names)
        )
        members = []
        for index in range(point.members):
            first = index * point.topics // point.members if point.mixed else 0
            width = max(1, point.topics // 2) if point.mixed else point.topics
            window = (names[(first + offset) % point.topics] for offset in range(width))
            members.append(Member(id=f"member-{index:05}", subscription=tuple(sorted(window))))
        group = Group(topics=topics, members=tuple(members), id=f"{self.name}/{seed}")
        if not point.incremental or point.members < 2:
            return group
        before = replace(group, members=group.members[:-1])
        rng = Random(f"jmh-small/{seed}")  # noqa: S311 - an earlier name of the family
        after = rejoin(before, random_even_assignment(before, rng))
        new_member = replace(group.members[-1], generation=NO_GENERATION)
        return replace(after, members=(*after.members, new_member))


RECORDED_GROUPS = _FOLDER / "simulated_groups.json"
GROUPS_PER_SCRIPT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFamily(Family):
    """Family of recorded groups that assignors received in simulations."""

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return GROUPS_PER_SCRIPT * len(_scripts())

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Return a group that the assignor ``start`` received in a simulation."""
        script = _scripts()[seed // GROUPS_PER_SCRIPT]
        key = f"{script}/{start or _DEFAULT_ASSIGNOR}"
        if key not in _documents():
            known = ", ".join(sorted({key.partition("/")[2] for key in _documents()}))
            raise UsageError(f"family {self.name!r} has no groups of {start!r}; use one of {known}")
        group = parse_group(_documents()[key][seed % GROUPS_PER_SCRIPT])
        return replace(group, id=self.id_of(seed, start))


@cache
def _documents() -> Any:
    return json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))


@cache
def _scripts() -> tuple[str, ...]:
    return tuple(dict.fromkeys(key.rpartition("/")[0] for key in _documents()))


_SIZES = ("equal", "skewed")
_SUBSCRIPTIONS = ("homogeneous", "disjoint", "nested")
_EVENTS = (
    *("full", "stable", "join-one", "join-many", "leave-one", "leave-many"),
    "partitions-added",
)
_RACKS = 3
_EVENT_SHARE = 10  # a tenth of the members or topics
_FIRST_ASSIGNOR = "uniform"


class KafkaPoint(NamedTuple):
    """Parameters of one group of a `KafkaGridFamily`."""

    members: int
    topics: int
    partitions: int
    sizes: str
    subscriptions: str
    event: str
    has_racks: bool = False


@dataclass(frozen=True, kw_only=True)
class KafkaGridFamily(Family):
    """Family of the groups of Kafka's ``ConsumerAssignorBenchmark``.

    Upstream: org.apache.kafka.jmh.assignor.ConsumerAssignorBenchmark (commit 32524aba).

    The members own the assignment of the studied assignor before the event. ``largest`` is the
    maximum product of the numbers of members and topics.
    """

    members: tuple[int, ...] = (5, 50, 500, 5_000)
    topics: tuple[int, ...] = (5, 50, 500, 5_000)
    partitions: tuple[int, ...] = (5_000, 10_000, 20_000)
    racks: tuple[bool, ...] = (False, True)
    largest: int = 25_000_000

    @cached_property
    def points(self) -> tuple[KafkaPoint, ...]:
        """Return all combinations of parameters."""
        axes = (self.members, self.topics, self.partitions, _SIZES, _SUBSCRIPTIONS, _EVENTS)
        points = (KafkaPoint(*point) for point in product(*axes, self.racks))
        return tuple(point for point in points if point.members * point.topics <= self.largest)

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(self.points)

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group at position ``seed``. Members own partitions assigned by ``start``."""
        point = self.points[seed]
        members, owners = _members(point), dict[str, Member]()
        if point.event != "full":
            before = Group(topics=_topics(point, grown=0), members=_members(point, earlier=True))
            past = run_until_stable(before, start or _FIRST_ASSIGNOR).assignment
            after = before if past is None else rejoin(before, past)
            owners = {member.id: member for member in after.members}
        return Group(
            topics=_topics(point, grown=(point.event == "partitions-added") * _share(point.topics)),
            members=tuple(owners.get(member.id, member) for member in members),
            id=self.id_of(seed, start),
        )


def _share(number: int) -> int:
    return -(-number // _EVENT_SHARE)


def _topics(point: KafkaPoint, *, grown: int) -> tuple[Topic, ...]:
    """Build the topics, with one more partition in each of ``grown`` topics."""
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
    """Divide partitions among topics in the way of Kafka's ``ConsumerAssignorBenchmark``."""
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
    """Yield the topic ids that Kafka's ``ConsumerAssignorBenchmark`` generates."""
    halves = _java_ints(42)
    longs = ((high << 32) + low & (1 << 64) - 1 for high, low in zip(halves, halves, strict=False))
    pairs = zip(longs, longs, strict=False)
    return (UUID(int=most << 64 | least) for most, least in islice(pairs, number))


def _java_ints(seed: int) -> Iterator[int]:
    state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1
    while True:
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        yield (state >> 16) - (state >> 47 << 32)


def _members(point: KafkaPoint, *, earlier: bool = False) -> tuple[Member, ...]:
    """Build the members before (``earlier``) or after the event."""
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
