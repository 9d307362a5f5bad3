"""Script of a simulation: topics, members, settings and timed events.

All times are in milliseconds, all rates in messages per second.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from kassay.reference.coordinator.runtime import CoordinatorConfig


class Action(StrEnum):
    """Kind of a timed event in a simulation script."""

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
    """Topic that a simulation script defines.

    ``rate`` is in messages per second and partition.
    """

    name: str
    partitions: int
    rate: int = 0
    id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """Consumer that a simulation script defines."""

    id: str  # client.id; for a static member also group.instance.id
    topics: tuple[str, ...]
    static: bool = False
    rack: str | None = None
    rate: int | None = None  # maximum rate of processing; None for no limit
    assignment_time: int = 0  # duration of an assignment when this member leads
    start_at: int = 0  # time of its first start
    assignors: tuple[str, ...] = ()  # supported assignors in order; empty for that of the policy
    library: str | None = None  # client library, LIBRARY[@VERSION]; None for that of the policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """A timed event of a simulation script.

    ``action`` determines which other fields are used.
    """

    at: int
    action: Action
    member: str = ""
    duration: int = 0  # downtime of a restart or fail-over, length of a stall or freeze
    topics: tuple[str, ...] = ()  # new subscription of the member
    topic: str = ""  # topic that grows
    partitions: int = 0  # its new partition count
    # Member that joins, or configuration with which a member restarts if it changes.
    new_member: MemberPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Client settings of a simulation, with Kafka's default values.

    Some settings exist only in the simulation.
    """

    session: int = 45_000  # session.timeout.ms
    heartbeat: int = 3_000  # heartbeat.interval.ms
    max_poll: int = 300_000  # max.poll.interval.ms, which is also the rebalance timeout
    latency: int = 5  # time from a request to its response
    jitter: int = 0  # maximum random addition to the latency
    backoff: int = 100  # delay before a request that reached no coordinator is repeated
    drift: int = 100  # maximum delay of a heartbeat: the wake-up interval of its thread
    poll: int = 500  # time between two polls; a consumer joins a rebalance at its next poll
    commit: int = 5_000  # auto.commit.interval.ms
    metadata: int = 300_000  # time until leader or broker detects that a topic has grown


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Simulation script: topics, members, timed events, policies and settings.

    ``policies`` are names from `policies.POLICIES`.
    """

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
        """Return the time of the first event, from which costs are measured."""
        return min((event.at for event in self.events), default=0)
