"""Group coordinator of the consumer protocol (KIP-848).

The only group request is the heartbeat. The broker computes a target assignment. Each member
reconciles with it separately: it revokes partitions first, then gets released ones.

A rolling upgrade converts a classic group to a group of the consumer protocol when its first
member of the consumer protocol joins. The other members keep sending requests of the classic
protocol until they are upgraded. A downgrade converts the group back when its last member of the
consumer protocol leaves.

Upstream: ConsumerGroup.fromClassicGroup and the ``consumerGroup...`` and
``classicGroup...ToConsumerGroup`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from kassay.reference.coordinator.classic_group import ClassicGroup
from kassay.reference.coordinator.consumer_group import (
    NONE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    PartitionSet,
    reconcile,
)
from kassay.reference.coordinator.runtime import DEFAULTS, Clock, CoordinatorConfig, Log, Timers
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
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
    """Coordinator of one group, which handles heartbeats and timeouts, and writes the log.

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
        """Take over members of another group. Their current assignments become the target."""
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
        """Handle a heartbeat, with which a member joins, leaves or acknowledges an assignment."""
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
        """Return whether a heartbeat only restarts the session, as most heartbeats do."""
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
        """Return the member that sent a heartbeat, a new member for a join, or an error code."""
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
        """Compute a target assignment if the epoch is new and the assignment interval is over."""
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
        """Convert the group if all its members use the classic protocol. Return whether it did."""
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
    """Return whether a heartbeat has the current epoch, or the one before a lost response."""
    if request.epoch in (JOIN_EPOCH, member.epoch):
        return True
    return (
        request.epoch == member.previous_epoch < member.epoch
        and request.owned is not None
        and request.owned <= member.assigned
    )


class ClassicMembers:
    """Handler of classic requests to a coordinator of the consumer protocol."""

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
    """Convert the members of a classic group. UpgradeRefusedError if user data would be lost."""
    if group.members and group.has_user_data:
        raise UpgradeRefusedError(
            f"the assignments of {group.protocol!r} have user data, which a conversion would lose; "
            "use an assignor without user data, for example 'range'"
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
