"""Consumer groups: topics, members, subscriptions and owned partitions."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import cast

from kassay.reference.java.hash_codes import name_uuid
from kassay.reference.model import notebook_tables
from kassay.reference.model.derived_values_cache import Results, cached
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group_annotations import (
    NO_CLIENT,
    NO_STATUS,
    Client,
    GroupStatus,
    WeightSource,
)
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.model.value_checks import (
    MAX_SPEED,
    check_length,
    check_partition_count,
    check_unique,
    checked_weights,
    first_repeated,
)

NO_GENERATION = -1
LATEST_PROTOCOL_VERSION = 3
USER_DATA_WITHOUT_GENERATION = "v0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as described by the cluster's metadata.

    Parameters
    ----------
    name
        Name, unique in the group.
    partitions
        Number of partitions. Every assignor skips topics with 0 partitions.
    weights
        Load of each partition, a non-negative integer in the caller's unit (messages or
        bytes per second); None if every partition has weight 1.
    racks
        Racks of the replicas per partition, None for an unknown or empty one; None as a
        whole if no rack is known.
    id
        Topic id, by which the broker's assignors order topics. If it is None, `uuid` is
        derived from the name.
    """

    name: str
    partitions: int
    weights: tuple[int, ...] | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None
    id: uuid.UUID | None = None

    def __post_init__(self) -> None:
        where = f"topic {self.name!r}"
        check_partition_count(where, self.partitions)
        if self.weights is not None:
            weights = checked_weights(where, self.weights, self.partitions)
            object.__setattr__(self, "weights", weights)
        if self.racks is not None:
            racks = tuple(tuple(rack or None for rack in row) for row in self.racks)
            object.__setattr__(self, "racks", racks)
            check_length(where, "racks", self.racks, self.partitions)

    def weight(self, partition: int) -> int:
        """Return the weight of one partition."""
        return 1 if self.weights is None else self.weights[partition]

    @property
    def total_weight(self) -> int:
        """Return the total weight of the partitions."""
        return self.partitions if self.weights is None else sum(self.weights)

    @property
    def uuid(self) -> uuid.UUID:
        """Return the topic id or, for a topic without id, a UUID derived from the name.

        The derived UUID is Java's ``UUID.nameUUIDFromBytes`` of the name.
        """
        if self.id is not None:
            return self.id
        return name_uuid(self.name.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A consumer as described by its join request.

    Parameters
    ----------
    id
        Member id, unique in the group. Kafka breaks ties by the order of the ids.
    subscription
        Topics that the member consumes, in the order sent.
    owned
        Partitions claimed from an earlier generation, in the order claimed; any iterable of
        (topic, partition) pairs is accepted.
    generation
        Generation of ``owned``; `NO_GENERATION` if there is none.
    instance_id
        ``group.instance.id`` of a static member.
    rack
        ``client.rack``; clients without it send the empty rack, which is replaced by None.
    capacity
        Maximum load in the unit of the weights; None for no limit.
    speed
        Speed relative to the other members, from 1 to 10,000. The imbalance measures compare
        loads divided by speeds. No assignor reads it.
    protocol_version
        Version of the consumer protocol subscription, 0 to 3.
    sub_generation
        Generation in the subscription if it differs from ``generation``, which is then the
        generation in the sticky assignor's user data.
    user_data
        ``"v0"`` if the sticky user data has no generation, else None.
    streams
        Streams per topic as (topic, count), for the legacy ZooKeeper consumer. Other topics
        have one stream.
    target
        Target assignment of the consumer protocol; None if it equals ``owned`` or is unknown.
    client
        Client id, host and library; no assignor reads them.
    """

    id: str
    subscription: tuple[str, ...]
    owned: Partitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    instance_id: str | None = None
    rack: str | None = None
    capacity: int | None = None
    speed: int = 1
    protocol_version: int = LATEST_PROTOCOL_VERSION
    sub_generation: int | None = None
    user_data: str | None = None
    streams: tuple[tuple[str, int], ...] = ()
    target: Partitions | None = None
    client: Client = NO_CLIENT

    def __post_init__(self) -> None:
        object.__setattr__(self, "rack", self.rack or None)
        for name in ("subscription", "owned"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise self._invalid(f"{name} must be a list, got the string {value!r}")
        if type(self.subscription) is not tuple:
            object.__setattr__(self, "subscription", tuple(self.subscription))
        for name in ("owned", "target"):
            value = getattr(self, name)
            if value is not None and type(value) is not Partitions:
                pairs = cast("Iterable[tuple[str, int]]", value)
                object.__setattr__(self, name, Partitions.of(pairs))
        object.__setattr__(self, "streams", tuple(self.streams))
        self._check()

    def _check(self) -> None:
        if len(set(self.subscription)) != len(self.subscription):
            repeated = first_repeated(self.subscription)
            raise self._invalid(f"the subscription lists topic {repeated!r} twice")
        if self.generation < NO_GENERATION:
            raise self._invalid(f"generation must be at least -1, got {self.generation!r}")
        if self.capacity is not None and self.capacity < 0:
            raise self._invalid(f"capacity must be at least 0, got {self.capacity!r}")
        if not 1 <= self.speed <= MAX_SPEED:
            raise self._invalid(f"speed must be from 1 to {MAX_SPEED}, got {self.speed!r}")
        if not 0 <= self.protocol_version <= LATEST_PROTOCOL_VERSION:
            raise self._invalid(
                f"protocol_version must be from 0 to {LATEST_PROTOCOL_VERSION}, "
                f"got {self.protocol_version!r}"
            )
        if self.user_data not in (None, USER_DATA_WITHOUT_GENERATION):
            raise self._invalid(f"user_data must be null or 'v0', got {self.user_data!r}")
        for topic, count in self.streams:
            if count < 1:
                raise self._invalid(
                    f"number of streams of topic {topic!r} must be at least 1, got {count!r}"
                )
        numbers = self.owned.numbers
        # For short arrays, argmin is several times as fast as min.
        if len(numbers) and (smallest := numbers[numbers.argmin()]) < 0:
            raise self._invalid(f"owned partition numbers must be at least 0, got {smallest}")

    def _invalid(self, problem: str) -> InputError:
        return InputError(f"member {self.id!r}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A consumer group at a rebalance.

    Subscriptions to topics without metadata, topics with 0 partitions and claims to partitions
    that do not exist are valid.

    Parameters
    ----------
    topics
        Topics with metadata, in the order of the document.
    members
        Members, in the order of the document.
    id
        Name of the group or of the case.
    notes
        Information for people; no program reads it.
    status
        State, protocol and assignor that the cluster reports; no algorithm uses them.
    weight_source
        Source of the weights; None if it is not known, or if there are no weights.
    available_weights
        Sources of weights that the capture or cluster shows, used or not.
    results
        Cached results, see `kassay.reference.model.derived_values_cache`.

    Examples
    --------
    >>> topics = (Topic(name="orders", partitions=4),)
    >>> group = Group(topics=topics, members=(Member(id="c0", subscription=("orders",)),))
    >>> group.partition_count, group.is_weighted
    (4, False)
    """

    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    id: str | None = None
    notes: tuple[str, ...] = ()
    status: GroupStatus = NO_STATUS
    weight_source: WeightSource | None = None
    available_weights: tuple[WeightSource, ...] = ()
    results: Results = field(default_factory=Results, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("topics", "members", "notes", "available_weights"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.weight_source is not None:
            object.__setattr__(self, "weight_source", WeightSource.parse(self.weight_source))
        check_unique("topic", [topic.name for topic in self.topics])
        check_unique("member id", [member.id for member in self.members])

    @cached
    def topic_table(self) -> Mapping[str, Topic]:
        """Return the topics by name."""
        return MappingProxyType({topic.name: topic for topic in self.topics})

    @cached
    def member_table(self) -> Mapping[str, Member]:
        """Return the members by id."""
        return MappingProxyType({member.id: member for member in self.members})

    @cached
    def subscribers(self) -> Mapping[str, tuple[int, ...]]:
        """Return the indices of the subscribed members, for each topic with partitions."""
        names = [topic.name for topic in self.topics if topic.partitions]
        if len({member.subscription for member in self.members}) == len(self.members):
            # No tuple per subscription: this takes half the time.
            indices: dict[str, list[int]] = {name: [] for name in names}
            for index, member in enumerate(self.members):
                for topic in member.subscription:
                    if topic in indices:
                        indices[topic].append(index)
            return MappingProxyType({topic: tuple(row) for topic, row in indices.items()})
        members_by_subscription: dict[tuple[str, ...], list[int]] = {}
        for index, member in enumerate(self.members):
            members_by_subscription.setdefault(member.subscription, []).append(index)
        parts: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
        for subscription, rows in members_by_subscription.items():
            part = tuple(rows)
            for topic in subscription:
                if topic in parts:
                    parts[topic].append(part)
        return MappingProxyType({topic: _merged(lists) for topic, lists in parts.items()})

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of all topics with metadata."""
        return sum(topic.partitions for topic in self.topics)

    @property
    @cached
    def common_weight(self) -> int | None:
        """Return the weight that all partitions with subscribers have, or None if weights differ.

        Without such partitions, the weight is 1.
        """
        if all(topic.weights is None for topic in self.topics):
            return 1
        distinct: set[int] = set()
        subscribers = self.subscribers()
        for topic in self.topics:
            if subscribers.get(topic.name):
                distinct.update((1,) if topic.weights is None else topic.weights)
        return None if len(distinct) > 1 else next(iter(distinct), 1)

    @property
    def is_weighted(self) -> bool:
        """Return whether two partitions with subscribers differ in weight."""
        return self.common_weight is None

    @property
    @cached
    def has_equal_speeds(self) -> bool:
        """Return whether all members have the same speed."""
        return len({member.speed for member in self.members}) <= 1

    @property
    def uniform_weight(self) -> int | None:
        """Return the weight of all partitions, or None if weights or speeds differ."""
        return self.common_weight if self.has_equal_speeds else None

    def _repr_html_(self) -> str:
        """Return an HTML table of subscriptions and owned partitions, for notebooks."""
        caption = (
            f"group {self.id or 'without a name'}: {len(self.members)} members, "
            f"{len(self.topics)} topics, {self.partition_count} "
            f"{'weighted ' if self.is_weighted else ''}partitions"
        )
        rows = ((m.id, m.subscription, m.owned) for m in self.members)
        return notebook_tables.members_table(caption, rows)


def require_group(group: object) -> None:
    """Raise UsageError if a value is not a group."""
    if not isinstance(group, Group):
        raise UsageError(
            f"group must be a Group, got {type(group).__name__}; load group documents with "
            "kassay.load_group, captures with kassay.load_captures"
        )


def _merged(parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    return parts[0] if len(parts) == 1 else tuple(sorted(chain.from_iterable(parts)))
