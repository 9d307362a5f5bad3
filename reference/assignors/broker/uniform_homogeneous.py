"""The uniform algorithm for groups whose members all subscribe to the same topics.

Upstream: org.apache.kafka.coordinator.group.assignor.UniformHomogeneousAssignmentBuilder,
group-coordinator 4.4.0. Methods keep upstream's names and order.
"""

import uuid

from kassay.reference.assignors.broker.rebalance_input import (
    GroupSpec,
    Target,
    deep_copy_assignment,
    partition_set,
)
from kassay.reference.java.hash_map import set_capacity, uuid_map
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError


class UniformHomogeneousAssignmentBuilder:
    """One run of the algorithm.

    Parameters
    ----------
    group_spec
        The group.
    extra_partition_may_wait
        Whether a member that has no partition beyond the least leaves the right to one to
        a later member that may have it already. So since 4.1 (KAFKA-18688).
    """

    def __init__(self, group_spec: GroupSpec, extra_partition_may_wait: bool) -> None:
        self.group_spec = group_spec
        self.extra_partition_may_wait = extra_partition_may_wait
        first = next(iter(group_spec.members))
        names = len(group_spec.members[first].subscription)
        topics = uuid_map(capacity=set_capacity(names))
        for topic in group_spec.subscribed[first]:
            topics.put(topic, None)
        self.subscribed_topic_ids = dict.fromkeys(topics)
        self.unfilled_members: list[tuple[str, int]] = []
        self.unassigned_partitions: list[tuple[uuid.UUID, int]] = []
        self.target_assignment: dict[str, Target] = {}
        self.minimum_member_quota = 0
        self.remaining_members_to_get_an_extra_partition = 0

    def build(self) -> Assignment:
        """Return the new assignment."""
        if self.subscribed_topic_ids:
            self._compute_unassigned_partitions()
            self._maybe_revoke_partitions()
            self._assign_remaining_partitions()
        return self.group_spec.named({m: t.items() for m, t in self.target_assignment.items()})

    def _compute_unassigned_partitions(self) -> None:
        spec = self.group_spec
        assigned: dict[uuid.UUID, set[int]] = {topic: set() for topic in self.subscribed_topic_ids}
        for target in spec.assigned.values():
            for topic, numbers in target.items():
                if topic in assigned:
                    assigned[topic].update(numbers)
        total = 0
        # In the order of the hash set of topic ids.
        for topic in self.subscribed_topic_ids:
            total += spec.num_partitions(topic)
            for number in range(spec.num_partitions(topic)):
                if number not in assigned[topic]:
                    self.unassigned_partitions.append((topic, number))
        self.minimum_member_quota, self.remaining_members_to_get_an_extra_partition = divmod(
            total, len(spec.members)
        )

    def _maybe_revoke_partitions(self) -> None:
        for index, member in enumerate(self.group_spec.members):
            has_extra = self.remaining_members_to_get_an_extra_partition > 0
            quota = self._keep(member, self.minimum_member_quota + has_extra)
            waiting = len(self.group_spec.members) - index
            if (
                self.extra_partition_may_wait
                and quota > 0
                and has_extra
                and waiting > self.remaining_members_to_get_an_extra_partition
            ):
                quota -= 1
                has_extra = False
            if quota > 0:
                self.unfilled_members.append((member, quota))
            if has_extra:
                self.remaining_members_to_get_an_extra_partition -= 1

    def _keep(self, member: str, quota: int) -> int:
        """Let a member keep what its quota allows and return what is left of that."""
        old = self.group_spec.assigned[member]
        new: Target | None = None
        for topic, numbers in old.items():
            if topic not in self.subscribed_topic_ids:
                new = deep_copy_assignment(old) if new is None else new
                new.remove(topic)
                continue
            if len(numbers) <= quota:
                quota -= len(numbers)
                continue
            # Which ones it keeps hangs on the order of its hash set.
            for number in numbers:
                if quota > 0:
                    quota -= 1
                    continue
                new = deep_copy_assignment(old) if new is None else new
                _remove(new, topic, number)
                self.unassigned_partitions.append((topic, number))
        self.target_assignment[member] = old if new is None else new
        return quota

    def _assign_remaining_partitions(self) -> None:
        unassigned = iter(self.unassigned_partitions)
        for member, quota in self.unfilled_members:
            new = self.target_assignment[member]
            if new is self.group_spec.assigned[member]:
                new = self.target_assignment[member] = deep_copy_assignment(new)
            for _, (topic, number) in zip(range(quota), unassigned, strict=False):
                new.compute_if_absent(topic, lambda _: partition_set()).put(number, None)
        if next(unassigned, None) is not None:
            raise UpstreamError(
                "PartitionAssignorException", "partitions were left without a member"
            )


def _remove(target: Target, topic: uuid.UUID, number: int) -> None:
    numbers = target.get(topic)
    if numbers is not None:
        numbers.remove(number)
        if not len(numbers):
            target.remove(topic)
