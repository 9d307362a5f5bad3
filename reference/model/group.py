"""Consumer groups: topics, members, subscriptions and owned partitions.

Groups and assignments are immutable, and many functions need the same derived values:
owners, subscribers, loads. Each object keeps them in its ``results``, which are not part of
its value. Without this cache, the evaluation of a case of a study takes twice as long and
``kassay compare`` with 100 members and 5,000 partitions 18% longer.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import wraps
from itertools import chain
from math import gcd, lcm
from operator import index as as_integer
from types import MappingProxyType
from typing import Any, SupportsIndex, TypeVar, cast

from kassay.reference.java_collections import name_uuid
from kassay.reference.model import display
from kassay.reference.model.display import count_of, short_text
from kassay.reference.model.errors import InputError
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicStarts

MAX_PARTITIONS = 2**31 - 1
MAX_WEIGHT = 2**63 - 1
MAX_COPIES = 2**31 - 1
MAX_SPEED = 10_000
NO_GENERATION = -1
LATEST_PROTOCOL_VERSION = 3
ASSUMED = "assumed: "
"""Start of a note with an assumption that the source of the group does not confirm."""
USER_DATA_WITHOUT_GENERATION = "v0"
Word = TypeVar("Word", bound=StrEnum)
REBALANCING = "Rebalancing"
"""State of a group that rebalances, if the source does not name the state."""
REBALANCING_STATES = frozenset(
    {REBALANCING, "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)
"""States of a group between two assignments, classic and consumer protocol."""


class Protocol(StrEnum):
    """Protocol of a consumer group, as in Kafka's property ``group.protocol``."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SIMPLE = "simple"  # no members: the consumers call assign() and only commit offsets


class Assumed(StrEnum):
    """Property of a member that is assumed, because the source does not contain it."""

    TOPICS = "topics"  # the subscription
    RACK = "rack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Client id, host and library of a member. None means an unknown value."""

    id: str | None = None  # ``client.id``
    host: str | None = None
    """Host or pod on which the member runs; by default the address from which the client connects,
    as the broker reports it."""
    library: str | None = None  # name, if it can be recognised


NO_CLIENT = Client()


class WeightSource(StrEnum):
    """Source of partition weights: a measured quantity or a file."""

    LAG = "lag"  # messages between the committed offset and the end offset
    RATE = "rate"  # messages appended between two samples of the end offsets
    SIZE = "size"  # bytes on disk
    FILE = "file"  # numbers of a file or table; their quantity is not known


