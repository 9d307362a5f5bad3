"""Ports of Kafka's assignors by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kassay.reference.assignors.broker import range as server_range
from kassay.reference.assignors.broker import uniform
from kassay.reference.assignors.client import cooperative_sticky, roundrobin, sticky
from kassay.reference.assignors.client import range as range_
from kassay.reference.assignors.legacy import range as legacy_range
from kassay.reference.assignors.legacy import roundrobin as legacy_roundrobin
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import AssignorResult, LivelockError, UpstreamError
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group

__all__ = ["ASSIGNORS", "Assignor", "assign", "run_assignor"]

Assignor = Callable[[Group], Assignment]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        "range": range_.assign,
        "roundrobin": roundrobin.assign,
        "sticky": sticky.assign,
        "cooperative-sticky": cooperative_sticky.assign,
        "uniform": uniform.assign,
        "uniform-4.0": uniform.assign_4_0,
        "server-range": server_range.assign,
        "legacy-range": legacy_range.assign,
        "legacy-roundrobin": legacy_roundrobin.assign,
    }
)
"""The ports by name. ``legacy-`` names belong to the ZooKeeper consumer, ``uniform`` and
``server-range`` to the broker, the others to the clients. ``uniform-4.0`` is the uniform
assignor of 4.0 brokers, which moves partitions of balanced groups (KAFKA-18688)."""


def assign(group: Group, name: str) -> Assignment:
    """Assign partitions with a built-in assignor; the lists are in Kafka's order.

    Raises
    ------
    UsageError
        If the name is unknown.
    UpstreamError
        If Kafka's class throws an exception on this group.
    LivelockError
        If Kafka's class does not terminate.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = tuple(Member(id=m, subscription=("t",)) for m in ("C0", "C1"))
    >>> assign(Group(topics=(Topic(name="t", partitions=3),), members=members), "range").loads()
    {'C0': 2, 'C1': 1}
    """
    return _find(name)(group)


def run_assignor(group: Group, name: str) -> AssignorResult:
    """Assign partitions; return exceptions and non-termination as part of the result.

    Examples
    --------
    >>> run_assignor(Group(topics=(), members=()), "roundrobin").failed
    UpstreamError('IllegalArgumentException', 'the group has no members')
    """
    assignor = _find(name)
    try:
        return AssignorResult(name, assignment=assignor(group))
    except LivelockError as livelock:
        return AssignorResult(name, livelock=livelock)
    except UpstreamError as failure:
        return AssignorResult(name, failed=failure)


def _find(name: str) -> Assignor:
    if name not in ASSIGNORS:
        raise UsageError(f"unknown assignor {name!r}, expected one of {', '.join(ASSIGNORS)}")
    return ASSIGNORS[name]
