"""Group of the consumer protocol (KIP-848): members, target assignment, and their log records.

A member reconciles with its target assignment, one step per heartbeat.

Upstream: org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder and
ConsumerGroup, group-coordinator 4.x.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Literal

from kassay.reference.coordinator.runtime import Log
from kassay.reference.java_collections import first_in_map
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import JoinRequest

DEFAULT_ASSIGNOR = "uniform"
"""First assignor of ``group.consumer.assignors``."""
PartitionSet = frozenset[TopicPartition]
NONE: PartitionSet = frozenset()


class MemberState(IntEnum):
    """Reconciliation state of a member. The numbers are those in Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


_STABLE, _UNREVOKED, _UNRELEASED = MemberState
_CURRENT = ("epoch", "previous_epoch", "state", "assigned", "revoking")
"""Fields of the current assignment of a member; the others are its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """Member of a group of the consumer protocol."""

    id: str
    subscription: tuple[str, ...] = ()  # sorted
    instance_id: str | None = None
    client: str = "consumer"
    rack: str | None = None
    assignor: str | None = None  # assignor of the broker that the member requests
    joined: JoinRequest | None = None  # last JoinGroup request of a member of the classic protocol
    rebalance_timeout: int = 300_000  # maximum time to revoke partitions, in ms
    epoch: int = 0
    previous_epoch: int = 0  # the member is still in it if a response was lost
    state: MemberState = _STABLE
    assigned: PartitionSet = NONE  # partitions that it may consume
    revoking: PartitionSet = NONE  # partitions that it must revoke

    @property
    def owned_or_revoking(self) -> PartitionSet:
        """Return the partitions that the member owns or still has to revoke."""
        return self.assigned | self.revoking if self.revoking else self.assigned

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target assignment of an epoch."""
        return self.state is _STABLE and self.epoch == epoch


def reconcile(
    member: ConsumerMember,
    *,
    target_epoch: int,
    target: PartitionSet,
    is_owned: Callable[[TopicPartition], bool],
    owned: PartitionSet | None,
    subscription_changed: bool = False,
) -> ConsumerMember:
    """Move a member one step towards its target assignment, if a step is possible.

    ``is_owned`` returns whether a member owns a partition or still has to revoke it.
    ``owned`` are the partitions in the heartbeat; None if it does not contain them.
    """
    must_revoke = member.state is _UNREVOKED and _owns_any(owned, member.revoking)
    if must_revoke or member.is_reconciled_to(target_epoch):
        return _drop_unsubscribed(member, owned) if subscription_changed else member
    # An unchanged target is the same object: no partition is revoked, assigned or filtered.
    if target is member.assigned and not (member.revoking or subscription_changed):
        return replace(member, state=_STABLE, previous_epoch=member.epoch, epoch=target_epoch)
    subscribed = target
    if not {tp.topic for tp in target}.issubset(member.subscription):
        subscribed = frozenset(tp for tp in target if tp.topic in member.subscription)
    kept = member.assigned & subscribed
    revoking = member.assigned - kept
    if revoking and _owns_any(owned, revoking):
        return _revoke(member, kept, revoking)
    missing = subscribed - kept
    unreleased = frozenset(tp for tp in missing if is_owned(tp) and tp not in member.revoking)
    return replace(
        member,
        state=_UNRELEASED if unreleased else _STABLE,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=subscribed - unreleased if unreleased else subscribed,
        revoking=NONE,
    )


def _revoke(member: ConsumerMember, kept: PartitionSet, revoking: PartitionSet) -> ConsumerMember:
    epoch = member.epoch
    return replace(member, state=_UNREVOKED, previous_epoch=epoch, assigned=kept, revoking=revoking)


def _owns_any(owned: PartitionSet | None, revoking: PartitionSet) -> bool:
    """Return whether the member owns partitions to revoke, or does not report what it owns."""
    return owned is None or not owned.isdisjoint(revoking)


