"""Port of the broker's ``UniformAssignor`` (KIP-848).

Upstream: org.apache.kafka.coordinator.group.assignor.UniformAssignor, group-coordinator
4.4.0.
"""

from kassay.reference.assignors.broker import uniform_heterogeneous, uniform_homogeneous
from kassay.reference.assignors.broker.rebalance_input import group_spec, member_assignments
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, cached


def assign(group: Group) -> Assignment:
    """Balance the number of partitions per member; keep owned partitions if possible."""
    return _assign(group, prefer_current_owner=True)


def assign_4_0(group: Group) -> Assignment:
    """Assign like Kafka 4.0, which can move partitions of a balanced group (KAFKA-18688)."""
    return _assign(group, prefer_current_owner=False)


def _assign(group: Group, *, prefer_current_owner: bool) -> Assignment:
    spec = group_spec(group)
    if not spec.members:
        return Assignment({})
    if spec.homogeneous:
        builder = uniform_homogeneous.UniformHomogeneousAssignmentBuilder(
            spec, member_assignments(group), prefer_current_owner
        )
        return builder.build()
    return _assign_heterogeneous(group)


@cached  # Equal in both versions.
def _assign_heterogeneous(group: Group) -> Assignment:
    builder = uniform_heterogeneous.UniformHeterogeneousAssignmentBuilder(
        group_spec(group), member_assignments(group)
    )
    return builder.build()
