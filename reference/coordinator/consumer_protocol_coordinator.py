"""Simulated group coordinator of the consumer protocol (KIP-848).

The only group request is the heartbeat. The broker computes a target assignment. Each member
reconciles with the target separately. It revokes partitions, then receives released ones.

A rolling upgrade converts a classic group to a group of the consumer protocol when its first
member of the consumer protocol joins. The other members keep sending requests of the classic
protocol until they are upgraded. A downgrade converts the group back when its last member of the
consumer protocol leaves.

Upstream: org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder and
ConsumerGroup; ConsumerGroup.fromClassicGroup and the ``consumerGroup...`` and
``classicGroup...ToConsumerGroup`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import partial
from typing import Any, Literal, NamedTuple

from kassay.reference.coordinator.classic_protocol_coordinator import ClassicGroup
from kassay.reference.coordinator.runtime import DEFAULTS, Clock, CoordinatorConfig, Log, Timers
from kassay.reference.java_collections import first_in_map
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinReply,
    JoinRequest,
    JoinResponse,
    OffsetCommit,
    Offsets,
    SyncReply,
    SyncRequest,
    SyncResponse,
)

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
"""Epochs in the heartbeat of a member that joins, leaves, or leaves as a static member."""

Assignor = Callable[[Group], Assignment]
DEFAULT_ASSIGNOR = "uniform"
"""First assignor of ``group.consumer.assignors``."""
PartitionSet = frozenset[TopicPartition]
NONE: PartitionSet = frozenset()


class MemberState(IntEnum):
    """Reconciliation state of a member, with the numbers in Kafka's records."""

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
    return owned is None or not owned.isdisjoint(revoking)


def _drop_unsubscribed(member: ConsumerMember, owned: PartitionSet | None) -> ConsumerMember:
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
        """Find a member by its instance id or, if this id is None, by its member id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.members.get(member_id)

    @property
    def uses_classic_protocol(self) -> bool:
        """Return whether the group has members, and all of them use the classic protocol."""
        members = self.members.values()
        return bool(members) and all(one.joined is not None for one in members)

    def preferred_assignor(self) -> str:
        """Return the assignor that most members request, or the default if none is requested."""
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
        """Return a 64-bit hash of the metadata of all subscribed topics.

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
        """Store the metadata (``member``) or the assignment (``current``) of a member."""
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


class UpgradeRefusedError(KassayError):
    """Error: a classic group cannot be converted to a group of the consumer protocol."""


class Heartbeat(NamedTuple):
    """ConsumerGroupHeartbeat request. A field is None if its value is unchanged."""

    member_id: str
    epoch: int
    subscription: tuple[str, ...] | None = None
    owned: PartitionSet | None = None
    rebalance_timeout: int | None = None
    instance_id: str | None = None
    client: str = "consumer"
    rack: str | None = None
    assignor: str | None = None
    joined: JoinRequest | None = None  # the request that a member of the classic protocol sent


class HeartbeatResponse(NamedTuple):
    """ConsumerGroupHeartbeat response. ``assigned`` is None if the assignment is unchanged."""

    code: ErrorCode
    epoch: int = -1
    assigned: PartitionSet | None = None


