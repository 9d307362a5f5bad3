"""The coordinator of one group under the classic protocol, request by request."""

import itertools
from collections.abc import Callable

from kassay.reference.coordinator.classic.classic_group import ClassicGroup, ClassicMember
from kassay.reference.coordinator.classic.join_group import join
from kassay.reference.coordinator.classic.rebalance import RebalanceProcess
from kassay.reference.coordinator.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from kassay.reference.coordinator.clock import Clock
from kassay.reference.coordinator.config import DEFAULTS, CoordinatorConfig
from kassay.reference.coordinator.log import Log
from kassay.reference.model.topic_partitions import NO_PARTITIONS, TopicPartition
from kassay.reference.protocol.classic_records import GroupMetadata, OffsetCommit, decode_record
from kassay.reference.protocol.messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinReply,
    JoinRequest,
    JoinResponse,
    MemberIdentity,
    Offsets,
    SupportedProtocol,
    SyncReply,
    SyncRequest,
    SyncResponse,
)

MemberIds = Callable[[str], str]
Watch = Callable[[int, GroupState], None]


def counted_ids() -> MemberIds:
    """Make member ids as the broker does, with a count where it puts a random UUID.

    Examples
    --------
    >>> new_id = counted_ids()
    >>> new_id("c0"), new_id("c0")
    ('c0-00000001', 'c0-00000002')
    """
    counter = itertools.count(1)
    return lambda prefix: f"{prefix}-{next(counter):08d}"


