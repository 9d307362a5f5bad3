"""Consumer groups: topics, members, subscriptions and owned partitions.

Groups and assignments are immutable, and many functions need the same derived values:
owners, subscribers, loads. Each object keeps them in its ``results``, which are not part of
its value. Without this cache, the evaluation of a case of a study takes twice as long and
``kassay compare`` with 100 members and 5,000 partitions 18 % longer.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import wraps
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeVar

from kassay.reference.model import notebook_tables
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_annotations import REBALANCING_STATES, Protocol, WeightSource
from kassay.reference.model.topic_partitions import TopicStarts
from kassay.reference.model.topics_and_members import (
    LATEST_PROTOCOL_VERSION,
    NO_GENERATION,
    USER_DATA_WITHOUT_GENERATION,
    Member,
    Topic,
    check_unique,
)

__all__ = [
    "LATEST_PROTOCOL_VERSION",
    "NO_GENERATION",
    "USER_DATA_WITHOUT_GENERATION",
    "Group",
    "Member",
    "Topic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """State, protocol and assignor of a group. None means that the source lacks the value.

    Parameters
    ----------
    state
        State as Kafka's tools print it, for example ``Stable``.
    protocol
        Protocol of the group.
    assignor
        Name of the assignor as the group reports it: the protocol name of the classic
        protocol, or the broker's assignor (``uniform``, ``range``).
    """

    state: str | None = None
    protocol: Protocol | None = None
    assignor: str | None = None

    def __post_init__(self) -> None:
        if self.protocol is None:
            return
        try:
            object.__setattr__(self, "protocol", Protocol(self.protocol))
        except ValueError:
            known = ", ".join(map(str, Protocol))
            raise InputError(f"protocol must be one of {known}, got {self.protocol!r}") from None

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a rebalance of the group is in progress."""
        return self.state in REBALANCING_STATES

    @property
    def registered_assignor(self) -> str | None:
        """Return the name under which `kassay.assign` accepts the group's assignor.

        The broker's range assignor has the name ``server-range``.
        """
        if self.protocol is Protocol.CONSUMER and self.assignor == "range":
            return "server-range"
        return self.assignor


NO_STATUS = GroupStatus()


class Results(dict[object, Any]):
    """Cache of one object: results of functions, with the functions as keys.

    Copies and pickled copies are empty.
    """

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
        Information for people; no program reads it.
    status
        State, protocol and assignor that the cluster reports; no algorithm uses them.
    weight_source
        Source of the weights; None if it is not known, or if there are no weights.
    weight_unit
        Unit of the weights, for example ``messages/s``; only texts show it.
    available_weights
        Sources of weights that the capture or cluster shows, used or not.
    results
        Cached results of functions with the decorator `cached`.

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
        """Return the indices of the subscribed members for each topic.

        A topic with 0 partitions has no subscribers.
        """
        empty = dict.fromkeys((topic.name for topic in self.topics if not topic.partitions), ())
        names = [topic.name for topic in self.topics if topic.partitions]
        if len({member.subscription for member in self.members}) == len(self.members):
            # No tuple per subscription: this takes half the time.
            indices: dict[str, list[int]] = {name: [] for name in names}
            for index, member in enumerate(self.members):
                for topic in member.subscription:
                    if topic in indices:
                        indices[topic].append(index)
            return MappingProxyType({name: tuple(row) for name, row in indices.items()} | empty)
        members_by_subscription: dict[tuple[str, ...], list[int]] = {}
        for index, member in enumerate(self.members):
            members_by_subscription.setdefault(member.subscription, []).append(index)
        parts: dict[str, list[tuple[int, ...]]] = {name: [] for name in names}
        for subscription, rows in members_by_subscription.items():
            part = tuple(rows)
            for topic in subscription:
                if topic in parts:
                    parts[topic].append(part)
        return MappingProxyType({name: _merged(lists) for name, lists in parts.items()} | empty)

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
    @cached
    def has_copies(self) -> bool:
        """Return whether partitions have several members or state, or members hold partitions."""
        return any(topic.copies is not None or topic.is_stateful for topic in self.topics) or any(
            len(member.holds) for member in self.members
        )

    @property
    def uniform_weight(self) -> int | None:
        """Return the weight of all partitions, or None if weights or speeds differ."""
        return self.common_weight if self.has_equal_speeds else None

    def __repr__(self) -> str:
        return f"<{self._caption()}>"

    def _repr_html_(self) -> str:
        """Return an HTML table of subscriptions and owned partitions, for notebooks."""
        rows = ((m.id, m.subscription, m.owned) for m in self.members)
        return notebook_tables.members_table(self._caption(), rows)

    def _caption(self) -> str:
        return (
            f"group {self.id or 'without a name'}: {len(self.members)} members, "
            f"{len(self.topics)} topics, {self.partition_count} "
            f"{'weighted ' if self.is_weighted else ''}partitions"
        )


def _merged(parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    return parts[0] if len(parts) == 1 else tuple(sorted(chain.from_iterable(parts)))


@cached
def topic_starts(group: Group) -> TopicStarts:
    """Return the position of the first partition of each topic in a list of all partitions."""
    return TopicStarts({topic.name: topic.partitions for topic in group.topics})
