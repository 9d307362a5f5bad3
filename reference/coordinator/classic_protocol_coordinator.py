"""Simulated group coordinator of the classic protocol: requests, rebalances, timers.

Upstream: org.apache.kafka.coordinator.group.classic.ClassicGroup, ClassicGroupMember and
ClassicGroupState; and the ``classicGroup...`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from kassay.reference.coordinator.runtime import DEFAULTS, Clock, CoordinatorConfig, Log, Timers
from kassay.reference.java_collections import first_in_map
from kassay.reference.model.errors import InternalError
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    CONSUMERS,
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    GroupMetadata,
    JoinedMember,
    JoinReply,
    JoinRequest,
    JoinResponse,
    MemberMetadata,
    OffsetCommit,
    Offsets,
    SupportedProtocol,
    SyncReply,
    SyncRequest,
    SyncResponse,
)


class GroupState(StrEnum):
    """State of a group under the classic protocol."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = GroupState
"""The states as constants: in Python 3.11 `GroupState.STABLE` takes ten times as long."""


VALID_PREVIOUS_STATES: Mapping[GroupState, tuple[GroupState, ...]] = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (EMPTY, COMPLETING_REBALANCE, STABLE),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: tuple(GroupState),
}
"""Valid previous states of each state."""


@dataclass(eq=False, slots=True)
class ClassicMember:
    """Member of a classic group, with the functions that answer its pending requests."""

    id: str
    instance_id: str | None
    request: JoinRequest  # with the values of the last one
    assignment: Partitions = NO_PARTITIONS
    is_new: bool = False
    join_reply: JoinReply | None = None
    sync_reply: SyncReply | None = None

    def offer(self, protocol: str | None) -> SupportedProtocol:
        """Return the supported protocol with the name ``protocol``, or raise InternalError."""
        for supported in self.request.offers:
            if supported.name == protocol:
                return supported
        raise InternalError(
            f"internal error: member {self.id!r} does not support the protocol {protocol!r}; "
            "report a bug"
        )

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Return whether the member needs no heartbeat because it waits for a response."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def respond_to_sync(self, response: SyncResponse) -> bool:
        """Answer the member's pending SyncGroup request. Return False if no request is pending."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is None:
            return False
        reply(response)
        return True


class ClassicGroup:
    """State of one classic group. Only `ClassicCoordinator` changes the state."""

    def __init__(
        self,
        group_id: str,
        now: int = 0,
        on_state_change: Callable[[int, GroupState], None] | None = None,
    ) -> None:
        self.id = group_id
        self._on_state_change = on_state_change
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_changed_at = now
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.has_user_data = False
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, None] = {}
        self.pending_syncs: dict[str, None] = {}
        self.new_member_added = False
        self.members_awaiting_join = 0
        self._supporters: Counter[str] = Counter()
        self._most_members = 0

    def transition_to(self, state: GroupState, now: int) -> None:
        """Change the state of the group. Raise InternalError for an invalid transition."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InternalError(
                f"internal error: a group cannot change from {self.state} to {state}; report a bug"
            )
        self.previous_state, self.state = self.state, state
        self.state_changed_at = now
        if self._on_state_change is not None:
            self._on_state_change(now, state)

    def add(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Add a member. The first member becomes the leader."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = CONSUMERS
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._most_members = max(self._most_members, len(self.members))
        self._supporters.update(protocol.name for protocol in member.request.offers)
        self.set_join_reply(member, reply)
        self.pending_joins.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member, and replace the leader if necessary."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(protocol.name for protocol in member.request.offers)
            if member.join_reply is not None:
                self.members_awaiting_join -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = first_in_map(self.members, largest_size=self._most_members)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def replace_static_member(self, old_id: str, new_id: str) -> ClassicMember:
        """Change the id of a static member; reject the pending requests of the old id."""
        member = self.members.pop(old_id)
        self.respond_to_join(member, JoinResponse(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.respond_to_sync(SyncResponse(ErrorCode.FENCED_INSTANCE_ID))
        member.id = new_id
        member.is_new = False
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        return member

    def update_member(
        self, member: ClassicMember, request: JoinRequest, reply: JoinReply | None
    ) -> None:
        """Update a member with the values of its repeated JoinGroup request."""
        self._supporters.subtract(protocol.name for protocol in member.request.offers)
        self._supporters.update(protocol.name for protocol in request.offers)
        member.request = member.request._replace(
            offers=request.offers,
            session_timeout=request.session_timeout,
            rebalance_timeout=request.rebalance_timeout,
        )
        self.set_join_reply(member, reply)

    def set_join_reply(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Set or clear the reply function of a member's pending JoinGroup request."""
        if reply is not None:
            self.members_awaiting_join += 1
        if member.join_reply is not None:
            self.members_awaiting_join -= 1
        member.join_reply = reply

    def respond_to_join(self, member: ClassicMember, response: JoinResponse) -> None:
        """Answer a member's JoinGroup request if the request is pending."""
        reply = member.join_reply
        if reply is not None:
            self.set_join_reply(member, None)
            reply(response)

    def validate_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check the ids of a request. Return `ErrorCode.NONE` or an error code."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def has_all_members_joined(self) -> bool:
        """Return whether all members and all clients with a new id have sent JoinGroup."""
        return len(self.members) == self.members_awaiting_join and not self.pending_joins

    @property
    def rebalance_timeout(self) -> int:
        """Return the maximum rebalance timeout of the members in milliseconds."""
        return max((one.request.rebalance_timeout for one in self.members.values()), default=0)

    def maybe_elect_new_joined_leader(self) -> bool:
        """Replace a leader that has not joined. Return False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_reply is not None:
            return True
        joined = [member.id for member in self.members.values() if member.join_reply is not None]
        chosen = first_in_map(joined, largest_size=self._most_members)
        if chosen is None:
            return False
        self.leader = chosen
        return True

    def supports_protocols(self, offers: Sequence[SupportedProtocol]) -> bool:
        """Return whether a member that supports the protocols ``offers`` can join."""
        if self.state is EMPTY:
            return bool(offers)
        return len(self.members) in [self._supporters[protocol.name] for protocol in offers]

    def select_protocol(self) -> str:
        """Select the protocol with the most votes among the protocols that all members support."""
        member_count = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == member_count}
        if member_count and len(candidates) == 1:
            return candidates.pop()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((p.name for p in member.request.offers if p.name in candidates), None)
            if choice is None:
                raise InternalError(
                    f"internal error: member {member.id!r} supports none of the protocols "
                    f"{sorted(candidates)}; report a bug"
                )
            votes[choice] += 1
        most = max(votes.values(), default=0)
        winners = [name for name, count in votes.items() if count == most]
        winner = first_in_map(winners, largest_size=len(votes))
        if winner is None:
            raise InternalError("internal error: the group has no members; report a bug")
        return winner

    def init_next_generation(self, now: int) -> None:
        """Start the sync phase of the next generation. Without members, change to state Empty."""
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.select_protocol() if self.members else None
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, now)

    def join_response(
        self, member_id: str, *, with_members: bool = True, skip_assignment: bool = False
    ) -> JoinResponse:
        """Build the response to a JoinGroup request. Only the leader receives the members."""
        members: tuple[JoinedMember, ...] = ()
        if with_members and member_id == self.leader:
            members = tuple(
                JoinedMember(member.id, member.instance_id, member.offer(self.protocol).metadata)
                for member in self.members.values()
            )
        return JoinResponse(
            NO_ERROR,
            member_id,
            self.generation,
            self.protocol,
            self.leader,
            members,
            skip_assignment,
        )


def numbered_member_ids() -> Callable[[str], str]:
    """Return a function that creates numbered member ids, such as ``c0-00000001``."""
    counter = itertools.count(1)
    return lambda prefix: f"{prefix}-{next(counter):08d}"


class ClassicCoordinator:
    """Coordinator of one classic group. It handles requests and writes the log.

    The group is written when it is created or becomes empty, when a static member returns,
    and when the leader's assignment arrives, before any member receives it. The group and its
    offsets are loaded from the log; every session restarts. ``new_id`` creates a member id from
    an instance id or client id, ``on_state_change`` gets the time in milliseconds.
    """

    def __init__(
        self,
        group_id: str,
        clock: Clock,
        log: Log | None = None,
        *,
        config: CoordinatorConfig = DEFAULTS,
        new_id: Callable[[str], str] | None = None,
        on_state_change: Callable[[int, GroupState], None] | None = None,
    ) -> None:
        self.group = ClassicGroup(group_id, clock.now, on_state_change)
        self.log = Log() if log is None else log
        self.offsets: dict[TopicPartition, int] = {}
        self._clock = clock
        self._config = config
        self._new_id = new_id or numbered_member_ids()
        self._join_timer = clock.timer(self._complete_join)
        self._sync_timer = clock.timer(self._on_sync_timeout)
        self._delay_timer = clock.timer(self._on_initial_delay)
        self._delay = self._delay_left = 0
        self._sessions = Timers(clock)  # also of clients with a new member id
        for _, record in self.log.read():
            if isinstance(record, OffsetCommit):
                self.offsets[record.partition] = record.offset
            elif isinstance(record, GroupMetadata):
                self._restore(record)
        if len(self.group.members) > config.max_size:
            self._prepare_rebalance()

    def adopt(self, record: GroupMetadata, *, has_user_data: bool = False) -> None:
        """Load a stable group from a record, and write the record to the log."""
        self._restore(record)
        self.group.has_user_data = has_user_data
        self.log.append("group", record)

    def downgrade(self, members: Iterable[MemberMetadata], epoch: int) -> None:
        """Load the members of a downgraded group, and start a rebalance."""
        group = self.group
        group.generation = epoch
        self._add_members(members)
        group.protocol = group.select_protocol()
        group.state = STABLE
        self._prepare_rebalance()

    def _add_members(self, members: Iterable[MemberMetadata]) -> None:
        for request, assignment in members:
            member = ClassicMember(request.member_id, request.instance_id, request, assignment)
            self.group.add(member, None)
            self._restart_session(member)

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Handle a JoinGroup request. Call ``reply`` with the response, possibly later."""
        if self.group.state is DEAD:
            reply(JoinResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
            return
        self._join(request, reply)
        if not self.log.writes and not self.group.generation:
            self.log.append("group", GroupMetadata(self.group.id, "", 0, None, None, 0, ()))

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup request. Followers wait for the leader's assignment."""
        group = self.group
        code = self._validate(request.member_id, request.generation, request.instance_id)
        if code is NO_ERROR and request.protocol not in (None, group.protocol):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if code is not NO_ERROR:
            reply(SyncResponse(code))
        elif group.state is PREPARING_REBALANCE:
            reply(SyncResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        else:
            group.pending_syncs.pop(request.member_id, None)
            if not group.pending_syncs:
                self._sync_timer.cancel()
            member = group.members[request.member_id]
            if group.state is STABLE:
                reply(SyncResponse(NO_ERROR, member.assignment, group.protocol))
                return
            member.sync_reply = reply
            if group.leader == member.id:
                group.has_user_data = request.has_user_data
                assignments = request.assignments or {}
                for one in group.members.values():
                    one.assignment = assignments.get(one.id, NO_PARTITIONS)
                self._write_group()
                self._respond_to_syncs(NO_ERROR)
                group.transition_to(STABLE, self._clock.now)

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None
    ) -> ErrorCode:
        """Handle a Heartbeat request. After REBALANCE_IN_PROGRESS, the member must join again."""
        code = self._validate(member_id, generation, instance_id)
        if code is not NO_ERROR:
            return code
        self._restart_session(self.group.members[member_id])
        if self.group.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        """Handle a LeaveGroup request. An administrator may send only an instance id."""
        group = self.group
        if group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if member_id == UNKNOWN_MEMBER:
            member_id = group.static_members.get(instance_id or "", UNKNOWN_MEMBER)
        elif member_id not in group.pending_joins:
            code = group.validate_member(member_id, instance_id)
            if code is not NO_ERROR:
                return code
        if member_id == UNKNOWN_MEMBER:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove(member_id)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self._prepare_rebalance()
        else:
            self._maybe_complete_join()
        return NO_ERROR

    def _remove(self, member_id: str) -> None:
        self._sessions.cancel(member_id)
        member = self.group.members.get(member_id)
        if member is not None:
            response = JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER)
            self.group.respond_to_join(member, response)
        self.group.remove(member_id)

    def commit(self, member_id: str, generation: int, offsets: Offsets) -> ErrorCode:
        """Handle an OffsetCommit request. An empty group accepts requests with generation -1."""
        group = self.group
        if not (generation < 0 and group.state is EMPTY):
            code = self._validate(member_id, generation, None)
            if code is NO_ERROR and group.state is COMPLETING_REBALANCE:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            if code is not NO_ERROR:
                return code
        for partition, offset in offsets.items():
            self.offsets[partition] = offset
            self.log.append(partition, OffsetCommit(group.id, partition, offset, self._clock.now))
        return NO_ERROR

    def _validate(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        if self.group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        code = self.group.validate_member(member_id, instance_id)
        if code is NO_ERROR and generation != self.group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    # ---- Join phase ---------------------------------------------------------------

    def _prepare_rebalance_or_complete_join(self) -> None:
        if self.group.state in VALID_PREVIOUS_STATES[PREPARING_REBALANCE]:
            self._prepare_rebalance()
        else:
            self._maybe_complete_join()

    def _prepare_rebalance(self) -> None:
        """Start the join phase. Members that wait for an assignment must join again."""
        group = self.group
        if group.state is COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = NO_PARTITIONS
            self._respond_to_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self._sync_timer.cancel()
        was_empty = group.state is EMPTY
        group.transition_to(PREPARING_REBALANCE, self._clock.now)
        if was_empty:
            delay = self._config.initial_rebalance_delay
            self._start_initial_delay(delay, max(group.rebalance_timeout - delay, 0))
        elif group.has_all_members_joined:
            self._complete_join()
        else:
            self._join_timer.start(group.rebalance_timeout)

    def _maybe_complete_join(self) -> None:
        """End the join phase if all members have joined and no initial delay is running."""
        group = self.group
        if (
            group.state is PREPARING_REBALANCE
            and group.previous_state is not EMPTY
            and group.has_all_members_joined
        ):
            self._complete_join()

    def _start_initial_delay(self, delay: int, remaining: int) -> None:
        self._delay, self._delay_left = delay, remaining
        self._delay_timer.start(delay)

    def _on_initial_delay(self) -> None:
        """Extend the initial delay if a member has joined meanwhile, else end the join phase."""
        remaining = self._delay_left
        if self.group.new_member_added and remaining:
            self.group.new_member_added = False
            delay = min(self._config.initial_rebalance_delay, remaining)
            self._start_initial_delay(delay, max(remaining - self._delay, 0))
        else:
            self._complete_join()

    def _complete_join(self) -> None:
        """End the join phase, and remove dynamic members that have not joined."""
        group = self.group
        self._join_timer.cancel()
        self._delay_timer.cancel()
        late = [m for m in group.members.values() if m.join_reply is None and not m.instance_id]
        for member in late:
            self._remove(member.id)
        if not group.maybe_elect_new_joined_leader() and group.members:
            # Only static members are left and none has joined: wait for their session timeouts.
            self._join_timer.start(group.rebalance_timeout)
            return
        group.init_next_generation(self._clock.now)
        if group.state is EMPTY:
            self._write_group()
            return
        for member in list(group.members.values()):
            group.respond_to_join(member, group.join_response(member.id))
            self._restart_session(member)
            member.is_new = False
            group.pending_syncs[member.id] = None
        self._sync_timer.start(group.rebalance_timeout)

    # ---- Sync phase ---------------------------------------------------------------

    def _respond_to_syncs(self, code: ErrorCode) -> None:
        for member in list(self.group.members.values()):
            protocol = self.group.protocol if code is NO_ERROR else None
            if member.respond_to_sync(SyncResponse(code, member.assignment, protocol)):
                self._restart_session(member)

    def _on_sync_timeout(self) -> None:
        group = self.group
        if not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self._remove(member_id)
        self._prepare_rebalance()

    # ---- Sessions -----------------------------------------------------------------

    def _restart_session(self, member: ClassicMember) -> None:
        self._start_session(member.id, member.request.session_timeout)

    def _start_session(self, member_id: str, timeout: int) -> None:
        self._sessions.start(member_id, timeout, partial(self._on_session_timeout, member_id))

    def _on_session_timeout(self, member_id: str) -> None:
        group = self.group
        self._sessions.cancel(member_id)
        member = group.members.get(member_id)
        is_member = member is not None and not member.has_satisfied_heartbeat
        if not is_member and member_id not in group.pending_joins:
            return
        self._remove(member_id)
        if is_member and group.state is not PREPARING_REBALANCE:
            self._prepare_rebalance_or_complete_join()
        elif group.state is PREPARING_REBALANCE and group.has_all_members_joined:
            self._complete_join()

    # ---- Persistence --------------------------------------------------------------

    def _write_group(self) -> None:
        group = self.group
        members = tuple(
            MemberMetadata(
                one.request._replace(member_id=one.id, offers=(one.offer(group.protocol),)),
                one.assignment,
            )
            for one in group.members.values()
        )
        record = GroupMetadata(
            group.id,
            group.protocol_type or "",
            group.generation,
            group.protocol,
            group.leader,
            group.state_changed_at,
            members,
        )
        self.log.append("group", record)

    # ---- Join requests ----------------------------------------------------------------

    def _join(self, request: JoinRequest, reply: JoinReply) -> None:
        group = self.group
        if not self._has_room(request.member_id):
            group.remove(request.member_id)
            reply(JoinResponse(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
            return
        if not group.supports_protocols(request.offers):
            reply(JoinResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return
        if request.member_id != UNKNOWN_MEMBER:
            self._join_known(request, reply)
            return
        new_id = self._new_id(request.instance_id or request.client)
        if request.instance_id is not None:
            self._join_static(request, reply, new_id)
        else:
            # The new member id expires if no member joins with it.
            group.pending_joins[new_id] = None
            self._start_session(new_id, request.session_timeout)
            reply(JoinResponse(ErrorCode.MEMBER_ID_REQUIRED, new_id))

    def _has_room(self, member_id: str) -> bool:
        group, max_size = self.group, self._config.max_size
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            is_waiting = member is not None and member.join_reply is not None
            return is_waiting or group.members_awaiting_join < max_size
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return member is not None or len(group.members) < max_size
        return True

    def _add(self, request: JoinRequest, reply: JoinReply, member_id: str) -> None:
        group = self.group
        member = ClassicMember(member_id, request.instance_id, request, is_new=True)
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.new_member_added = True
        group.add(member, reply)
        self._start_session(member.id, self._config.new_member_join_timeout)
        self._prepare_rebalance_or_complete_join()

    def _join_known(self, request: JoinRequest, reply: JoinReply) -> None:
        group = self.group
        if request.member_id in group.pending_joins:
            self._add(request, reply, request.member_id)
            return
        code = group.validate_member(request.member_id, request.instance_id)
        if code is not NO_ERROR:
            reply(JoinResponse(code, request.member_id))
            return
        member = group.members[request.member_id]
        if group.state is EMPTY:
            reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        # The leader joins a stable group again when the topics' metadata change.
        elif (
            group.state is PREPARING_REBALANCE
            or member.request.offers != request.offers
            or (group.state is STABLE and group.leader == member.id)
        ):
            group.update_member(member, request, reply)
            self._prepare_rebalance_or_complete_join()
        else:
            # The member may have lost the response to the same JoinGroup.
            reply(group.join_response(member.id, with_members=group.state is not STABLE))

    def _join_static(self, request: JoinRequest, reply: JoinReply, new_id: str) -> None:
        group = self.group
        old_id = group.static_members.get(request.instance_id or "")
        if old_id is None:
            self._add(request, reply, new_id)
            return
        self._sessions.cancel(old_id)
        member = group.replace_static_member(old_id, new_id)
        self._restart_session(member)
        group.update_member(member, request, reply)
        if group.state is COMPLETING_REBALANCE:
            # The leader may have received the old id and must receive the new one.
            self._prepare_rebalance()
        elif group.state is not STABLE:
            self._maybe_complete_join()
        elif group.select_protocol() != group.protocol:
            self._prepare_rebalance_or_complete_join()
        else:
            self._write_group()
            skip = group.leader == member.id
            group.respond_to_join(member, group.join_response(member.id, skip_assignment=skip))

    # ---- Fail-over ------------------------------------------------------------------

    def unload(self) -> None:
        """Stop all timers, set the state to Dead, and answer pending requests with an error."""
        group = self.group
        for timer in (self._join_timer, self._delay_timer, self._sync_timer):
            timer.cancel()
        self._sessions.cancel_all()
        group.transition_to(DEAD, self._clock.now)
        for member in list(group.members.values()):
            group.respond_to_join(member, JoinResponse(ErrorCode.NOT_COORDINATOR, member.id))
            member.respond_to_sync(SyncResponse(ErrorCode.NOT_COORDINATOR))

    def _restore(self, record: GroupMetadata) -> None:
        group = self.group
        group.generation = record.generation
        self._add_members(record.members)
        group.protocol_type = record.protocol_type or None
        group.protocol = record.protocol
        group.leader = record.leader
        group.state_changed_at = record.timestamp
        group.state = STABLE if record.members else EMPTY
