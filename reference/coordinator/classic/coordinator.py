"""Group coordinator of the classic protocol, one method per request."""

import itertools
from collections.abc import Callable

from kassay.reference.coordinator.classic import states
from kassay.reference.coordinator.classic.classic_group import ClassicGroup, ClassicMember
from kassay.reference.coordinator.classic.join_group import join
from kassay.reference.coordinator.classic.rebalance import ClassicRebalance
from kassay.reference.coordinator.clock import Clock
from kassay.reference.coordinator.config import DEFAULTS, CoordinatorConfig
from kassay.reference.coordinator.log import Log
from kassay.reference.model.topic_partitions import NO_PARTITIONS, TopicPartition
from kassay.reference.protocol import requests
from kassay.reference.protocol.classic_records import GroupMetadata, OffsetCommit, decode_record
from kassay.reference.protocol.requests import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinRequest,
    JoinResponse,
    SyncResponse,
)

MemberIdFactory = Callable[[str], str]


def numbered_member_ids() -> MemberIdFactory:
    """Return a function that creates member ids such as ``c0-00000001``, without a UUID."""
    counter = itertools.count(1)
    return lambda prefix: f"{prefix}-{next(counter):08d}"


class ClassicCoordinator:
    """Coordinator of one classic group, which handles requests and timeouts, and writes the log.

    The group is written when it is created or becomes empty, when a static member returns,
    and when the leader's assignment arrives, before any member receives it. The group and its
    offsets are loaded from the log; every session restarts. ``new_id`` creates a member id from
    an instance id or client id, ``on_state_change`` gets the time in milliseconds.

    Examples
    --------
    >>> from kassay.reference.protocol.subscription_messages import ConsumerSubscription
    >>> clock, answers = Clock(), []
    >>> coordinator = ClassicCoordinator("orders", clock)
    >>> offers = (requests.SupportedProtocol("range", ConsumerSubscription(("orders",))),)
    >>> coordinator.join(JoinRequest("", offers, client="c0"), answers.append)
    >>> coordinator.join(JoinRequest(answers[0].member_id, offers), answers.append)
    >>> clock.run(until=3_000)
    >>> [str(answer.code) for answer in answers], answers[1].generation
    (['MEMBER_ID_REQUIRED', 'NONE'], 1)
    >>> str(coordinator.group.state)
    'CompletingRebalance'
    """

    def __init__(
        self,
        group_id: str,
        clock: Clock,
        log: Log | None = None,
        *,
        config: CoordinatorConfig = DEFAULTS,
        new_id: MemberIdFactory | None = None,
        on_state_change: Callable[[int, states.GroupState], None] | None = None,
    ) -> None:
        self.group = ClassicGroup(group_id, clock.now, on_state_change)
        self.log = Log() if log is None else log
        self.offsets: dict[TopicPartition, int] = {}
        self._rebalance = ClassicRebalance(self.group, clock, self.log, config)
        self._clock = clock
        self._new_id = new_id or numbered_member_ids()
        for key, value in self.log.read():
            record = decode_record(key, value)
            if isinstance(record, OffsetCommit):
                self.offsets[record.partition] = record.offset
            else:
                self._restore(record)
        self._start_sessions()
        if len(self.group.members) > config.max_size:
            self._rebalance.prepare_rebalance()

    def adopt(self, record: GroupMetadata) -> None:
        """Take over the members and assignments of a stable group."""
        self._restore(record)
        self.log.append("group", record)
        self._start_sessions()

    def _start_sessions(self) -> None:
        for member in self.group.members.values():
            self._rebalance.restart_session(member)

    def join(self, request: JoinRequest, reply: requests.JoinReply) -> None:
        """Handle a JoinGroup request. The response goes to ``reply``, possibly much later."""
        if self.group.state is states.DEAD:
            reply(JoinResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
            return
        new_id = None
        if request.member_id == UNKNOWN_MEMBER:
            new_id = self._new_id(request.instance_id or request.client)
        is_new_group = not self.log.writes
        join(self._rebalance, request, reply, new_id=new_id)
        if is_new_group and not self.log.writes and not self.group.generation:
            self.log.append("group", GroupMetadata(self.group.id, "", 0, None, None, 0, ()))

    def sync(self, request: requests.SyncRequest, reply: requests.SyncReply) -> None:
        """Handle a SyncGroup request. Followers wait for the leader's assignment."""
        group = self.group
        code = self._validate(request.member_id, request.generation, request.instance_id)
        if code is NO_ERROR and request.protocol not in (None, group.protocol):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if code is not NO_ERROR:
            reply(SyncResponse(code))
        elif group.state is states.PREPARING_REBALANCE:
            reply(SyncResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        elif group.state is states.COMPLETING_REBALANCE:
            group.members[request.member_id].sync_reply = reply
            self._rebalance.remove_pending_sync(request.member_id)
            if group.leader == request.member_id:
                self._store_assignment(request)
        else:
            self._rebalance.remove_pending_sync(request.member_id)
            assignment = group.members[request.member_id].assignment
            reply(SyncResponse(NO_ERROR, assignment, group.protocol))

    def _store_assignment(self, request: requests.SyncRequest) -> None:
        assignments = request.assignments or {}
        for member in self.group.members.values():
            member.assignment = assignments.get(member.id, NO_PARTITIONS)
        self._rebalance.write_group()
        self._rebalance.propagate_assignment()
        self.group.transition_to(states.STABLE, self._clock.now)

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None
    ) -> ErrorCode:
        """Handle a Heartbeat request. After REBALANCE_IN_PROGRESS, the member must join again."""
        code = self._validate(member_id, generation, instance_id)
        if code is not NO_ERROR:
            return code
        self._rebalance.restart_session(self.group.members[member_id])
        if self.group.state is states.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def leave(self, *members: requests.MemberIdentity) -> tuple[ErrorCode, ...]:
        """Handle a LeaveGroup request, and return one error code per leaving member."""
        if self.group.state is states.DEAD:
            return (ErrorCode.COORDINATOR_NOT_AVAILABLE,) * len(members)
        codes = tuple(self._remove_member(member) for member in members)
        if NO_ERROR in codes:
            if self.group.state in (states.STABLE, states.COMPLETING_REBALANCE):
                self._rebalance.prepare_rebalance_or_complete_join()
            else:
                self._rebalance.maybe_complete_join()
        return codes

    def _remove_member(self, leaving: requests.MemberIdentity) -> ErrorCode:
        group, member_id = self.group, leaving.member_id
        if member_id == UNKNOWN_MEMBER:
            member_id = group.static_members.get(leaving.instance_id or "", UNKNOWN_MEMBER)
        elif member_id not in group.pending_joins:
            code = group.validate_member(member_id, leaving.instance_id)
            if code is not NO_ERROR:
                return code
        if member_id == UNKNOWN_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalance.cancel_session(member_id)
        member = group.members.get(member_id)
        if member is not None:
            group.respond_to_join(member, JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
        group.remove(member_id)
        return NO_ERROR

    def commit(self, member_id: str, generation: int, offsets: requests.Offsets) -> ErrorCode:
        """Handle an OffsetCommit request. An empty group accepts requests with generation -1."""
        group = self.group
        if group.state is states.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not (generation < 0 and group.state is states.EMPTY):
            code = self._validate(member_id, generation, None)
            if code is NO_ERROR and group.state is states.COMPLETING_REBALANCE:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            if code is not NO_ERROR:
                return code
        for partition, offset in offsets.items():
            self.offsets[partition] = offset
            self.log.append(partition, OffsetCommit(group.id, partition, offset, self._clock.now))
        return NO_ERROR

    def _validate(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        if self.group.state is states.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        code = self.group.validate_member(member_id, instance_id)
        if code is NO_ERROR and generation != self.group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    # ---- Fail-over ------------------------------------------------------------------

    def unload(self) -> None:
        """Stop coordinating. Pending requests fail with NOT_COORDINATOR."""
        group = self.group
        self._rebalance.cancel_timers()
        group.transition_to(states.DEAD, self._clock.now)
        for member in list(group.members.values()):
            group.respond_to_join(member, JoinResponse(ErrorCode.NOT_COORDINATOR, member.id))
            member.respond_to_sync(SyncResponse(ErrorCode.NOT_COORDINATOR))

    def _restore(self, record: GroupMetadata) -> None:
        group = self.group
        group.generation = record.generation
        for stored in record.members:
            request = JoinRequest(
                stored.member_id,
                (requests.SupportedProtocol(record.protocol or "", stored.subscription),),
                client=stored.client_id,
                instance_id=stored.instance_id,
                session_timeout=stored.session_timeout,
                rebalance_timeout=stored.rebalance_timeout,
            )
            member = ClassicMember(stored.member_id, request)
            member.assignment = stored.assignment
            group.add(member, None)
        group.protocol_type = record.protocol_type or None
        group.protocol = record.protocol
        group.leader = record.leader
        group.state_changed_at = record.timestamp
        group.state = states.STABLE if record.members else states.EMPTY
