"""Uniform algorithm for heterogeneous groups.

Upstream: org.apache.kafka.coordinator.group.assignor.UniformHeterogeneousAssignmentBuilder,
group-coordinator 4.4.0. Methods keep upstream's names and order; members are indices in
the order of the coordinator's hash map.
"""

import uuid

from kassay.reference.assignors.broker.member_assignment_balancer import MemberAssignmentBalancer
from kassay.reference.assignors.broker.rebalance_input import (
    GroupSpec,
    Target,
    deep_copy_assignment,
    partition_set,
    remove_partition,
)
from kassay.reference.java.hash_map import capacity_for
from kassay.reference.java.strings import uuid_key
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import UpstreamError

MAX_ITERATION_COUNT = 16
NO_OWNER = -1


class UniformHeterogeneousAssignmentBuilder:
    """One run of the algorithm."""

    def __init__(self, group_spec: GroupSpec) -> None:
        self.group_spec = group_spec
        self.member_ids = list(group_spec.members)
        self.topic_subscribers: dict[uuid.UUID, list[int]] = {}
        for index, member in enumerate(self.member_ids):
            for topic in group_spec.subscribed[member]:
                self.topic_subscribers.setdefault(topic, []).append(index)
        self.target_assignment: dict[str, Target] = {}
        self.sizes = [0] * len(self.member_ids)
        self.owners = {
            topic: [NO_OWNER] * group_spec.num_partitions(topic) for topic in self.topic_subscribers
        }

    def build(self) -> Assignment:
        """Return the new assignment."""
        if self.topic_subscribers:
            self._maybe_revoke_partitions()
            self._assign_remaining_partitions()
            self._balance()
        return self.group_spec.named({m: t.items() for m, t in self.target_assignment.items()})

    def _sort_topic_ids(self) -> list[uuid.UUID]:
        """Sort by partitions per subscriber (descending), subscribers, and id."""

        def key(topic: uuid.UUID) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.topic_subscribers[topic])
            return (-(len(self.owners[topic]) / subscribers), subscribers, uuid_key(topic))

        return sorted(self.topic_subscribers, key=key)

    def _maybe_revoke_partitions(self) -> None:
        for index, member in enumerate(self.member_ids):
            old = self.group_spec.assigned[member]
            subscribed = frozenset(self.group_spec.subscribed[member])
            new = old
            for topic, numbers in old.items():
                if topic not in subscribed:
                    new = deep_copy_assignment(old) if new is old else new
                    new.remove(topic)
                    continue
                self.sizes[index] += len(numbers)
                for number in numbers:
                    if number >= len(self.owners[topic]):
                        raise UpstreamError(
                            "ArrayIndexOutOfBoundsException",
                            f"{member!r} owns partition {number} of a topic with "
                            f"{len(self.owners[topic])} partitions",
                        )
                    self.owners[topic][number] = index
            self.target_assignment[member] = new

    def _assign_remaining_partitions(self) -> None:
        """Assign the unassigned partitions of each topic to its least loaded subscribers."""
        for topic in self._sort_topic_ids():
            unassigned = [n for n, owner in enumerate(self.owners[topic]) if owner == NO_OWNER]
            if unassigned:
                balancer = MemberAssignmentBalancer(self.sizes, self.topic_subscribers[topic])
                for number in unassigned:
                    self._assign_partition(topic, number, balancer.next_least_loaded_member())

    def _balance(self) -> None:
        """Balance the topics in turn until a full round changes nothing, at most 16 rounds."""
        topics = [t for t in self._sort_topic_ids() if len(self.topic_subscribers[t]) >= 2]
        last_rebalanced = -1
        for _ in range(MAX_ITERATION_COUNT):
            for index, topic in enumerate(topics):
                if index == last_rebalanced:
                    return
                if self._balance_topic(topic) > 0 or last_rebalanced == -1:
                    last_rebalanced = index

    def _balance_topic(self, topic: uuid.UUID) -> int:
        """Move partitions from most to least loaded subscribers; return the number of moves."""
        owners = self.owners[topic]
        balancer = MemberAssignmentBalancer(self.sizes, self.topic_subscribers[topic])
        if balancer.imbalance <= 1:
            return 0
        partitions_of: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            partitions_of.setdefault(owner, []).append(number)
        reassigned = 0
        while not balancer.is_balanced():
            most_loaded = balancer.next_most_loaded_member()
            while most_loaded != NO_OWNER and not partitions_of.get(most_loaded):
                balancer.exclude_most_loaded_member()
                most_loaded = balancer.next_most_loaded_member()
            if most_loaded == NO_OWNER:
                break
            number = partitions_of[most_loaded].pop()
            least_loaded = balancer.next_least_loaded_member()
            if balancer.is_balanced():
                break
            self._assign_partition(topic, number, least_loaded)
            reassigned += 1
        return reassigned

    def _assign_partition(self, topic: uuid.UUID, number: int, member: int) -> None:
        owner = self.owners[topic][number]
        if owner != NO_OWNER:
            self._remove_partition_from_target_assignment(topic, number, owner)
        target = self._mutable_target(member)
        subscribers = len(self.topic_subscribers[topic])
        estimate = (len(self.owners[topic]) + subscribers - 1) // subscribers
        target.compute_if_absent(
            topic, lambda _: partition_set(capacity=capacity_for(estimate))
        ).put(number, None)
        self.owners[topic][number] = member
        self.sizes[member] += 1

    def _remove_partition_from_target_assignment(
        self, topic: uuid.UUID, number: int, member: int
    ) -> None:
        remove_partition(self._mutable_target(member), topic, number)
        self.sizes[member] -= 1

    def _mutable_target(self, index: int) -> Target:
        """Return a member's partitions, copied before the first change."""
        member = self.member_ids[index]
        target = self.target_assignment[member]
        if target is self.group_spec.assigned[member]:
            target = self.target_assignment[member] = deep_copy_assignment(target)
        return target
