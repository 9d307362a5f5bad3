"""A KIP-848 group: its members, its target assignment, and their way into the log and back."""

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
    """State of a group under the consumer protocol; it follows from epochs and members."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """What is kept of a group, every change of it written to the log.

    Parameters
    ----------
    group_id
        Name of the group.
    topics
        Topics with metadata.
    log
        Where it is written.
    """

    def __init__(self, group_id: str, topics: Iterable[Topic], log: Log) -> None:
        self.id = group_id
        self.topics = {topic.name: topic for topic in topics}
        self.epoch = 1  # so that no member is ever in epoch 0, which says join
        self.metadata_hash = 0
        self.target_epoch = 0
        self.target_made: int | None = None
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Partitions] = {}
        self._target_sets: dict[str, tuple[Partitions, PartitionSet]] = {}
        self.offsets: dict[TopicPartition, int] = {}
        self.static_members: dict[str, str] = {}
        self._holders: dict[TopicPartition, str] = {}
        self._log = log

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group stands."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_taken(self, partition: TopicPartition) -> bool:
        """Whether a member holds a partition, or has yet to give it up."""
        return partition in self._holders

    def target_of(self, member_id: str) -> PartitionSet:
        """Return what a member shall have."""
        shall = self.target.get(member_id, NO_PARTITIONS)
        known = self._target_sets.get(member_id)
        if known is None or known[0] is not shall:
            known = self._target_sets[member_id] = (shall, frozenset(shall))
        return known[1]

    def as_rebalance(self) -> Group:
        """Describe the group as the broker's assignors see it: the last target is what is owned."""
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

    # ---- Changes, each written ------------------------------------------------------

    def bump_epoch(self) -> None:
        """Go on to the next epoch: the target assignment is out of date."""
        self.epoch += 1
        self.metadata_hash = self.hash_metadata()
        record = records.group_epoch(self.id, self.epoch, self.metadata_hash)
        self._log.append(("epoch",), record)

    def hash_metadata(self) -> int:
        """Hash the topics that the members subscribe to, 64 bits, 0 for none.

        It tells a changed topic from the same one; Kafka's own hash has other values.
        """
        subscribed = {t for m in self.members.values() for t in m.subscription}
        known = [self.topics[t] for t in sorted(subscribed) if t in self.topics]
        if not known:
            return 0
        text = "".join(f"{t.uuid}{t.name}:{t.partitions};" for t in known)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)

    def put_member(self, member: ConsumerMember) -> None:
        """Add a member or change what it says of itself."""
        self._hold(member)
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
        """Change what a member has."""
        self._hold(member)
        topics = self.topics

        def record() -> records.ConsumerRecord:
            return records.current_assignment(
                self.id,
                member.id,
                epoch=member.epoch,
                previous_epoch=member.previous_epoch,
                state=member.state,
                assigned=_numbers(topics, member.assigned),
                revoking=_numbers(topics, member.revoking),
            )

        self._log.append(("current", member.id), records.DeferredRecord(record))

    def put_target(self, target: dict[str, Partitions], moment: int) -> None:
        """Set the target assignment of the current epoch.

        Of a member that shall have what it had, the old list stays: its order, on which
        the assignor's next answer may hang, is that of the record written then.
        """
        for member_id, partitions in target.items():
            had = self.target.get(member_id)
            if had is not None and had == partitions:
                continue
            wanted = frozenset(partitions)
            if had is None or wanted != self.target_of(member_id):
                self.target[member_id] = partitions
                self._target_sets[member_id] = (partitions, wanted)
                self._write_target(member_id, partitions)
        self.target_epoch, self.target_made = self.epoch, moment
        self._log.append(("target",), records.target_epoch(self.id, self.epoch, moment))

    def remove(self, member_id: str) -> None:
        """Delete a member and its assignments."""
        member = self.members.pop(member_id)
        for partition in member.holds:
            self._holders.pop(partition, None)
        self.target.pop(member_id, None)
        self._target_sets.pop(member_id, None)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        for kind, record in zip(
            ("current", "goal", "member"), records.tombstones(self.id, member_id), strict=True
        ):
            self._log.append((kind, member_id), record)

    def replace_static(self, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """Give a static member that has returned its new id and its old partitions."""
        target = self.target.get(old.id)
        self.remove(old.id)
        member = replace(old, id=new_id, epoch=0, previous_epoch=0)
        self.put_member(member)
        if target is not None:
            self.target[new_id] = target
            self._write_target(new_id, target)
        self.put_assignment(member)
        return member

    def commit(self, partition: TopicPartition, offset: int, moment: int) -> None:
        """Keep a committed offset."""
        self.offsets[partition] = offset
        self._log.append(partition, OffsetCommit(self.id, partition, offset, moment))

    def _write_target(self, member_id: str, partitions: Partitions) -> None:
        topics = self.topics

        def record() -> records.ConsumerRecord:
            return records.target_assignment(self.id, member_id, _numbers(topics, partitions))

        self._log.append(("goal", member_id), records.DeferredRecord(record))

    def _hold(self, member: ConsumerMember) -> None:
        before = self.members.get(member.id)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        had = NONE if before is None else before.holds
        has = member.holds
        if had is not has and had != has:
            for partition in had:
                self._holders.pop(partition, None)
            for partition in has:
                self._holders[partition] = member.id

    # ---- Taking over ----------------------------------------------------------------

    def restore(self) -> None:
        """Read the log back into an empty group."""
        names = {topic.uuid: topic.name for topic in self.topics.values()}

        def partitions(topics: Iterable[Fields]) -> Iterable[TopicPartition]:
            return (
                TopicPartition(names[t["topic_id"]], n) for t in topics for n in t["partitions"]
            )

        for key, value in self._log.read():
            record = decode(key, value)
            fields = record.value or {}
            member_id = record.key.get("member_id", "")
            known = self.members.get(member_id, ConsumerMember(id=member_id))
            match record.kind:
                case RecordType.OFFSET_COMMIT:
                    partition = TopicPartition(record.key["topic"], record.key["partition"])
                    self.offsets[partition] = fields["offset"]
                case RecordType.CONSUMER_GROUP_METADATA:
                    self.epoch, self.metadata_hash = fields["epoch"], fields["metadata_hash"]
                case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
                    self.target_epoch, self.target_made = fields["epoch"], fields["timestamp"]
                case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                    self.target[member_id] = Partitions.of(partitions(fields["assigned"]))
                case RecordType.CONSUMER_GROUP_MEMBER_METADATA:
                    self._hold(
                        replace(
                            known,
                            instance_id=fields["instance_id"],
                            rack=fields["rack"],
                            client=fields["client_id"],
                            subscription=tuple(fields["topics"]),
                            rebalance_timeout=fields["rebalance_timeout"],
                        )
                    )
                case RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
                    self._hold(
                        replace(
                            known,
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