class ClassicCoordinator:
    """Coordinates one group: takes requests, answers, keeps time, writes to the log.

    The group is written at the two moments at which Kafka writes it: when a join phase
    ends (or a group begins) with nobody in it, and when the leader's assignment has come,
    before anybody is told of it; a static member's return is written as well. Whatever a
    member has been told survives the coordinator.

    Parameters
    ----------
    group_id
        Name of the group.
    clock
        Virtual time.
    log
        Where it writes, and reads on `load`.
    config
        The broker's settings.
    new_id
        Makes the id of a new member from its instance id or else its client id.
    watch
        Told of every change of the group's state, with the time in milliseconds.

    Examples
    --------
    >>> from kassay.reference.protocol.consumer_protocol import ConsumerSubscription
    >>> clock, answers = Clock(), []
    >>> coordinator = ClassicCoordinator("orders", clock)
    >>> offers = (SupportedProtocol("range", ConsumerSubscription(("orders",))),)
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
        new_id: MemberIds | None = None,
        on_state_change: Watch | None = None,
    ) -> None:
        self.group = ClassicGroup(group_id, clock.now, on_state_change)
        self.log = Log() if log is None else log
        self.offsets: dict[TopicPartition, int] = {}
        self._rebalancing = RebalanceProcess(self.group, clock, self.log, config)
        self._clock = clock
        self._new_id = new_id or counted_ids()

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Take a JoinGroup; the answer comes through ``reply``, maybe much later."""
        if self.group.state is DEAD:
            reply(JoinResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
            return
        new_id = None
        if request.member_id == UNKNOWN_MEMBER:
            new_id = self._new_id(request.instance_id or request.client)
        begins = not self.log.writes
        join(self._rebalancing, request, reply, new_id=new_id)
        if begins and not self.log.writes and not self.group.generation:
            self.log.append("group", GroupMetadata(self.group.id, "", 0, None, None, 0, ()))

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Take a SyncGroup; followers are answered once the leader's has come."""
        group = self.group
        code = self._validate(request.member_id, request.generation, request.instance_id)
        if code is NO_ERROR and request.protocol not in (None, group.protocol):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if code is not NO_ERROR:
            reply(SyncResponse(code))
        elif group.state is PREPARING_REBALANCE:
            reply(SyncResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        elif group.state is COMPLETING_REBALANCE:
            group.members[request.member_id].sync_reply = reply
            self._rebalancing.received_sync(request.member_id)
            if group.leader == request.member_id:
                self._store(request)
        else:
            self._rebalancing.received_sync(request.member_id)
            assignment = group.members[request.member_id].assignment
            reply(SyncResponse(NO_ERROR, assignment, group.protocol))

    def _store(self, request: SyncRequest) -> None:
        assignments = request.assignments or {}
        for member in self.group.members.values():
            member.assignment = assignments.get(member.id, NO_PARTITIONS)
        self._rebalancing.write()
        self._rebalancing.propagate()
        self.group.move_to(STABLE, self._clock.now)

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None
    ) -> ErrorCode:
        """Take a Heartbeat; REBALANCE_IN_PROGRESS tells the member to join again."""
        code = self._validate(member_id, generation, instance_id)
        if code is not NO_ERROR:
            return code
        self._rebalancing.keep_alive(self.group.members[member_id])
        if self.group.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def leave(self, *leavers: MemberIdentity) -> tuple[ErrorCode, ...]:
        """Take a LeaveGroup; one code a leaver."""
        if self.group.state is DEAD:
            return (ErrorCode.COORDINATOR_NOT_AVAILABLE,) * len(leavers)
        codes = tuple(self._let_go(leaver) for leaver in leavers)
        if NO_ERROR in codes:
            if self.group.state in (STABLE, COMPLETING_REBALANCE):
                self._rebalancing.begin_or_advance()
            else:
                self._rebalancing.advance()
        return codes

    def _let_go(self, leaver: MemberIdentity) -> ErrorCode:
        group, member_id = self.group, leaver.member_id
        if member_id == UNKNOWN_MEMBER:
            member_id = group.static_members.get(leaver.instance_id or "", UNKNOWN_MEMBER)
        elif member_id not in group.pending_joins:
            code = group.validate(member_id, leaver.instance_id)
            if code is not NO_ERROR:
                return code
        if member_id == UNKNOWN_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalancing.forget_session(member_id)
        member = group.members.get(member_id)
        if member is not None:
            group.answer_join(member, JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
        group.remove(member_id)
        return NO_ERROR

    def commit(
        self, member_id: str, generation: int, offsets: Offsets, instance_id: str | None = None
    ) -> ErrorCode:
        """Take an OffsetCommit, from a member or, with generation -1, of an empty group."""
        group = self.group
        if group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not (generation < 0 and group.state is EMPTY):
            code = self._validate(member_id, generation, instance_id)
            if code is NO_ERROR and group.state is COMPLETING_REBALANCE:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            if code is not NO_ERROR:
                return code
        for partition, offset in offsets.items():
            self.offsets[partition] = offset
            record = OffsetCommit(group.id, partition, offset, self._clock.now)
            self.log.append(partition, record)
        return NO_ERROR

    def _validate(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        if self.group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        code = self.group.validate(member_id, instance_id)
        if code is NO_ERROR and generation != self.group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    # ---- Fail-over ------------------------------------------------------------------

    def unload(self) -> None:
        """Stop being the coordinator: everybody who waits is sent to another one."""
        group = self.group
        self._rebalancing.stop()
        group.move_to(DEAD, self._clock.now)
        for member in list(group.members.values()):
            group.answer_join(member, JoinResponse(ErrorCode.NOT_COORDINATOR, member.id))
            member.answer_sync(SyncResponse(ErrorCode.NOT_COORDINATOR))

    @classmethod
    def load(
        cls,
        group_id: str,
        clock: Clock,
        log: Log,
        *,
        config: CoordinatorConfig = DEFAULTS,
        new_id: MemberIds | None = None,
        on_state_change: Watch | None = None,
    ) -> "ClassicCoordinator":
        """Take over from the log: group and offsets are as they were last written.

        Every session starts anew, since nobody knows when its member was last heard of.
        """
        coordinator = cls(
            group_id, clock, log, config=config, new_id=new_id, on_state_change=on_state_change
        )
        for key, value in log.read():
            record = decode_record(key, value)
            if isinstance(record, OffsetCommit):
                coordinator.offsets[record.partition] = record.offset
            else:
                coordinator._restore(record)
        for member in coordinator.group.members.values():
            coordinator._rebalancing.keep_alive(member)
        if len(coordinator.group.members) > config.max_size:
            coordinator._rebalancing.begin()
        return coordinator

    def _restore(self, record: GroupMetadata) -> None:
        group = self.group
        group.generation = record.generation
        for kept in record.members:
            request = JoinRequest(
                kept.member_id,
                (SupportedProtocol(record.protocol or "", kept.subscription),),
                client=kept.client_id,
                instance_id=kept.instance_id,
                session_timeout=kept.session_timeout,
                rebalance_timeout=kept.rebalance_timeout,
            )
            member = ClassicMember(kept.member_id, request)
            member.assignment = kept.assignment
            group.add(member, None)
        group.protocol_type = record.protocol_type or None
        group.protocol = record.protocol
        group.leader = record.leader
        group.since = record.timestamp
        group.state = STABLE if record.members else EMPTY
