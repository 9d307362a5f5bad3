"""Port of ``SimpleAssignor``, the assignor of share groups.

Upstream: org.apache.kafka.coordinator.group.assignor.SimpleAssignor,
SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder,
kafka-group-coordinator 4.2 to 4.4.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.java_collections import (
    HashMap,
    IntegerSet,
    capacity_for,
    hash_map,
    name_uuid,
    set_capacity,
    signed,
    string_order,
    uuid_hash,
    uuid_map,
)
from kassay.reference.model.errors import UpstreamError

Answer = dict[str, list[tuple[str, int]]]
_Partition = tuple[int, int]  # id of the topic and number of the partition


def assign_share_group(document: KindDocument) -> dict[str, object]:
    """Assign the partitions of a share group. Return sorted partitions per member."""
    content: Any = document.content
    by_id = {member["id"]: member for member in content["members"]}
    members = [by_id[id] for id in string_order(by_id)]
    assignable = {topic: _assignable(value) for topic, value in content["topics"].items()}
    topics = {*assignable, *(topic for one in members for topic, _ in one.get("owned", ()))}
    names = {name_uuid(topic).int: topic for topic in sorted(topics)}
    builder = _Builder(assignable, members, names)
    if len({frozenset(member["topics"]) for member in members}) == 1:
        builder.assign_equal_subscriptions()
    else:
        builder.assign_mixed_subscriptions()
    answer: Answer = {
        member["id"]: sorted((names[topic], number) for topic, number in partitions)
        for member, partitions in zip(members, builder.result, strict=True)
    }
    return {"members": answer}


def _assignable(fields: Any) -> Sequence[int]:
    if isinstance(fields, int):
        return range(fields)
    numbers = fields.get("assignable")
    return range(fields["partitions"]) if numbers is None else sorted(set(numbers))


class _Builder:
    def __init__(
        self,
        assignable: Mapping[str, Sequence[int]],
        members: Sequence[Mapping[str, Any]],
        names: Mapping[int, str],
    ) -> None:
        self.ids = {name: id for id, name in names.items()}
        self.assignable = {self.ids[topic]: list(n) for topic, n in assignable.items()}
        self.subscriptions = [self._topic_set(member["topics"]) for member in members]
        self.owned = [self._owned(member.get("owned", ())) for member in members]
        self.result: list[set[_Partition]] = [
            {(topic, number) for topic, numbers in owned.items() for number in numbers}
            for owned in self.owned
        ]

    def _topic_set(self, topics: Iterable[str]) -> list[int]:
        names = string_order(dict.fromkeys(topics), capacity=set_capacity(len(set(topics))))
        ids = (self.ids[name] for name in names)
        return list(hash_map(ids, uuid_hash, capacity=set_capacity(len(names))))

    def _owned(self, owned: Iterable[tuple[str, int]]) -> HashMap[int, IntegerSet]:
        numbers: dict[int, list[int]] = {}
        for topic, number in owned:
            numbers.setdefault(self.ids[topic], []).append(number)
        target = uuid_map()
        for topic_id, listed in numbers.items():
            target.compute_if_absent(topic_id, lambda _: IntegerSet()).update(iter(listed))
        return target

    def assign_equal_subscriptions(self) -> None:
        subscribed = self.subscriptions[0]
        for kept in self.result:
            kept.intersection_update({tp for tp in kept if tp[0] in subscribed})
        if subscribed:
            targets = [(topic, n) for topic in subscribed for n in self.assignable[topic]]
            self._assign(range(len(self.owned)), subscribed, targets, _partition_hash)

    def assign_mixed_subscriptions(self) -> None:
        for topic in hash_map(chain.from_iterable(self.subscriptions), uuid_hash):
            subscribers = [
                member for member, topics in enumerate(self.subscriptions) if topic in topics
            ]
            targets = [(topic, number) for number in self.assignable[topic]]
            self._assign(subscribers, [topic], targets, lambda partition: partition[1])

    def _assign(  # noqa: C901 - one step per loop
        self,
        subscribers: Sequence[int],
        topics: Collection[int],
        targets: Sequence[_Partition],
        hash_code: Callable[[_Partition], int],
    ) -> None:
        """Keep owned partitions up to each member's quota, then fill the quotas."""
        sharing = -(-len(subscribers) // len(targets)) if targets else 0
        quotas = [0] * len(self.owned)
        each = _quotas(sharing * len(targets), len(subscribers))
        for member, quota in zip(subscribers, each, strict=True):
            quotas[member] = quota
        by_partition: HashMap[_Partition, IntegerSet] = HashMap(
            hash_code, capacity=_capacity(len(targets))
        )
        by_member: dict[int, HashMap[_Partition, None]] = {}
        for member, owned in enumerate(self.owned):
            for topic, numbers in owned.items():
                for number in numbers if topic in topics else ():
                    partition = (topic, number)
                    by_partition.compute_if_absent(partition, lambda _: IntegerSet()).add(member)
                    by_member.setdefault(member, HashMap(hash_code)).put(partition, None)
        for member, own in by_member.items():
            for partition in list(own)[: max(0, len(own) - quotas[member])]:
                by_partition.compute_if_absent(partition, lambda _: IntegerSet()).remove(member)
                own.remove(partition)
                self.result[member].discard(partition)
        for partition, holders in list(by_partition.items()):
            for member in list(holders)[: max(0, len(holders) - sharing)]:
                holders.remove(member)
                by_member[member].remove(partition)
                self.result[member].discard(partition)
        for partition in targets:
            by_partition.compute_if_absent(partition, lambda _: IntegerSet())
        loads = {member: len(own) for member, own in by_member.items()}
        unfilled = IntegerSet(capacity=_capacity(len(self.owned)))
        for member in subscribers:
            if loads.get(member, 0) < quotas[member]:
                unfilled.add(member)
        self._assign_remaining(by_partition.items(), unfilled, sharing, quotas, loads)

    def _assign_remaining(  # noqa: C901 - upstream's loop
        self,
        partitions: Iterable[tuple[_Partition, IntegerSet]],
        unfilled: IntegerSet,
        sharing: int,
        quotas: Sequence[int],
        loads: dict[int, int],
    ) -> None:
        if not len(unfilled):
            return
        circle: Iterator[int] = iter(list(unfilled))
        has_assigned = False
        for partition, holders in partitions:
            # Upstream does not add new members: one member can count twice for a partition.
            present, added = set(holders), set[int]()
            missing = sharing - len(present)
            while missing > 0:
                member = next(circle, None)
                if member is None:
                    if not has_assigned:
                        break
                    circle, has_assigned = iter(list(unfilled)), False
                    member = next(circle, None)
                    if member is None:
                        raise UpstreamError("null", "NoSuchElementException")
                if member in present:
                    continue
                if member not in added:
                    added.add(member)
                    self.result[member].add(partition)
                    loads[member] = loads.get(member, 0) + 1
                missing -= 1
                has_assigned = True
                if loads[member] >= quotas[member]:
                    unfilled.remove(member)
            if not len(unfilled):
                break


def _capacity(size: int) -> int:
    """Return the capacity of a Java hash map that Kafka creates for ``size`` keys."""
    return capacity_for(size + 1)


def _quotas(slots: int, members: int) -> list[int]:
    """Return the maximum number of partitions per member, rounded as in Java."""
    share = slots / members
    ends = [-int(-(share * index) // 1) for index in range(members + 1)]
    return [end - start for start, end in pairwise(ends)]


def _partition_hash(partition: _Partition) -> int:
    topic, number = partition
    return signed(31 * uuid_hash(topic) + number)