class ConsumerCoordinator:
    """Coordinator of one consumer group. It handles heartbeats and writes the log.

    The group is loaded from the log; sessions and revocation timeouts restart. ``downgrade`` is
    called when the last member of the consumer protocol has left a group of classic members.
    """

    def __init__(
        self,
        group_id: str,
        clock: Clock,
        assignor: Assignor,
        topics: Iterable[Topic],
        log: Log | None = None,
        *,
        config: CoordinatorConfig = DEFAULTS,
        downgrade: Callable[[ConsumerGroup], None] | None = None,
    ) -> None:
        self.log = Log() if log is None else log
        self._downgrade = downgrade
        self.group = ConsumerGroup(group_id, topics, self.log)
        self.offsets = self.group.offsets
        self._clock = clock
        self._assignor = assignor
        self._config = config
        self._topics_changed = True
        self._sessions, self._revocations = Timers(clock), Timers(clock)
        self.group.restore()
        for member in self.group.members.values():
            self.restart_session(member.id)
            self._restart_revocation_timer(member)

    def adopt(self, members: Iterable[ConsumerMember], *, epoch: int) -> None:
        """Load the members of a converted group. The target of each member is its assignment."""
        group, now = self.group, self._clock.now
        group.epoch = epoch
        for member in members:
            group.put("member", member)
            group.put("current", member)
            self.restart_session(member.id)
        group.metadata_hash = group.hash_metadata()
        group.put_target(
            {one.id: Partitions.of(sorted(one.assigned)) for one in group.members.values()}, now
        )
        group.target_assigned_at = None  # The next target assignment is not delayed.

    def update_topics(self, topics: Iterable[Topic]) -> None:
        """Replace the topic metadata. The next heartbeat detects changes."""
        self.group.topics = {topic.name: topic for topic in topics}
        self._topics_changed = True

    def heartbeat(self, request: Heartbeat) -> HeartbeatResponse:
        """Handle a heartbeat. Members join, leave and acknowledge partitions with it."""
        if request.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        if self._changes_nothing(request):
            self.restart_session(request.member_id)
            return HeartbeatResponse(NO_ERROR, request.epoch)
        previous = self._find_member(request)
        if isinstance(previous, ErrorCode):
            return HeartbeatResponse(previous)
        member = _updated(previous, request)
        changed = member.subscription != previous.subscription
        preferred = "" if request.assignor is None else self.group.preferred_assignor()
        if member != previous or member.id not in self.group.members:
            self.group.put("member", member)
        changes_assignor = (
            member.assignor != previous.assignor and self.group.preferred_assignor() != preferred
        )
        if (changed or changes_assignor) or (
            self._topics_changed and self.group.hash_metadata() != self.group.metadata_hash
        ):
            self.group.bump_epoch()
        self._topics_changed = False
        self._maybe_update_target()
        reconciled = self._reconcile(member, request.owned, changed=changed)
        self.restart_session(reconciled.id)
        is_full = None not in (request.subscription, request.owned, request.rebalance_timeout)
        if request.epoch == JOIN_EPOCH or is_full or reconciled.assigned != previous.assigned:
            return HeartbeatResponse(NO_ERROR, reconciled.epoch, reconciled.assigned)
        return HeartbeatResponse(NO_ERROR, reconciled.epoch)

    def _changes_nothing(self, request: Heartbeat) -> bool:
        """Return whether a heartbeat only restarts the session timer."""
        group = self.group
        if request.owned is not None or request.subscription is not None or self._topics_changed:
            return False
        member = group.members.get(request.member_id)
        return (
            member is not None
            and member.joined is None
            and request.epoch == member.epoch == group.target_epoch == group.epoch
            and member.state is MemberState.STABLE
            and request.instance_id in (None, member.instance_id)
            and request.client in (None, member.client)
            and request.rack in (None, member.rack)
            and request.assignor is None
            and request.rebalance_timeout is None
        )

    def _find_member(self, request: Heartbeat) -> ConsumerMember | ErrorCode:
        """Return the sender of a heartbeat, or an error code if the sender is not valid."""
        member = self.group.find(request.member_id, request.instance_id)
        if member is None:
            if request.epoch == JOIN_EPOCH:
                return ConsumerMember(id=request.member_id)
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.id != request.member_id:
            return self._replace_static_member(member, request)
        return member if _epoch_is_valid(member, request) else ErrorCode.FENCED_MEMBER_EPOCH

    def _replace_static_member(
        self, replaced: ConsumerMember, request: Heartbeat
    ) -> ConsumerMember | ErrorCode:
        if request.epoch != JOIN_EPOCH:
            return ErrorCode.FENCED_INSTANCE_ID
        # Since 4.4, only if both members use the consumer protocol.
        is_checked = replaced.joined is None and request.joined is None
        if is_checked and replaced.epoch != STATIC_LEAVE_EPOCH:
            return ErrorCode.UNRELEASED_INSTANCE_ID
        self._cancel_timers(replaced.id)
        return self.group.replace_static_member(replaced, request.member_id)

    def _maybe_update_target(self) -> None:
        """Compute a target assignment for a new epoch, if the assignment interval is over."""
        group, now = self.group, self._clock.now
        assigned_at = group.target_assigned_at
        if group.target_epoch >= group.epoch or (
            assigned_at is not None and assigned_at + self._config.assignment_interval > now
        ):
            return
        assignment = self._assignor(group.assignor_input())
        target = {member: assignment.get(member, NO_PARTITIONS) for member in group.members}
        group.put_target(target, now)

    def _reconcile(
        self, member: ConsumerMember, owned: PartitionSet | None, *, changed: bool
    ) -> ConsumerMember:
        group = self.group
        reconciled = reconcile(
            member,
            target_epoch=group.target_epoch,
            target=group.target_of(member.id),
            is_owned=group.is_owned,
            owned=owned,
            subscription_changed=changed,
        )
        if reconciled != member:
            group.put("current", reconciled)
            self._restart_revocation_timer(reconciled)
        return reconciled

    def _leave(self, request: Heartbeat) -> HeartbeatResponse:
        member = self.group.find(request.member_id, request.instance_id)
        if member is None:
            return HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.id != request.member_id:
            return HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID)
        if request.epoch == STATIC_LEAVE_EPOCH and request.instance_id is not None:
            # The member keeps its partitions if it returns within the session timeout.
            away = replace(
                member, epoch=STATIC_LEAVE_EPOCH, previous_epoch=member.epoch, revoking=NONE
            )
            self.group.put("current", away)
        else:
            self.fence(member.id)
        return HeartbeatResponse(NO_ERROR, request.epoch)

    def commit(self, member_id: str, epoch: int, offsets: Offsets) -> ErrorCode:
        """Handle an OffsetCommit request. The member epoch must be current."""
        member = self.group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch != member.epoch:
            return ErrorCode.STALE_MEMBER_EPOCH
        for partition, offset in offsets.items():
            self.offsets[partition] = offset
            record = OffsetCommit(self.group.id, partition, offset, self._clock.now)
            self.log.append(partition, record)
        return NO_ERROR

    def restart_session(self, member_id: str) -> None:
        """Restart the session timer of a member."""
        fence = partial(self.fence, member_id)
        self._sessions.start(member_id, self._config.session_timeout, fence)

    def _restart_revocation_timer(self, member: ConsumerMember) -> None:
        self._revocations.cancel(member.id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            return

        def on_timeout() -> None:
            current = self.group.members.get(member.id)
            if current is not None and current.epoch == member.epoch:
                self.fence(member.id)

        self._revocations.start(member.id, member.rebalance_timeout, on_timeout)

    def fence(self, member_id: str) -> None:
        """Remove a member. Then increase the group epoch, unless the group is downgraded."""
        if member_id in self.group.members:
            is_last = self.group.members[member_id].joined is None
            self._cancel_timers(member_id)
            self.group.remove(member_id)
            if not (is_last and self.downgrade_if_classic()):
                self.group.bump_epoch()

    def downgrade_if_classic(self) -> bool:
        """Convert a group with only classic members to a classic group. Return False for others."""
        if self._downgrade is None or not self.group.uses_classic_protocol:
            return False
        self._downgrade(self.group)
        return True

    def _cancel_timers(self, member_id: str) -> None:
        self._sessions.cancel(member_id)
        self._revocations.cancel(member_id)

    def unload(self) -> None:
        """Stop coordinating the group and cancel all timers."""
        self._sessions.cancel_all()
        self._revocations.cancel_all()


_METADATA = ("instance_id", "client", "rack", "rebalance_timeout", "assignor", "joined")
"""Fields of a heartbeat that a member keeps, besides its subscription."""


def _updated(member: ConsumerMember, request: Heartbeat) -> ConsumerMember:
    subscription = request.subscription
    given = {name: getattr(request, name) for name in _METADATA}
    given["subscription"] = None if subscription is None else tuple(sorted(subscription))
    changes: dict[str, Any] = {
        name: value
        for name, value in given.items()
        if value is not None and value != getattr(member, name)
    }
    if request.joined is None and member.joined is not None:
        changes["joined"] = None  # The member joins again with the consumer protocol.
    return replace(member, **changes) if changes else member


def _epoch_is_valid(member: ConsumerMember, request: Heartbeat) -> bool:
    if request.epoch in (JOIN_EPOCH, member.epoch):
        return True
    return (
        request.epoch == member.previous_epoch < member.epoch
        and request.owned is not None
        and request.owned <= member.assigned
    )


class ClassicMembers:
    """Handler of requests of the classic protocol in a group of the consumer protocol."""

    def __init__(self, coordinator: ConsumerCoordinator, new_id: Callable[[str], str]) -> None:
        self._coordinator = coordinator
        self._new_id = new_id
        self._pending: set[str] = set()

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Handle a JoinGroup request. The broker, not a leader, computes the assignment."""
        if request.member_id == UNKNOWN_MEMBER:
            new_id = self._new_id(request.instance_id or request.client)
            self._pending.add(new_id)
            if request.instance_id is None:
                reply(JoinResponse(ErrorCode.MEMBER_ID_REQUIRED, new_id))
                return
            request = request._replace(member_id=new_id)
        group = self._coordinator.group
        was_classic = group.uses_classic_protocol
        member = group.members.get(request.member_id)
        if member is None and request.member_id not in self._pending:
            reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
            return
        self._pending.discard(request.member_id)
        protocol = request.offers[0]
        response = self._coordinator.heartbeat(
            Heartbeat(
                request.member_id,
                JOIN_EPOCH if member is None else member.epoch,
                protocol.metadata.topics,
                frozenset(protocol.metadata.owned),
                request.rebalance_timeout,
                request.instance_id,
                request.client,
                protocol.metadata.rack,
                joined=request,
            )
        )
        reply(JoinResponse(response.code, request.member_id, response.epoch, protocol.name))
        if not was_classic:
            # A static member of the classic protocol may replace the last other member.
            self._coordinator.downgrade_if_classic()

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup request. The response has the current assignment of the member."""
        code = self._validate(request.member_id, request.generation)
        if code is not NO_ERROR:
            reply(SyncResponse(code))
            return
        assigned = self._coordinator.group.members[request.member_id].assigned
        reply(SyncResponse(NO_ERROR, Partitions.of(sorted(assigned)), request.protocol))

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        """Handle a Heartbeat request.

        After REBALANCE_IN_PROGRESS, the member must join again: the group epoch has increased, the
        member must revoke partitions, or partitions of its target assignment are free.
        """
        code = self._validate(member_id, generation)
        if code is not NO_ERROR:
            return code
        group = self._coordinator.group
        member = group.members[member_id]
        self._coordinator.restart_session(member_id)
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not any(map(group.is_owned, group.target_of(member_id) - member.assigned))
            )
        ):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def leave(self, member_id: str) -> None:
        """Handle a LeaveGroup request."""
        self._coordinator.fence(member_id)

    def _validate(self, member_id: str, generation: int) -> ErrorCode:
        member = self._coordinator.group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NO_ERROR if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION


def converted_members(group: ClassicGroup) -> list[ConsumerMember]:
    """Convert the members of a classic group. Raise UpgradeRefusedError if impossible."""
    if group.members and group.has_user_data:
        raise UpgradeRefusedError(
            f"the assignor {group.protocol!r} adds user data to its assignments, and the consumer "
            "protocol has no user data; use another assignor, for example 'range'"
        )
    members = []
    for member in group.members.values():
        subscription = member.offer(group.protocol).metadata
        members.append(
            ConsumerMember(
                id=member.id,
                subscription=tuple(sorted(subscription.topics)),
                instance_id=member.instance_id,
                client=member.request.client,
                rack=subscription.rack,
                rebalance_timeout=member.request.rebalance_timeout,
                epoch=group.generation,
                previous_epoch=group.generation,
                assigned=frozenset(member.assignment),
                joined=member.request._replace(member_id=member.id),
            )
        )
    return members
