"""Group of the consumer protocol: members, target assignment, and their log records."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from kassay.reference.coordinator.consumer.reconciliation import (
    NONE,
    ConsumerMember,
    MemberState,
    PartitionSet,
)
from kassay.reference.coordinator.log import Log
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol import consumer_records as records
from kassay.reference.protocol.classic_records import OffsetCommit
from kassay.reference.protocol.record_codec import Fields, decode
from kassay.reference.protocol.record_schemas import RecordType


class ConsumerGroupState(StrEnum):
    """State of a group of the consumer protocol, derived from epochs and members."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """Members, target assignment and offsets of one group. Every change is logged."""

    def __init__(self, group_id: str, topics: Iterable[Topic], log: Log) -> None:
        self.id = group_id
        self.topics = {topic.name: topic for topic in topics}
        self.epoch = 1  # Epoch 0 in a heartbeat means join.
        self.metadata_hash = 0
        self.target_epoch = 0
        self.target_assigned_at: int | None = None
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Partitions] = {}
        self._target_sets: dict[str, tuple[Partitions, PartitionSet]] = {}
        self.offsets: dict[TopicPartition, int] = {}
        self.static_members: dict[str, str] = {}
        self._owners: dict[TopicPartition, str] = {}
        self._log = log

    @property
    def state(self) -> ConsumerGroupState:
        """Return the state of the group."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_owned(self, partition: TopicPartition) -> bool:
        """Return whether a member owns the partition or still has to revoke it."""
        return partition in self._owners

    def find(self, member_id: str, instance_id: str | None) -> ConsumerMember | None:
        """Find a member by instance id if one is given, otherwise by member id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.members.get(member_id)

    def target_of(self, member_id: str) -> PartitionSet:
        """Return the target assignment of a member as a set."""
        target = self.target.get(member_id, NO_PARTITIONS)
        cached = self._target_sets.get(member_id)
        if cached is None or cached[0] is not target:
            cached = self._target_sets[member_id] = (target, frozenset(target))
        return cached[1]

    def assignor_input(self) -> Group:
        """Build the input of the assignor, with the last target assignment as owned partitions."""
        members = tuple(
            Member(
                id=member.id,
                subscription=member.subscription,
                owned=self.target.get(member.id, NO_PARTITIONS),
                generation=self.target_epoch if member.id in self.target else NO_GENERATION,
                instance_id=member.instance_id,
                rack=member.rack,
            )
            for member in self.members.values()
        )
        return Group(topics=tuple(self.topics.values()), members=members, id=self.id)

    # ---- Logged changes -------------------------------------------------------------

    def bump_epoch(self) -> None:
        """Increase the group epoch, so that a new target assignment is computed."""
        self.epoch += 1
        self.metadata_hash = self.hash_metadata()
        self._log.append(("epoch",), records.group_epoch(self.id, self.epoch, self.metadata_hash))

    def hash_metadata(self) -> int:
        """Return a 64-bit hash of the subscribed topics' metadata, or 0 if no topic is subscribed.

        Deviation: the values differ from those of Kafka's hash.
        """
        subscribed = {t for m in self.members.values() for t in m.subscription}
        known = [self.topics[t] for t in sorted(subscribed) if t in self.topics]
        if not known:
            return 0
        text = "".join(f"{t.uuid}{t.name}:{t.partitions};" for t in known)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)

    def put_member(self, member: ConsumerMember) -> None:
        """Add a member or change its metadata."""
        self._store_member(member)
        record = records.member_metadata(
            self.id,
            member.id,
            instance_id=member.instance_id,
            rack=member.rack,
            client_id=member.client,
            subscription=member.subscription,
            rebalance_timeout=member.rebalance_timeout,
        )
        self._log.append(("member", member.id), record)

    def put_assignment(self, member: ConsumerMember) -> None:
        """Change the current assignment of a member."""
        self._store_member(member)
        topics = self.topics
        record = records.DeferredRecord(
            lambda: records.current_assignment(
                self.id,
                member.id,
                epoch=member.epoch,
                previous_epoch=member.previous_epoch,
                state=member.state,
                assigned=_numbers(topics, member.assigned),
                revoking=_numbers(topics, member.revoking),
            )
        )
        self._log.append(("current", member.id), record)

    def put_target(self, target: dict[str, Partitions], now: int) -> None:
        """Store a new target assignment for the current group epoch.

        A member with an unchanged target keeps the order of its last record. The next result of
        the assignor can depend on this order.
        """
        for member_id, partitions in target.items():
            previous = self.target.get(member_id)
            if previous is not None and previous == partitions:
                continue
            new = frozenset(partitions)
            if previous is None or new != self.target_of(member_id):
                self.target[member_id] = partitions
                self._target_sets[member_id] = (partitions, new)
                self._write_target(member_id, partitions)
        self.target_epoch, self.target_assigned_at = self.epoch, now
        self._log.append(("target",), records.target_epoch(self.id, self.epoch, now))

    def remove(self, member_id: str) -> None:
        """Delete a member and its assignments."""
        member = self.members.pop(member_id)
        for partition in member.owned_or_revoking:
            self._owners.pop(partition, None)
        self.target.pop(member_id, None)
        self._target_sets.pop(member_id, None)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        tombstones = records.tombstones(self.id, member_id)
        for kind, record in zip(("current", "target", "member"), tombstones, strict=True):
            self._log.append((kind, member_id), record)

    def replace_static_member(self, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """Give a returning static member its new member id. The member keeps its partitions."""
        target = self.target.get(old.id)
        self.remove(old.id)
        member = replace(old, id=new_id, epoch=0, previous_epoch=0)
        self.put_member(member)
        if target is not None:
            self.target[new_id] = target
            self._write_target(new_id, target)
        self.put_assignment(member)
        return member

    def commit(self, partition: TopicPartition, offset: int, now: int) -> None:
        """Store the committed offset of a partition."""
        self.offsets[partition] = offset
        self._log.append(partition, OffsetCommit(self.id, partition, offset, now))

    def _write_target(self, member_id: str, partitions: Partitions) -> None:
        topics = self.topics
        record = records.DeferredRecord(
            lambda: records.target_assignment(self.id, member_id, _numbers(topics, partitions))
        )
        self._log.append(("target", member_id), record)

    def _store_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.id)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        old = NONE if before is None else before.owned_or_revoking
        new = member.owned_or_revoking
        if old is not new and old != new:
            for partition in old:
                self._owners.pop(partition, None)
            for partition in new:
                self._owners[partition] = member.id

    # ---- Loading ----------------------------------------------------------------------

    def restore(self) -> None:
        """Load the group from the log."""
        names = {topic.uuid: topic.name for topic in self.topics.values()}

        def partitions(topics: Iterable[Fields]) -> Iterable[TopicPartition]:
            return (
                TopicPartition(names[t["topic_id"]], n) for t in topics for n in t["partitions"]
            )

        for key, value in self._log.read():
            record = decode(key, value)
            fields = record.value or {}
            member_id = record.key.get("member_id", "")
            member = self.members.get(member_id, ConsumerMember(id=member_id))
            match record.kind:
                case RecordType.OFFSET_COMMIT:
                    partition = TopicPartition(record.key["topic"], record.key["partition"])
                    self.offsets[partition] = fields["offset"]
                case RecordType.CONSUMER_GROUP_METADATA:
                    self.epoch, self.metadata_hash = fields["epoch"], fields["metadata_hash"]
                case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
                    self.target_epoch = fields["epoch"]
                    self.target_assigned_at = fields["timestamp"]
                case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                    self.target[member_id] = Partitions.of(partitions(fields["assigned"]))
                case RecordType.CONSUMER_GROUP_MEMBER_METADATA:
                    self._store_member(
                        replace(
                            member,
                            instance_id=fields["instance_id"],
                            rack=fields["rack"],
                            client=fields["client_id"],
                            subscription=tuple(fields["topics"]),
                            rebalance_timeout=fields["rebalance_timeout"],
                        )
                    )
                case RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
                    self._store_member(
                        replace(
                            member,
                            epoch=fields["epoch"],
                            previous_epoch=fields["previous_epoch"],
                            state=MemberState(fields["state"]),
                            assigned=frozenset(partitions(fields["assigned"])),
                            revoking=frozenset(partitions(fields["revoking"])),
                        )
                    )


def _numbers(
    topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> records.PartitionsByTopicId:
    table: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        table.setdefault(topic, []).append(number)
    return tuple((topics[topic].uuid, tuple(numbers)) for topic, numbers in table.items())