def _drop_unsubscribed(member: ConsumerMember, owned: PartitionSet | None) -> ConsumerMember:
    """Revoke the partitions of topics that the member no longer subscribes to."""
    kept = frozenset(tp for tp in member.assigned if tp.topic in member.subscription)
    if kept == member.assigned:
        return member
    revoking = member.revoking | (member.assigned - kept)
    if _owns_any(owned, revoking):
        return _revoke(member, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


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
        self._target_sets: dict[str, PartitionSet] = {}
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
        """Find a member by instance id if one is given, else by member id. None if unknown."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.members.get(member_id)

    @property
    def uses_classic_protocol(self) -> bool:
        """Return whether the group has members, and all of them use the classic protocol."""
        members = self.members.values()
        return bool(members) and all(one.joined is not None for one in members)

    def preferred_assignor(self) -> str:
        """Return the assignor that most members request, or the default if none requests one."""
        votes = Counter(one.assignor for one in self.members.values() if one.assignor is not None)
        most = max(votes.values(), default=0)
        names = [name for name, count in votes.items() if count == most]
        return first_in_map(names, largest_size=len(votes)) or DEFAULT_ASSIGNOR

    def target_of(self, member_id: str) -> PartitionSet:
        """Return the target assignment of a member as a set."""
        return self._target_sets.get(member_id, NONE)

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

    def bump_epoch(self) -> None:
        """Increase the group epoch, so that a new target assignment is computed."""
        self.epoch += 1
        self.metadata_hash = self.hash_metadata()
        self._log.append(("epoch",), (self.epoch, self.metadata_hash))

    def hash_metadata(self) -> int:
        """Return a 64-bit hash of the metadata of subscribed topics; 0 if none has metadata.

        Deviation: the values differ from those of Kafka's hash.
        """
        subscribed = {t for m in self.members.values() for t in m.subscription}
        known = [self.topics[t] for t in sorted(subscribed) if t in self.topics]
        if not known:
            return 0
        text = "".join(f"{t.uuid}{t.name}:{t.partitions};" for t in known)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)

    def put(self, kind: Literal["member", "current"], member: ConsumerMember) -> None:
        """Add a member or change its metadata (``member``), or its assignment (``current``)."""
        self._store_member(member)
        self._log.append((kind, member.id), member)

    def put_target(self, target: dict[str, Partitions], now: int) -> None:
        """Store a new target assignment for the current group epoch.

        A member with an unchanged target keeps the order of its last record. The next result of
        the assignor can depend on this order.
        """
        for member_id, partitions in target.items():
            # Lists compare faster than sets.
            if self.target.get(member_id) != partitions:
                self._set_target(member_id, partitions)
        self.target_epoch, self.target_assigned_at = self.epoch, now
        self._log.append(("target",), (self.epoch, now))

    def remove(self, member_id: str) -> None:
        """Delete a member and its assignments."""
        member = self.members.pop(member_id)
        for partition in member.owned_or_revoking:
            self._owners.pop(partition, None)
        self.target.pop(member_id, None)
        self._target_sets.pop(member_id, None)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        for kind in ("current", "target", "member"):
            self._log.delete((kind, member_id))

    def replace_static_member(self, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """Give a returning static member its new member id. The member keeps its partitions."""
        target = self.target.get(old.id)
        self.remove(old.id)
        member = replace(old, id=new_id, epoch=0, previous_epoch=0)
        self.put("member", member)
        if target is not None:
            self._set_target(new_id, target)
        self.put("current", member)
        return member

    def _set_target(self, member_id: str, partitions: Partitions) -> None:
        new = frozenset(partitions)
        if new != self._target_sets.get(member_id):
            self.target[member_id], self._target_sets[member_id] = partitions, new
            self._log.append(("target", member_id), partitions)

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

    def restore(self) -> None:
        """Load the group from the log."""
        for key, stored in self._log.read():
            match key:
                case ("epoch",):
                    self.epoch, self.metadata_hash = stored
                case ("target",):
                    self.target_epoch, self.target_assigned_at = stored
                case ("target", str(id)):
                    # Kafka's record has the partitions by topic.
                    self.target[id] = Partitions.of(sorted(stored))
                    self._target_sets[id] = frozenset(stored)
                case ("member" | "current" as kind, str(id)):
                    known = self.members.get(id, ConsumerMember(id=id))
                    metadata, current = (stored, known) if kind == "member" else (known, stored)
                    values = {name: getattr(current, name) for name in _CURRENT}
                    self._store_member(replace(metadata, **values))
                case TopicPartition():
                    self.offsets[key] = stored.offset
