"""Uniform algorithm for homogeneous groups.

Upstream: org.apache.kafka.coordinator.group.assignor.UniformHomogeneousAssignmentBuilder,
group-coordinator 4.4.0. Methods keep upstream's names and order.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from kassay.reference.assignors.broker.rebalance_input import (
    GroupSpec,
    Owned,
    Target,
    TopicId,
    deep_copy_assignment,
    mutable_copy,
    mutable_numbers,
    remove_partition,
)
from kassay.reference.java.hash_map import set_capacity, uuid_map
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError


class UniformHomogeneousAssignmentBuilder:
    """State of one run of the uniform algorithm for equal subscriptions.

    With ``prefer_current_owner`` (4.1 and later, KAFKA-18688), a member without an extra
    partition leaves it to a later member that may own one already.
    """

    def __init__(
        self, group_spec: GroupSpec, assigned: Mapping[str, Owned], prefer_current_owner: bool
    ) -> None:
        self.group_spec = group_spec
        self.assigned = assigned
        self.prefer_current_owner = prefer_current_owner
        first = next(iter(group_spec.members))
        topics = uuid_map(capacity=set_capacity(len(group_spec.members[first].subscription)))
        for topic in group_spec.subscribed[first]:
            topics.put(topic, None)
        self.subscribed_topic_ids = dict.fromkeys(topics)
        self.unfilled_members: list[tuple[str, int]] = []
        self.unassigned_partitions: deque[tuple[TopicId, Sequence[int]]] = deque()
        self.target_assignment: dict[str, Owned | Target] = {}
        self.minimum_member_quota = 0
        self.remaining_members_to_get_an_extra_partition = 0

    def build(self) -> Assignment:
        """Compute the new target assignment of the group."""
        if self.subscribed_topic_ids:
            self._compute_unassigned_partitions()
            self._maybe_revoke_partitions()
            self._assign_remaining_partitions()
        return self.group_spec.named(self.target_assignment)

    def _compute_unassigned_partitions(self) -> None:
        spec = self.group_spec
        # Tie-break: topics are in the order of the hash set of their ids.
        for topic in self.subscribed_topic_ids:
            if free := spec.free_partitions(topic):
                self.unassigned_partitions.append((topic, free))
        total = sum(map(spec.num_partitions, self.subscribed_topic_ids))
        self.minimum_member_quota, self.remaining_members_to_get_an_extra_partition = divmod(
            total, len(spec.members)
        )

    def _maybe_revoke_partitions(self) -> None:
        for index, member in enumerate(self.group_spec.members):
            has_extra = self.remaining_members_to_get_an_extra_partition > 0
            quota = self._keep(member, self.minimum_member_quota + has_extra)
            remaining = len(self.group_spec.members) - index
            if (
                self.prefer_current_owner
                and quota > 0
                and has_extra
                and remaining > self.remaining_members_to_get_an_extra_partition
            ):
                quota -= 1
                has_extra = False
            if quota > 0:
                self.unfilled_members.append((member, quota))
            if has_extra:
                self.remaining_members_to_get_an_extra_partition -= 1

    def _keep(self, member: str, quota: int) -> int:
        """Keep a member's owned partitions up to its quota, and return the unused quota."""
        old = self.assigned[member]
        new: Target | None = None
        for topic, numbers in old.items():
            if topic not in self.subscribed_topic_ids:
                new = deep_copy_assignment(old) if new is None else new
                new.remove(topic)
                continue
            if (size := len(numbers)) <= quota:
                quota -= size
                continue
            # Tie-break: the member keeps the first partitions in the order of its hash set.
            for number in numbers:
                if quota > 0:
                    quota -= 1
                    continue
                new = deep_copy_assignment(old) if new is None else new
                remove_partition(new, topic, number)
                self.unassigned_partitions.append((topic, (number,)))
        self.target_assignment[member] = old if new is None else new
        return quota

    def _assign_remaining_partitions(self) -> None:
        unassigned = self.unassigned_partitions
        for member, quota in self.unfilled_members:
            new = self.target_assignment[member] = mutable_copy(self.target_assignment[member])
            missing = quota
            while missing > 0 and unassigned:
                topic, numbers = unassigned.popleft()
                assigned = numbers[:missing]
                # Tie-break: each partition is a look-up; the second one can resize the map.
                for _ in assigned[:2]:
                    target = mutable_numbers(new, topic)
                target.update(assigned)
                if len(numbers) > missing:
                    unassigned.appendleft((topic, numbers[missing:]))
                missing -= len(numbers)
        if unassigned:
            raise UpstreamError("PartitionAssignorException", "partitions remain without a member")
