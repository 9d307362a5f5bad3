"""Every assignor that Kafka has had, by the name Kafka's configuration gives it."""

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
from kassay.reference.model.group import Group

__all__ = ["ASSIGNORS", "Assignor", "assign", "attempt"]

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
"""The ports by name. ``legacy-`` ones are the ZooKeeper consumer's, ``uniform`` and
``server-range`` the broker's, the others the clients'. ``uniform-4.0`` is the uniform
assignor of brokers of 4.0, which moves partitions of balanced groups (KAFKA-18688)."""


def assign(group: Group, name: str) -> Assignment:
    """Assign as Kafka's assignor of that name does, partition lists in its order.

    Parameters
    ----------
    group
        The rebalance.
    name
        One of `ASSIGNORS`.

    Raises
    ------
    KeyError
        If there is no assignor of that name.
    UpstreamFailure
        If the real class throws an exception on this group.
    Livelock
        If the real class would never return.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = tuple(Member(id=m, subscription=("t",)) for m in ("C0", "C1"))
    >>> assign(Group(topics=(Topic(name="t", partitions=3),), members=members), "range").loads()
    {'C0': 2, 'C1': 1}
    """
    return _named(name)(group)


def run_assignor(group: Group, name: str) -> AssignorResult:
    """Assign as `assign` does, and tell an exception or a loop without end as data.

    Parameters
    ----------
    group
        The rebalance.
    name
        One of `ASSIGNORS`.

    Raises
    ------
    KeyError
        If there is no assignor of that name.

    Examples
    --------
    >>> run_assignor(Group(topics=(), members=()), "roundrobin").failed
    UpstreamError('IllegalArgumentException', 'a group without members has no circle')
    """
    assignor = _named(name)
    try:
        return AssignorResult(name, assignment=assignor(group))
    except LivelockError as livelock:
        return AssignorResult(name, livelock=livelock)
    except UpstreamError as failure:
        return AssignorResult(name, failed=failure)


def _named(name: str) -> Assignor:
    if name not in ASSIGNORS:
        raise KeyError(f"no assignor {name!r}; there are {', '.join(ASSIGNORS)}")
    return ASSIGNORS[name]