@dataclass(frozen=True, slots=True)
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
        bytes per second); None if every partition has weight 1. With profiles, their sums.
    racks
        Racks of the replicas per partition, with None for an unknown or empty rack; None if
        no rack of the topic is known.
    id
        Topic id, by which the broker's assignors order topics. If it is None, `uuid` is
        derived from the name.
    copies
        Minimum and maximum number of members per partition, for share groups; None if each
        partition has one member.
    is_stateful
        Whether the partitions are tasks with local state, for Streams.
    standbys
        Number of standby copies of each stateful task. All copies of a task are on different
        hosts.
    profiles
        Load of each partition per window, for example per hour of a day; None if there is only one
        window. A window can also be a resource: records, bytes, seconds of work.
    """

    name: str
    partitions: int
    _: KW_ONLY
    weights: tuple[int, ...] | None = None
    racks: tuple[tuple[str | None, ...], ...] | None = None
    id: uuid.UUID | None = None
    copies: tuple[tuple[int, int], ...] | None = None
    is_stateful: bool = False
    standbys: int = 0
    profiles: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        where = f"topic {self.name!r}"
        count: object = self.partitions
        if not isinstance(count, SupportsIndex) or isinstance(count, bool):
            raise InputError(f"{where}: partitions must be an integer, got {count!r}")
        if not isinstance(self.name, str):
            raise InputError(f"{where}: the name must be a string")
        if not 0 <= as_integer(count) <= MAX_PARTITIONS:
            raise InputError(
                f"{where}: partitions must be from 0 to {MAX_PARTITIONS}, got {count!r}"
            )
        object.__setattr__(self, "partitions", as_integer(count))
        if self.profiles is not None:
            self._set_profiles(where, self.profiles)
        # Sums of profiles may exceed the range of a weight.
        if self.weights is not None and self.profiles is None:
            weights = _checked_weights(where, self.weights, self.partitions)
            object.__setattr__(self, "weights", weights)
        if self.racks is not None:
            racks = tuple(tuple(rack or None for rack in row) for row in self.racks)
            object.__setattr__(self, "racks", racks)
            _check_length(where, "racks", self.racks, self.partitions)
        if self.standbys < 0 or (self.standbys and not self.is_stateful):
            raise InputError(
                f"{where}: standbys must be at least 0, and 0 for a stateless topic, "
                f"got {self.standbys}"
            )
        if self.copies is not None:
            self._set_copies(where, self.copies)

    def _set_copies(self, where: str, copies: Iterable[tuple[int, int]]) -> None:
        ranges = tuple((low, high) for low, high in copies)
        object.__setattr__(self, "copies", ranges)
        _check_length(where, "copies", ranges, self.partitions)
        for number, (low, high) in enumerate(ranges):
            if not 0 <= low <= high <= MAX_COPIES:
                raise InputError(
                    f"{where}: minimum and maximum copies of partition {number} must be from 0 to "
                    f"{MAX_COPIES:,}, in ascending order, got {low} and {high}"
                )

    def _set_profiles(self, where: str, profiles: Iterable[Iterable[int]]) -> None:
        rows = tuple(_integers(where, row) for row in profiles)
        _check_length(where, "weights", rows, self.partitions)
        width = len(rows[0]) if rows else 1
        for number, row in enumerate(rows):
            if len(row) != width or not row:
                raise InputError(
                    f"{where}: the weights of partition {number} must have one value per window "
                    f"({max(width, 1)}), got {len(row)}"
                )
            _checked_weights(f"{where}, partition {number}", row, width)
        sums = tuple(map(sum, rows))
        if self.weights is not None and tuple(self.weights) != sums:
            raise InputError(f"{where}: weights must be the sums of the profiles; omit the weights")
        object.__setattr__(self, "weights", sums)
        object.__setattr__(self, "profiles", rows if width > 1 else None)

    def __repr__(self) -> str:
        return short_text(self)

    def weight(self, partition: int) -> int:
        """Return the weight of one partition."""
        return 1 if self.weights is None else self.weights[partition]

    @property
    def total_weight(self) -> int:
        """Return the total weight of the partitions."""
        return self.partitions if self.weights is None else sum(self.weights)

    @property
    def uuid(self) -> uuid.UUID:
        """Return the topic id, or a UUID derived from the name if the id is None."""
        return name_uuid(self.name) if self.id is None else self.id


@dataclass(frozen=True, slots=True)
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
        Maximum load in the unit of the weights, in every window or per window; None for no limit.
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
    assumed
        Properties that the source does not show: results for the group hold under a condition,
        see `kassay.reference.model.group_remarks`.
    holds
        Partitions that the member receives without a move, besides those that it owns. Several
        members may hold one partition. Standbys do not move to the hosts of these members.
    tags
        Client tags as (key, value). The copies of a task on different hosts should have
        different values of each key.
    """

    id: str
    subscription: tuple[str, ...]
    _: KW_ONLY
    owned: Partitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    instance_id: str | None = None
    rack: str | None = None
    capacity: int | tuple[int, ...] | None = None
    speed: int = 1
    protocol_version: int = LATEST_PROTOCOL_VERSION
    sub_generation: int | None = None
    user_data: str | None = None
    streams: tuple[tuple[str, int], ...] = ()
    target: Partitions | None = None
    client: Client = NO_CLIENT
    assumed: tuple[Assumed, ...] = ()
    holds: Partitions = NO_PARTITIONS
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise self._invalid("the id must be a string")
        object.__setattr__(self, "rack", self.rack or None)
        for name in ("subscription", "owned"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise self._invalid(f"{name} must be a list, got {value!r}")
        if type(self.subscription) is not tuple:
            object.__setattr__(self, "subscription", tuple(self.subscription))
        for name in ("owned", "target", "holds"):
            value = getattr(self, name)
            if value is not None and type(value) is not Partitions:
                pairs = cast("Iterable[tuple[str, int]]", value)
                found = Partitions.of(pairs, name=f"member {self.id!r}: {name}")
                object.__setattr__(self, name, found)
        object.__setattr__(self, "streams", tuple(self.streams))
        for name in ("generation", "speed", "protocol_version"):
            if type(value := getattr(self, name)) is not int:
                object.__setattr__(self, name, self._integer(name, value))
        if self.capacity is not None and type(self.capacity) is not int:
            given = self.capacity if isinstance(self.capacity, Iterable) else (self.capacity,)
            capacities = tuple(self._integer("capacity", one) for one in given)
            object.__setattr__(
                self, "capacity", capacities[0] if len(capacities) == 1 else capacities
            )
        self._check_words()
        self._check()

    def _check_words(self) -> None:
        for word in (*self.subscription, self.rack or ""):
            if not isinstance(word, str):
                raise self._invalid(f"the names of topics and racks must be strings, got {word!r}")

    def _integer(self, name: str, value: object) -> int:
        if not isinstance(value, SupportsIndex):
            raise self._invalid(f"{name} must be an integer, got {value!r}")
        return as_integer(value)

    def _check(self) -> None:
        if len(set(self.subscription)) != len(self.subscription):
            repeated = _first_repeated(self.subscription)
            raise self._invalid(f"the subscription lists topic {repeated!r} twice")
        if self.generation < NO_GENERATION:
            raise self._invalid(f"generation must be at least -1, got {self.generation!r}")
        capacities = self.capacity if isinstance(self.capacity, tuple) else (self.capacity,)
        if any(capacity is not None and capacity < 0 for capacity in capacities):
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

    def __repr__(self) -> str:
        return short_text(self)

    def _invalid(self, problem: str) -> InputError:
        return InputError(f"member {self.id!r}: {problem}")


def _checked_weights(where: str, weights: Iterable[int], partitions: int) -> tuple[int, ...]:
    integers = _integers(where, weights)
    _check_length(where, "weights", integers, partitions)
    bad = next((weight for weight in integers if not 0 <= weight <= MAX_WEIGHT), None)
    if bad is not None:
        raise InputError(f"{where}: weights must be from 0 to {MAX_WEIGHT}, got {bad!r}")
    return integers


def _check_length(where: str, name: str, values: tuple[object, ...], partitions: int) -> None:
    if len(values) != partitions:
        raise InputError(
            f"{where}: {name} must have one entry per partition ({partitions}), got {len(values)}"
        )


def _word(words: type[Word], value: str, name: str) -> Word:
    """Convert a text to a member of an enumeration. Raise InputError for an unknown text."""
    try:
        return words(value)
    except ValueError:
        known = ", ".join(words)
        raise InputError(f"{name} must be one of {known}, got {value!r}") from None


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Raise InputError if a name is listed twice."""
    if len(set(names)) != len(names):
        raise InputError(f"{kind} {_first_repeated(names)!r} is listed twice")


def _first_repeated(names: Iterable[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)


def _integers(where: str, weights: Iterable[int]) -> tuple[int, ...]:
    """Convert weights to integers. Raise InputError for weights that are not integers."""
    numbers = tuple(weights)
    try:
        return tuple(map(as_integer, numbers))
    except TypeError:
        bad = next(number for number in numbers if not isinstance(number, SupportsIndex))
        raise InputError(
            f"{where}: weights must be integers, got {bad!r}; multiply them by a common factor and "
            "round, for example [round(1000 * weight) for weight in weights]"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """State, protocol, assignor and lag of a group. None means an unknown value."""

    state: str | None = None  # as Kafka's tools print it, for example ``Stable``
    protocol: Protocol | None = None
    assignor: str | None = None
    """Name as the group reports it: the protocol name of the classic protocol, or the broker's
    assignor (``uniform``, ``range``)."""
    lag: int | None = field(default=None, compare=False)
    """Messages that the group has not consumed yet. Group documents do not contain it."""

    def __post_init__(self) -> None:
        if self.protocol is not None:
            object.__setattr__(self, "protocol", _word(Protocol, self.protocol, "protocol"))

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a rebalance of the group is in progress."""
        return self.state in REBALANCING_STATES

    @property
    def registered_assignor(self) -> str | None:
        """Return the name of the group's assignor in `kassay.assign`, or None if unknown."""
        if self.protocol is Protocol.CONSUMER and self.assignor == "range":
            return "server-range"
        return self.assignor


NO_STATUS = GroupStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Periods of time or resources for which partitions have separate weights.

    ``seconds`` is the length of each window, if it is a period of known length. With capacities
    of a member per window, the imbalance compares loads divided by these capacities.
    """

    names: tuple[str, ...] = ()
    seconds: int | None = None
    capacities: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        check_unique("window", self.names)
        if self.seconds is not None and self.seconds < 1:
            raise InputError(f"windows: seconds must be at least 1, got {self.seconds!r}")
        if self.capacities is not None:
            object.__setattr__(self, "capacities", tuple(self.capacities))
            if min(self.capacities, default=1) < 1:
                raise InputError(
                    f"windows: capacities must be at least 1, got {min(self.capacities)!r}"
                )


NO_WINDOWS = Windows()


class Results(dict[object, Any]):
    """Cache of the results of functions for one object. A copy of the cache is empty."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type["Results"], tuple[()]]:
        return (Results, ())


Value = TypeVar("Value")


def cached(function: Callable[["Group"], Value]) -> Callable[["Group"], Value]:
    """Decorate a pure function of a group to cache its result."""

    @wraps(function)
    def wrapper(group: "Group") -> Value:
        results = group.results
        if wrapper not in results:
            results[wrapper] = function(group)
        value: Value = results[wrapper]
        return value

    return wrapper


@dataclass(frozen=True, slots=True)
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
        Information for people. A note that starts with `ASSUMED` is a condition of results.
    status
        State, protocol and assignor that the cluster reports; no algorithm uses them.
    weight_source
        Source of the weights; None if it is not known, or if there are no weights.
    weight_unit
        Unit of the weights, for example ``messages/s``; only texts show it.
    available_weights
        Sources of weights that the capture or cluster shows, used or not.
    windows
        Names and capacities of the windows of the profiles.

    Examples
    --------
    >>> topics = (Topic(name="orders", partitions=4),)
    >>> group = Group(topics=topics, members=(Member(id="c0", subscription=("orders",)),))
    >>> group.partition_count, group.is_weighted
    (4, False)
    """

    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    _: KW_ONLY
    id: str | None = None
    notes: tuple[str, ...] = ()
    status: GroupStatus = NO_STATUS
    weight_source: WeightSource | None = None
    weight_unit: str | None = None
    available_weights: tuple[WeightSource, ...] = ()
    windows: Windows = NO_WINDOWS
    results: Results = field(default_factory=Results, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("topics", "members", "notes", "available_weights"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.weight_source is not None:
            source = _word(WeightSource, self.weight_source, "the source of weights")
            object.__setattr__(self, "weight_source", source)
        check_unique("topic", [topic.name for topic in self.topics])
        check_unique("member id", [member.id for member in self.members])
        self._check_windows()

    def _check_windows(self) -> None:
        given: dict[str, Sequence[object]] = {
            f"topic {topic.name!r}: the weights of a partition": (topic.profiles or ((1,),))[0]
            for topic in self.topics
            if topic.weights
        }
        given["windows: names"] = self.windows.names
        given["windows: capacities"] = self.windows.capacities or ()
        for member in self.members:
            if isinstance(member.capacity, tuple):
                given[f"member {member.id!r}: capacity"] = member.capacity
        for what, values in given.items():
            if values and len(values) != self.window_count:
                raise InputError(
                    f"{what} must have one entry per window ({self.window_count}), "
                    f"got {len(values)}"
                )

    @property
    @cached
    def window_count(self) -> int:
        """Return the number of windows, which is 1 without profiles."""
        return next((len(topic.profiles[0]) for topic in self.topics if topic.profiles), 1)

    @property
    @cached
    def window_factors(self) -> tuple[int, ...]:
        """Return the factors that make loads relative to the capacities, one per window."""
        capacities = self.windows.capacities or (1,) * self.window_count
        multiple = lcm(*capacities)
        factors = [multiple // capacity for capacity in capacities]
        return tuple(factor // gcd(*factors) for factor in factors)

    @property
    def label(self) -> str:
        """Return the name of the group in messages: "group" with its id, or "the group"."""
        return "the group" if self.id is None else f"group {self.id!r}"

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
        """Return the indices of the subscribers per topic. A topic with 0 partitions has none."""
        members_by_subscription: dict[tuple[str, ...], list[int]] = {}
        for index, member in enumerate(self.members):
            members_by_subscription.setdefault(member.subscription, []).append(index)
        parts: dict[str, list[tuple[int, ...]]] = {t.name: [] for t in self.topics if t.partitions}
        for subscription, rows in members_by_subscription.items():
            part = tuple(rows)
            for topic in subscription:
                if topic in parts:
                    parts[topic].append(part)
        merged = {
            name: lists[0] if len(lists) == 1 else tuple(sorted(chain.from_iterable(lists)))
            for name, lists in parts.items()
        }
        return MappingProxyType({topic.name: merged.get(topic.name, ()) for topic in self.topics})

    @property
    @cached
    def participant_indices(self) -> tuple[int, ...]:
        """Return the indices of the members that subscribe to a topic with partitions."""
        with_partitions = frozenset(t.name for t in self.topics if t.partitions)
        return tuple(
            index
            for index, member in enumerate(self.members)
            if not with_partitions.isdisjoint(member.subscription)
        )

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of all topics with metadata."""
        return sum(topic.partitions for topic in self.topics)

    @property
    @cached
    def common_weight(self) -> int | None:
        """Return the weight of each partition with subscribers, or None if weights differ."""
        if self.window_count > 1:
            return None
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
        """Return whether the partitions with subscribers have different weights."""
        return self.common_weight is None

    @property
    @cached
    def has_equal_speeds(self) -> bool:
        """Return whether all members have the same speed."""
        return len({member.speed for member in self.members}) <= 1

    @property
    @cached
    def has_copies(self) -> bool:
        """Return whether partitions can have copies, or tasks have local state."""
        return any(topic.copies is not None or topic.is_stateful for topic in self.topics) or any(
            len(member.holds) for member in self.members
        )

    @property
    def uniform_weight(self) -> int | None:
        """Return the weight of each partition, or None if weights or speeds differ."""
        return self.common_weight if self.has_equal_speeds else None

    def __repr__(self) -> str:
        return f"<{self._caption()}>"

    def _repr_html_(self) -> str:
        names = display.names
        rows = ((m.id, names(m.subscription), names(m.owned)) for m in self.members)
        return display.table(self._caption(), ("member", "subscribes to", "owns"), rows)

    def _caption(self) -> str:
        return (
            f"group {self.id or 'without a name'}: {count_of(len(self.members), 'member')}, "
            f"{count_of(len(self.topics), 'topic')}, {self.partition_count} "
            f"{'weighted ' if self.is_weighted else ''}partitions"
        )


@cached
def topic_starts(group: Group) -> TopicStarts:
    """Return the consecutive numbering of a group's partitions."""
    return TopicStarts({topic.name: topic.partitions for topic in group.topics})
