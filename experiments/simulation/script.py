"""Script of a simulation: topics, members, settings and timed events.

All times are in milliseconds, all rates in messages per second.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from kassay.reference.coordinator.config import CoordinatorConfig


class Action(StrEnum):
    """Kind of an event."""

    JOIN = "join"
    LEAVE = "leave"
    CRASH = "crash"
    RESTART = "restart"
    FREEZE = "freeze"
    STALL = "stall"
    SUBSCRIBE = "subscribe"
    GROW = "grow"
    FAIL_OVER = "fail over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic. ``rate`` is per partition; ``id`` is set if a real cluster assigned one."""

    name: str
    partitions: int
    rate: int = 0
    id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """A consumer.

    Parameters
    ----------
    id
        ``client.id``; for a static member also ``group.instance.id``.
    rate
        Maximum messages per second that it processes; None for no limit.
    assignment_time
        Duration of an assignment when this member leads.
    start_at
        Time of its first start.
    """

    id: str
    topics: tuple[str, ...]
    static: bool = False
    rack: str | None = None
    rate: int | None = None
    assignment_time: int = 0
    start_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """A timed event. ``action`` determines which other fields are used.

    Parameters
    ----------
    duration
        Downtime of a restart or a broker fail-over, or length of a stall or freeze.
    topics
        New subscription of the member.
    topic, partitions
        Topic that grows, and its new partition count.
    new_member
        Member that joins.
    """

    at: int
    action: Action
    member: str = ""
    duration: int = 0
    topics: tuple[str, ...] = ()
    topic: str = ""
    partitions: int = 0
    new_member: MemberPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Client configuration. Kafka's defaults apply where Kafka has the setting.

    Parameters
    ----------
    session
        ``session.timeout.ms``.
    heartbeat
        ``heartbeat.interval.ms``.
    max_poll
        ``max.poll.interval.ms``, which is also the rebalance timeout.
    latency
        Time from a request to its response.
    jitter
        Maximum random addition to the latency.
    backoff
        Delay before a request is repeated that did not reach a coordinator.
    drift
        Maximum delay of a heartbeat: the interval at which the heartbeat thread wakes up.
    poll
        Time between two polls. A consumer joins a rebalance at its next poll.
    commit
        ``auto.commit.interval.ms``.
    metadata
        Time until the leader, or the broker, detects that a topic has grown.
    """

    session: int = 45_000
    heartbeat: int = 3_000
    max_poll: int = 300_000
    latency: int = 5
    jitter: int = 0
    backoff: int = 100
    drift: int = 100
    poll: int = 500
    commit: int = 5_000
    metadata: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One simulation. ``policies`` are names from `policies.POLICIES`."""

    name: str
    topics: tuple[TopicPlan, ...]
    members: tuple[MemberPlan, ...]
    events: tuple[ScriptEvent, ...] = ()
    policies: tuple[str, ...] = ("sticky",)
    until: int = 300_000
    seed: int = 0
    settings: Settings = field(default_factory=Settings)
    broker: CoordinatorConfig = field(default_factory=CoordinatorConfig)

    @property
    def measured_from(self) -> int:
        """Time of the first event. The start-up before it is not measured."""
        return min((event.at for event in self.events), default=0)
