"""The coordinator of one group under the consumer protocol of KIP-848.

There is one request, the heartbeat. The broker makes the target assignment, and each
member is reconciled with it at its own pace: it gives up first what it must, and is given
what others have given up.

Upstream: the ``consumerGroup...`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kassay.reference.coordinator.clock import Clock, Timer, stop
from kassay.reference.coordinator.config import DEFAULTS, CoordinatorConfig
from kassay.reference.coordinator.consumer.consumer_group import ConsumerGroup
from kassay.reference.coordinator.consumer.reconciliation import (
    NONE,
    ConsumerMember,
    MemberState,
    PartitionSet,
    reconcile,
)
from kassay.reference.coordinator.log import Log
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.protocol.messages import NO_ERROR, ErrorCode, Offsets

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
"""Epochs that say something else: join, leave, and a static member's leave."""

Assignor = Callable[[Group], Assignment]


class Heartbeat(NamedTuple):
    """ConsumerGroupHeartbeat; what is None has not changed since the last one."""

    member_id: str
    epoch: int
    subscription: tuple[str, ...] | None = None
    owned: PartitionSet | None = None
    rebalance_timeout: int | None = None
    instance_id: str | None = None
    client: str = "consumer"
    rack: str | None = None


class HeartbeatResponse(NamedTuple):
    """Answer to a heartbeat; ``assigned`` is None if it has not changed."""

    code: ErrorCode
    epoch: int = -1
    assigned: PartitionSet | None = None


