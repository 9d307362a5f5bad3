"""Describe the configuration and the events that a prediction simulates."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from kassay.experiments.simulation.assignor_policies import POLICIES, Policy, policy_named
from kassay.experiments.simulation.script import ScriptEvent, TopicPlan
from kassay.reference.assignors import ASSIGNORS, RebalanceProtocol
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group

_BATCHING_SINCE = (4, 3)
"""First release of the broker with ``consumer.assignment.interval.ms`` (KIP-1263)."""
_RELEASE = re.compile(r"(\d+)\.(\d+)(\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Delays of idle and of busy consumers, as pairs of milliseconds.

    Each sample uses delays between the two of a pair. The defaults fit idle to saturated machines.

    Parameters
    ----------
    latency
        Minimum time from a request to its response. Some responses take up to five times this
        time plus 1 ms, so that a member can miss an assignment of a cooperative group.
    poll
        Maximum time until a consumer calls ``poll``, which joins a rebalance and revokes
        partitions: the time in which it processes the records of one poll.
    drift
        Maximum delay of a heartbeat.
    spread
        Maximum difference between the heartbeat times of the members at the start. After a
        rebalance, members send heartbeats at the same time; drift separates them over hours.
    start_up
        Time from the start of a process to its first request.
    """

    latency: tuple[int, int] = (0, 10)
    poll: tuple[int, int] = (2, 1_200)
    drift: tuple[int, int] = (1, 100)
    spread: tuple[int, int] = (1, 3_000)
    start_up: tuple[int, int] = (200, 500)

    def __post_init__(self) -> None:
        for name in ("latency", "poll", "drift", "spread", "start_up"):
            idle, busy = getattr(self, name)
            if not 0 <= idle <= busy:
                raise UsageError(f"{name} must be two ascending times in ms, got {idle} and {busy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Configuration of the members of a group, and of its broker. Times are in seconds.

    Parameters
    ----------
    assignor
        Name of a port, or of an assignor of an installed library, such as
        ``librdkafka:cooperative-sticky``. An assignor of the broker means the consumer protocol.
    listed
        All assignors that the members list, in order; by default ``assignor`` alone.
    is_static
        Whether members have a ``group.instance.id``; None keeps the current state of each member.
    session_timeout
        ``session.timeout.ms`` and ``group.consumer.session.timeout.ms``.
    broker
        Release of the broker. Since 4.3, it computes assignments of the consumer protocol at most
        once per ``assignment_interval``.
    leaves_on_close
        Whether members leave the group when they are closed. Static members never leave then.
    sends_user_data
        Whether assignments of cooperative-sticky contain user data, because of which the broker
        refuses a change to the consumer protocol. None: true if the library is librdkafka.
    """

    assignor: str
    listed: tuple[str, ...] = ()
    is_static: bool | None = None
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    consumer_heartbeat_interval: float = 5.0
    max_poll_interval: float = 300.0
    metadata_max_age: float = 300.0
    broker: str = "4.4"
    assignment_interval: float = 1.0
    leaves_on_close: bool = True
    sends_user_data: bool | None = None
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        if not _RELEASE.fullmatch(self.broker):
            raise UsageError(f"broker must be a release such as 4.4 or 4.3.1, got {self.broker!r}")
        for name in ("session_timeout", "heartbeat_interval", "consumer_heartbeat_interval"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above 0 seconds, got {getattr(self, name):g}")
        for name in ("max_poll_interval", "metadata_max_age", "assignment_interval"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must be at least 0 seconds, got {getattr(self, name):g}")

    @classmethod
    def of(
        cls, group: Group, assignor: str | None = None, *, option: str = "--current NAME"
    ) -> "Configuration":
        """Return the current configuration of a group, according to its source.

        ``assignor`` is used if the source shows none. Raise InputError if both are missing. The
        error names ``option``, which sets the assignor.
        """
        name = group.status.registered_assignor or assignor
        if name is None:
            raise InputError(f"{group.label}: the source does not show the assignor; give {option}")
        if name not in POLICIES and ":" not in name:
            known = ", ".join(one for one in POLICIES if one in ASSIGNORS)
            raise InputError(
                f"{group.label}: kassay cannot simulate the assignor {name!r}; choose from {known}"
            )
        return cls(assignor=name)

    @property
    def policy(self) -> Policy:
        """Return the assignor and its rebalance protocol as a policy of simulations."""
        return policy_named(self.assignor)

    @property
    def is_consumer_protocol(self) -> bool:
        """Return whether the members use the consumer protocol."""
        return self.policy.protocol is RebalanceProtocol.CONSUMER

    @property
    def assignors(self) -> tuple[str, ...]:
        """Return the assignors that each member lists, in order of preference."""
        return self.listed or (self.assignor,)

    @property
    def batching_ms(self) -> int:
        """Return the minimum time in ms between two assignments by the broker."""
        major, minor = self.broker.split(".")[:2]
        is_batching = (int(major), int(minor)) >= _BATCHING_SINCE
        return round(1000 * self.assignment_interval) if is_batching else 0

    def steps_to(self, target: str) -> "list[Configuration]":
        """Return one configuration per rolling restart of a change to the assignor ``target``."""
        own = None if self.assignor == target else self.assignor
        return [
            replace(self, assignor=names[0], listed=names)
            for names in rolling_restarts(own, target)
        ]


def rolling_restarts(own: str | None, target: str) -> tuple[tuple[str, ...], ...]:
    """Return, for each rolling restart of a change, the assignors that members then list.

    A change of the protocol takes one restart. A change to an eager assignor takes one restart:
    members then list it before the current one. A cooperative assignor takes a second restart,
    because members that also list an eager assignor use the eager protocol.

    Examples
    --------
    >>> rolling_restarts("range", "sticky")
    (('sticky', 'range'),)
    >>> rolling_restarts("range", "cooperative-sticky")
    (('cooperative-sticky', 'range'), ('cooperative-sticky',))
    """
    modern = RebalanceProtocol.CONSUMER
    own_protocol, protocol = map(_protocol_of, (own, target))
    if own == target or modern in (protocol, own_protocol):
        return ((target,),)
    first = (target,) if own is None else (target, own)
    return (first, (target,)) if protocol is RebalanceProtocol.COOPERATIVE else (first,)


def _protocol_of(name: str | None) -> RebalanceProtocol | None:
    if name is not None and ":" in name:
        return policy_named(name).protocol
    port = ASSIGNORS.get(name or "")
    return None if port is None else port.protocol


class Order(StrEnum):
    """Order in which the members of a group restart."""

    NAMES = "names"  # ordinals ascending; members without different names in random order
    REVERSED = "reversed"  # ordinals descending, as a StatefulSet does
    RANDOM = "random"  # as a Deployment does


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base class of all events that a prediction simulates.

    ``at`` is the time of the event in seconds from the start of the prediction, at least 0. By
    default, it begins when the group is stable after the previous event. ``members`` are names: the
    ``group.instance.id``, the ``client.id`` if no other member has it, or the member id.
    """

    at: float | None = None

    def __post_init__(self) -> None:
        if self.at is not None and not 0 <= self.at < inf:
            raise UsageError(f"at must be at least 0 seconds, got {self.at!r}")
        for name in ("members", "topics"):
            value = getattr(self, name, None)
            if isinstance(value, str):
                raise UsageError(f"{name} must be a list, got the string {value!r}")
        if isinstance(self, _MembersEvent) and not self.members:
            raise UsageError("members must have at least one name, got an empty list")


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart(Event):
    """Event that restarts all members, ``at_once`` members at a time.

    ``to`` is their new configuration. ``downtime`` is the time in seconds without a process,
    ``pause`` the time in seconds from the start of some members to the stop of the next ones.
    """

    to: Configuration | None = None
    at_once: int = 1
    downtime: float = 10.0
    pause: float = 30.0
    order: Order = Order.NAMES

    def __str__(self) -> str:
        if self.to is None:
            return "rolling restart"
        static = ", static members" if self.to.is_static else ""
        return f"rolling restart to {' and '.join(self.to.assignors)}{static}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTo(Event):
    """Event that changes the number of members.

    The names of added members have the next ordinals. Added members subscribe to all consumed
    topics, or to those of the member ``like``. Members with the highest ordinals leave first.
    """

    members: int
    like: str | None = None

    def __str__(self) -> str:
        return count_of(self.members, "member")


@dataclass(frozen=True, slots=True, kw_only=True)
class _MembersEvent(Event):
    """Base class of events that affect several members at the same time."""

    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.members)} {type(self).__name__.lower()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(_MembersEvent):
    """Event that stops some members and starts them ``downtime`` seconds later."""

    downtime: float = 10.0

    def __str__(self) -> str:
        after = "" if self.downtime <= 10 else f" after {self.downtime:g} s"
        return f"restart of {', '.join(self.members)}{after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance(Event):
    """Event in which the leader of a classic group calls ``enforceRebalance``."""

    def __str__(self) -> str:
        return "rebalance"


class Leave(_MembersEvent):
    """Event in which members leave the group in the given order and do not restart."""

    __slots__ = ()


class Crash(_MembersEvent):
    """Event in which processes of members end without leaving the group."""

    __slots__ = ()


class Return(_MembersEvent):
    """Event in which members that left or crashed start again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions(Event):
    """Event that increases the partition count of a topic to ``partitions``."""

    topic: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.topic} grows to {count_of(self.partitions, 'partition')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic(Event):
    """Event that creates a topic. ``members`` subscribe to it; if empty, all members do."""

    topic: str
    partitions: int
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"new topic {self.topic} with {count_of(self.partitions, 'partition')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(_MembersEvent):
    """Event that changes the subscription of some members to ``topics``."""

    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.members)} subscribe to {', '.join(self.topics)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Event):
    """Event that applies the events of a simulation script."""

    events: Sequence[ScriptEvent]
    text: str
    topics: Sequence[TopicPlan] = ()  # new topics

    def __str__(self) -> str:
        return self.text
