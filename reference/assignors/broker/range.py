"""Port of the broker's ``RangeAssignor`` (KIP-848).

Upstream: org.apache.kafka.coordinator.group.assignor.RangeAssignor, group-coordinator
4.4.0. Functions keep upstream's names and order.
"""

from dataclasses import dataclass

from kassay.reference.assignors.broker.rebalance_input import GroupSpec, TopicId, group_spec
from kassay.reference.java.hash_map import HashMap, capacity_for, uuid_map
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


@dataclass(slots=True)
class _TopicMetadata:
    """Partition and member count of one topic, and the start of its next range."""

    num_partitions: int
    num_members: int = 0
    next_range: int = 0
    num_ranges: int = 0

    def next(self) -> range:
        """Return the range of partitions for the next member."""
        quota, extra = divmod(self.num_partitions, self.num_members)
        start = self.next_range
        self.next_range = min(start + quota + (self.num_ranges < extra), self.num_partitions)
        self.num_ranges += 1
        return range(start, self.next_range)


def assign(group: Group) -> Assignment:
    """Assign each member a range of partitions per subscribed topic, static members first."""
    spec = group_spec(group)
    topics = {topic: _TopicMetadata(spec.num_partitions(topic)) for topic in spec.topics}
    for subscribed in spec.subscribed.values():
        for topic in subscribed:
            topics[topic].num_members += 1
    members = spec.sort_member_ids()
    return spec.named(
        {
            # Tie-break: homogeneous groups use the topic order of the first member.
            member: _add_partitions_to_assignment(
                spec, members[0] if spec.homogeneous else member, topics
            ).items()
            for member in members
        }
    )


def _add_partitions_to_assignment(
    spec: GroupSpec, member: str, topics: dict[TopicId, _TopicMetadata]
) -> HashMap[TopicId, range]:
    subscribed = spec.subscribed[member]
    # Tie-break: the capacity of the map is the number of known topics in homogeneous groups,
    # otherwise the number of all subscribed names.
    names = len(subscribed) if spec.homogeneous else len(spec.members[member].subscription)
    assignment: HashMap[TopicId, range] = uuid_map(capacity=capacity_for(names))
    for topic in subscribed:
        numbers = topics[topic].next()
        if numbers:
            assignment.put(topic, numbers)
    return assignment
