"""What a simulation does: topics, members, settings, and what happens to them when.

All times are in milliseconds, all rates in messages a second.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from kassay.reference.coordinator.config import CoordinatorConfig


class Action(StrEnum):
    """What can happen."""

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
    """A topic, its id if that matters, and the messages a second of each partition."""

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
        Its ``client.id``.
    topics
        What it subscribes to.
    static
        Whether it has its id as ``group.instance.id``.
    rate
        Messages a second that it can take in; None for no limit.
    assigning
        How long its assignor runs when it leads.
    starts
        When it starts.
    """

    id: str
    topics: tuple[str, ...]
    static: bool = False
    rack: str | None = None
    rate: int | None = None
    assigning: int = 0
    starts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """Something that happens; which fields count depends on ``act``.

    Parameters
    ----------
    at
        When.
    act
        What.
    member
        To whom.
    lasts
        For how long: how long a restart keeps the member away, a stall or freeze holds,
        or a group has no coordinator.
    topics
        New subscription.
    topic, partitions
        Topic that grows, and to how many partitions.
    joins
        The new member.
    """

    at: int
    act: Action
    member: str = ""
    lasts: int = 0
    topics: tuple[str, ...] = ()
    topic: str = ""
    partitions: int = 0
    joins: MemberPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of clients, by Kafka's defaults where it has one.

    Parameters
    ----------
    session
        ``session.timeout.ms``.
    heartbeat
        ``heartbeat.interval.ms``.
    max_poll
        ``max.poll.interval.ms``, which is also the rebalance timeout.
    latency
        From a request to its answer.
    jitter
        Most that chance adds to the latency.
    backoff
        Until a request is sent again that met no coordinator.
    drift
        Most by which a heartbeat is late: the thread that sends it looks that often.
    poll
        From one poll to the next. A consumer joins a rebalance at its next poll.
    commit
        ``auto.commit.interval.ms``.
    metadata
        Until the leader, or the broker, notices that a topic has grown.
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
    """One simulation.

    Parameters
    ----------
    name
        What it shows.
    policies
        Names of policies to run it under, see `policies.POLICIES`.
    until
        When it ends.
    seed
        Seed of the jitter.
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
    def begins(self) -> int:
        """The moment of the first event: what was before is start-up and costs nothing."""
        return min((event.at for event in self.events), default=0)
