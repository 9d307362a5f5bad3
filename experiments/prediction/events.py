"""Events of a group: restarts, other numbers of members, failures, topics, subscriptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.prediction.configuration import Configuration
from kassay.experiments.simulation.script import ScriptEvent, TopicPlan


class Order(StrEnum):
    """Order in which the members of a group restart."""

    NAMES = "names"  # ordinals ascending; members without different names in random order
    REVERSED = "reversed"  # ordinals descending, as a StatefulSet does
    RANDOM = "random"  # as a Deployment does


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a group.

    ``at`` is its time in seconds from the start. By default, it begins when the group has settled
    after the event before it.
    """

    at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart(Event):
    """Restart of all members, some at a time; with ``to``, into another configuration.

    ``downtime`` is the time without a process in seconds, ``pause`` the time from the start of the
    members of one batch to the stop of the next.
    """

    to: Configuration | None = None
    at_once: int = 1
    downtime: float = 10.0
    pause: float = 30.0
    order: Order = Order.NAMES

    def __str__(self) -> str:
        """Describe the event."""
        if self.to is None:
            return "rolling restart"
        static = ", static members" if self.to.is_static else ""
        return f"rolling restart to {' and '.join(self.to.assignors)}{static}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTo(Event):
    """Change of the number of members.

    Added members continue the ordinals of the names, and subscribe to all consumed topics, or to
    those of the member ``like``. The members with the highest ordinals leave first.
    """

    members: int
    like: str | None = None

    def __str__(self) -> str:
        """Describe the event."""
        return f"{self.members} members"


@dataclass(frozen=True, slots=True, kw_only=True)
class _MembersEvent(Event):
    """Event of some members at the same time."""

    members: tuple[str, ...]

    def __str__(self) -> str:
        """Describe the event."""
        return f"{', '.join(self.members)} {type(self).__name__.lower()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(_MembersEvent):
    """Restart of some members at the same time."""

    downtime: float = 10.0

    def __str__(self) -> str:
        """Describe the event."""
        return f"restart of {', '.join(self.members)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance(Event):
    """Rebalance that the leader of a classic group requests, such as by ``enforceRebalance()``."""

    def __str__(self) -> str:
        """Describe the event."""
        return "rebalance"


class Leave(_MembersEvent):
    """Orderly end of some members, without a restart."""

    __slots__ = ()


class Crash(_MembersEvent):
    """End of some processes that do not leave the group."""

    __slots__ = ()


class Return(_MembersEvent):
    """Start of members that left or crashed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions(Event):
    """Increase of the partition count of a topic."""

    topic: str
    partitions: int

    def __str__(self) -> str:
        """Describe the event."""
        return f"{self.topic} grows to {self.partitions} partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic(Event):
    """New topic, to which some members subscribe in addition; by default all members."""

    topic: str
    partitions: int
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describe the event."""
        return f"new topic {self.topic} with {self.partitions} partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(Event):
    """Change of the subscription of some members at the same time."""

    members: tuple[str, ...]
    topics: tuple[str, ...]

    def __str__(self) -> str:
        """Describe the event."""
        return f"{', '.join(self.members)} subscribe to {', '.join(self.topics)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Event):
    """Events of a simulation script, which share one time. It uses the times of the script."""

    events: Sequence[ScriptEvent]
    text: str
    topics: Sequence[TopicPlan] = ()  # new topics

    def __str__(self) -> str:
        """Describe the event."""
        return self.text
