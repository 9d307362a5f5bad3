"""Port of the broker's ``UniformAssignor`` (KIP-848).

Upstream: org.apache.kafka.coordinator.group.assignor.UniformAssignor, group-coordinator
4.4.0.
"""

from kassay.reference.assignors.broker.rebalance_input import group_spec
from kassay.reference.assignors.broker.uniform_heterogeneous import (
    UniformHeterogeneousAssignmentBuilder,
)
from kassay.reference.assignors.broker.uniform_homogeneous import (
    UniformHomogeneousAssignmentBuilder,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.result_cache import cached


def assign(group: Group) -> Assignment:
    """Balance the number of partitions per member with few moves.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = tuple(Member(id=m, subscription=("t",)) for m in ("a", "b"))
    >>> dict(assign(Group(topics=(Topic(name="t", partitions=3),), members=members)))
    {'a': Partitions([t-0]), 'b': Partitions([t-1, t-2])}
    """
    return _assign(group, prefer_current_owner=True)


def assign_4_0(group: Group) -> Assignment:
    """Assign as brokers of 4.0 do, before KAFKA-18688.

    The first members of the map get one partition more if the partitions do not divide
    evenly, so partitions of a balanced group can move.
    """
    return _assign(group, prefer_current_owner=False)


def _assign(group: Group, *, prefer_current_owner: bool) -> Assignment:
    spec = group_spec(group)
    if not spec.members:
        return Assignment({})
    if spec.homogeneous:
        homogeneous = UniformHomogeneousAssignmentBuilder(spec, prefer_current_owner)
        return homogeneous.build()
    # Equal in both versions.
    return _assign_heterogeneous(group)


@cached
def _assign_heterogeneous(group: Group) -> Assignment:
    return UniformHeterogeneousAssignmentBuilder(group_spec(group)).build()
