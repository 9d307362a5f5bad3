"""Ports of Kafka's assignors by name, for all kinds of groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType

from kassay.reference.assignors import broker, uniform2
from kassay.reference.assignors import zookeeper_consumer as zookeeper
from kassay.reference.assignors.client import range_and_roundrobin, sticky
from kassay.reference.assignors.connect import assign_eagerly, assign_incrementally
from kassay.reference.assignors.share import assign_share_group
from kassay.reference.assignors.streams import assign_application, assign_evenly
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.assignment import Assignment, LivelockError
from kassay.reference.model.errors import UpstreamError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group

Assignor = Callable[[Group], Assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorResult:
    """Result of an assignor: an assignment, a livelock or an exception.

    Exactly one of the first three fields is not None. ``livelock`` is set if the real assignor does
    not terminate, ``failed`` if it throws. Both are texts unless the assignor is a port.
    ``seconds`` is the time of the call in the assignor's process, if the process reports it.
    """

    assignment: Assignment | None = None  # valid or not
    livelock: LivelockError | str | None = None
    failed: UpstreamError | str | None = None
    seconds: float | None = field(default=None, compare=False)

    @property
    def terminated(self) -> bool:
        """Return whether Kafka's assignor terminates, possibly with an exception."""
        return self.livelock is None


class RebalanceProtocol(StrEnum):
    """Rebalance protocol: eager, cooperative (KIP-429) or consumer (KIP-848)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"


class Goal(IntEnum):
    """Aim of an assignor, such as balance and few moves. Reports list assignors by goal.

    The last goal has three parts, in this order: the members get equal numbers of partitions of
    each topic, no transfer of one partition improves the balance, and few partitions move.
    """

    BALANCE_AND_FEW_MOVES = 1
    BALANCE = 2
    BALANCE_PER_TOPIC = 3
    TOPIC_SPREAD_THEN_BALANCE = 4


class Release(IntEnum):
    """Kafka release that contains an assignor. No release contains a preview."""

    NEWEST = 1
    OLDER = 2
    ZOOKEEPER_CONSUMER = 3
    PREVIEW = 4


@dataclass(frozen=True, slots=True)
class Port:
    """Port of a Kafka assignor, with its name, protocol, goal and release.

    Reports and plans select assignors by these properties. A simulation has a policy for each
    port of the newest release, and for each preview.
    """

    name: str
    assign: Assignor
    protocol: RebalanceProtocol
    goal: Goal
    release: Release = Release.NEWEST


_EAGER, _CONSUMER = RebalanceProtocol.EAGER, RebalanceProtocol.CONSUMER
_COOPERATIVE, _ZOOKEEPER = RebalanceProtocol.COOPERATIVE, Release.ZOOKEEPER_CONSUMER
_FEW_MOVES, _PER_TOPIC = Goal.BALANCE_AND_FEW_MOVES, Goal.BALANCE_PER_TOPIC
_PREVIEW, _SPREAD_FIRST = Release.PREVIEW, Goal.TOPIC_SPREAD_THEN_BALANCE
_PORTS = (
    Port("range", range_and_roundrobin.assign_range, _EAGER, _PER_TOPIC),
    Port("roundrobin", range_and_roundrobin.assign_roundrobin, _EAGER, Goal.BALANCE),
    Port("sticky", sticky.assign, _EAGER, _FEW_MOVES),
    Port("cooperative-sticky", sticky.assign_cooperative, _COOPERATIVE, _FEW_MOVES),
    Port("uniform", broker.assign_uniform, _CONSUMER, _FEW_MOVES),
    Port("uniform-4.0", broker.assign_uniform_4_0, _CONSUMER, _FEW_MOVES, Release.OLDER),
    Port("server-range", broker.assign_range, _CONSUMER, _PER_TOPIC),
    Port("legacy-range", zookeeper.assign_range, _EAGER, _PER_TOPIC, _ZOOKEEPER),
    Port("legacy-roundrobin", zookeeper.assign_roundrobin, _EAGER, Goal.BALANCE, _ZOOKEEPER),
    Port("uniform2", uniform2.assign, _CONSUMER, _SPREAD_FIRST, _PREVIEW),
)
ASSIGNORS: Mapping[str, Port] = MappingProxyType({port.name: port for port in _PORTS})
"""The ports by the name that `assign` takes. ``uniform`` and ``server-range`` are those of brokers,
``legacy-…`` those of the ZooKeeper consumer. ``uniform-4.0`` is the uniform assignor of 4.0
brokers, which moves partitions of balanced groups (KAFKA-18688). No release contains ``uniform2``
yet."""

RELEASED_ASSIGNORS = tuple(port.name for port in _PORTS if port.release is not Release.PREVIEW)
"""Names of the assignors of all releases."""
NEWEST_ASSIGNORS = tuple(port.name for port in _PORTS if port.release is Release.NEWEST)
"""Names of the assignors of the newest release."""
DEFAULT_ASSIGNORS = tuple(
    port.name for port in _PORTS if port.release in (Release.NEWEST, Release.OLDER)
)
"""Names of the assignors that comparisons and studies run if no assignor is given."""


def kafka_name(name: str) -> str:
    """Return the name that Kafka uses for the assignor of a port."""
    return name.removeprefix("server-")


def assign(group: Group, name: str) -> Assignment:
    """Assign the partitions of a group with a port of a Kafka assignor.

    The partitions of each member are in Kafka's order. ``cooperative-sticky`` returns the result of
    the first of two rebalances, without the partitions that move; `kassay.compare` runs both.

    Raise UsageError for an unknown name, UpstreamError if Kafka's class throws an exception on this
    group, and LivelockError if it does not terminate.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> members = tuple(Member(id=m, subscription=("t",)) for m in ("C0", "C1"))
    >>> assign(Group(topics=(Topic(name="t", partitions=3),), members=members), "range").counts()
    {'C0': 2, 'C1': 1}
    """
    require_group(group)
    return _find(name).assign(group)


def run_assignor(group: Group, name: str) -> AssignorResult:
    """Run the port with a name. Return its assignment, livelock or exception."""
    port = _find(name)
    try:
        return AssignorResult(assignment=port.assign(group))
    except LivelockError as livelock:
        return AssignorResult(livelock=livelock)
    except UpstreamError as failure:
        return AssignorResult(failed=failure)


def is_cooperative(name: str) -> bool:
    """Return whether ``name`` is a port that uses the cooperative protocol."""
    return name in ASSIGNORS and ASSIGNORS[name].protocol is RebalanceProtocol.COOPERATIVE


def _find(name: str) -> Port:
    if name not in ASSIGNORS:
        raise UsageError(f"unknown assignor {name!r}, expected one of {', '.join(ASSIGNORS)}")
    return ASSIGNORS[name]


@dataclass(frozen=True, slots=True)
class KindPort:
    """Port of an assignor of share groups, Kafka Streams or Kafka Connect."""

    kind: Kind
    assign: Callable[[KindDocument], Mapping[str, object]]


KIND_PORTS = {
    "share": KindPort(Kind.SHARE, assign_share_group),
    "connect-incremental": KindPort(Kind.CONNECT, assign_incrementally),
    "connect-eager": KindPort(Kind.CONNECT, assign_eagerly),
    "streams-high-availability": KindPort(Kind.STREAMS, assign_application),
    "spread": KindPort(Kind.STREAMS_GROUP, assign_evenly),
}
"""Ports of the assignors of other kinds than consumer groups, by name; ``spread`` is a preview."""