class ConsumerCoordinator:
    """Coordinates one group of the consumer protocol.

    Parameters
    ----------
    group_id
        Name of the group.
    clock
        Virtual time.
    assignor
        Makes the target assignments.
    topics
        Topics with metadata.
    log
        Where it writes, and reads on `load`.
    config
        The broker's settings.

    Examples
    --------
    >>> from kassay.reference.model.group import Topic
    >>> def to_first(group):
    ...     return Assignment({group.members[0].id: [("t", 0)]})
    >>> coordinator = ConsumerCoordinator("g", Clock(), to_first, [Topic(name="t", partitions=1)])
    >>> answer = coordinator.heartbeat(Heartbeat("a", 0, ("t",), frozenset(), 1_000))
    >>> str(answer.code), answer.epoch, len(answer.assigned)
    ('NONE', 2, 1)
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
    ) -> None:
        self.log = Log() if log is None else log
        self.group = ConsumerGroup(group_id, topics, self.log)
        self._clock = clock
        self._assignor = assignor
        self._config = config
        self._refresh = False
        self._sessions: dict[str, Timer] = {}
        self._revocations: dict[str, Timer] = {}

    def update_topics(self, topics: Iterable[Topic]) -> None:
        """Tell the coordinator of new metadata; the next heartbeat acts on it."""
        self.group.topics = {topic.name: topic for topic in topics}
        self._refresh = True

    def heartbeat(self, beat: Heartbeat) -> HeartbeatResponse:
        """Take a heartbeat: join, leave, say what is owned, learn what is assigned."""
        if beat.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(beat)
        found = self._find(beat)
        if isinstance(found, ErrorCode):
            return HeartbeatResponse(found)
        member = _updated(found, beat)
        changed = member.subscription != found.subscription
        if member != found or member.id not in self.group.members:
            self.group.put_member(member)
        if changed or (self._refresh and self.group.hash_metadata() != self.group.metadata_hash):
            self.group.bump_epoch()
        self._refresh = False
        self._make_target()
        after = self._reconcile(member, beat.owned, changed=changed)
        self._watch(after.id)
        is_full = None not in (beat.subscription, beat.owned, beat.rebalance_timeout)
        tells = beat.epoch == JOIN_EPOCH or is_full or after.assigned != found.assigned
        return HeartbeatResponse(NO_ERROR, after.epoch, after.assigned if tells else None)

    def _find(self, beat: Heartbeat) -> ConsumerMember | ErrorCode:
        """Find the member that a heartbeat is from, or make it if it joins."""
        group = self.group
        known = group.members.get(beat.member_id)
        if beat.instance_id is not None:
            known = group.members.get(group.static_members.get(beat.instance_id, ""))
            if known is not None and known.id != beat.member_id:
                return self._replace(known, beat)
        if known is None:
            if beat.epoch == JOIN_EPOCH:
                return ConsumerMember(id=beat.member_id)
            return ErrorCode.UNKNOWN_MEMBER_ID
        return known if _epoch_is_valid(known, beat) else ErrorCode.FENCED_MEMBER_EPOCH

    def _replace(self, holder: ConsumerMember, beat: Heartbeat) -> ConsumerMember | ErrorCode:
        """Let a static member in that has a new id, if its former self said that it leaves."""
        if beat.epoch != JOIN_EPOCH:
            return ErrorCode.FENCED_INSTANCE_ID
        if holder.epoch != STATIC_LEAVE_EPOCH:
            return ErrorCode.UNRELEASED_INSTANCE_ID
        self._forget(holder.id)
        return self.group.replace_static(holder, beat.member_id)

    def _make_target(self) -> None:
        """Make a new target assignment if the last is out of date and old enough."""
        group, now = self.group, self._clock.now
        made = group.target_made
        if group.target_epoch >= group.epoch or (
            made is not None and made + self._config.assignment_interval > now
        ):
            return
        assignment = self._assignor(group.as_rebalance())
        target = {
            member_id: assignment.get(member_id, NO_PARTITIONS) for member_id in group.members
        }
        group.put_target(target, now)

    def _reconcile(
        self, member: ConsumerMember, owned: PartitionSet | None, *, changed: bool
    ) -> ConsumerMember:
        group = self.group
        if not changed and member.is_reconciled_to(group.target_epoch):
            return member
        after = reconcile(
            member,
            target_epoch=group.target_epoch,
            target=group.target_of(member.id),
            is_taken=group.is_taken,
            owned=owned,
            subscription_changed=changed,
        )
        if after != member:
            group.put_assignment(after)
            self._watch_revocation(after)
        return after

    def _leave(self, beat: Heartbeat) -> HeartbeatResponse:
        group = self.group
        member = group.members.get(beat.member_id)
        if beat.instance_id is not None:
            member = group.members.get(group.static_members.get(beat.instance_id, ""))
            if member is not None and member.id != beat.member_id:
                return HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID)
        if member is None:
            return HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
        if beat.epoch == STATIC_LEAVE_EPOCH and beat.instance_id is not None:
            # Its session goes on; it has that long to come back to the same partitions.
            away = replace(
                member, epoch=STATIC_LEAVE_EPOCH, previous_epoch=member.epoch, revoking=NONE
            )
            group.put_assignment(away)
        else:
            self._fence(member.id)
        return HeartbeatResponse(NO_ERROR, beat.epoch)

    def commit(self, member_id: str, epoch: int, offsets: Offsets) -> ErrorCode:
        """Take an OffsetCommit of a member in its current epoch."""
        member = self.group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch != member.epoch:
            return ErrorCode.STALE_MEMBER_EPOCH
        for partition, offset in offsets.items():
            self.group.commit(partition, offset, self._clock.now)
        return NO_ERROR

    # ---- Time-outs --------------------------------------------------------------------

    def _watch(self, member_id: str) -> None:
        timer = self._sessions.get(member_id)
        if timer is None:
            fence = partial(self._fence, member_id)
            timer = self._sessions[member_id] = self._clock.timer(fence)
        timer.start(self._config.session_timeout)

    def _watch_revocation(self, member: ConsumerMember) -> None:
        stop(self._revocations, member.id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            return

        def give_up() -> None:
            now = self.group.members.get(member.id)
            if now is not None and now.epoch == member.epoch:
                self._fence(member.id)

        timer = self._revocations[member.id] = self._clock.timer(give_up)
        timer.start(member.rebalance_timeout)

    def _fence(self, member_id: str) -> None:
        """Put a member out; the target assignment is out of date then."""
        if member_id in self.group.members:
            self._forget(member_id)
            self.group.remove(member_id)
            self.group.bump_epoch()

    def _forget(self, member_id: str) -> None:
        stop(self._sessions, member_id)
        stop(self._revocations, member_id)

    # ---- Fail-over ----------------------------------------------------------------------

    def unload(self) -> None:
        """Stop being the coordinator."""
        for member_id in self.group.members:
            self._forget(member_id)

    @classmethod
    def load(
        cls,
        group_id: str,
        clock: Clock,
        assignor: Assignor,
        topics: Iterable[Topic],
        log: Log,
        *,
        config: CoordinatorConfig = DEFAULTS,
    ) -> "ConsumerCoordinator":
        """Take over from the log; sessions and revocations start their time anew."""
        coordinator = cls(group_id, clock, assignor, topics, log, config=config)
        coordinator.group.restore()
        coordinator._refresh = True
        for member in coordinator.group.members.values():
            coordinator._watch(member.id)
            coordinator._watch_revocation(member)
        return coordinator


def _updated(member: ConsumerMember, beat: Heartbeat) -> ConsumerMember:
    subscription, timeout = beat.subscription, beat.rebalance_timeout
    silent = subscription is None and timeout is None and beat.client == member.client
    if (
        silent
        and beat.instance_id in (None, member.instance_id)
        and beat.rack in (None, member.rack)
    ):
        return member
    return replace(
        member,
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        client=beat.client,
        rack=member.rack if beat.rack is None else beat.rack,
        subscription=member.subscription if subscription is None else tuple(sorted(subscription)),
        rebalance_timeout=member.rebalance_timeout if timeout is None else timeout,
    )


def _epoch_is_valid(member: ConsumerMember, beat: Heartbeat) -> bool:
    """Whether a member is in the epoch it says, or has lost the answer with its new one."""
    if beat.epoch in (JOIN_EPOCH, member.epoch):
        return True
    return (
        beat.epoch == member.previous_epoch < member.epoch
        and beat.owned is not None
        and beat.owned <= member.assigned
    )
