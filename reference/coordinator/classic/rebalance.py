"""Rebalance of a classic group: join phase, sync phase, and their timers.

Upstream: org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from functools import partial

from kassay.reference.coordinator.classic import states
from kassay.reference.coordinator.classic.classic_group import ClassicGroup, ClassicMember
from kassay.reference.coordinator.clock import Clock, Timer, cancel_timer
from kassay.reference.coordinator.config import CoordinatorConfig
from kassay.reference.coordinator.log import Log
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.protocol import requests
from kassay.reference.protocol.classic_records import GroupMetadata, MemberMetadata
from kassay.reference.protocol.requests import NO_ERROR, ErrorCode, JoinResponse, SyncResponse

_CAN_REBALANCE = states.VALID_PREVIOUS_STATES[states.PREPARING_REBALANCE]


class ClassicRebalance:
    """Rebalance of one classic group: join phase, sync phase and session timeouts."""

    def __init__(
        self, group: ClassicGroup, clock: Clock, log: Log, config: CoordinatorConfig
    ) -> None:
        self.group = group
        self.clock = clock
        self.log = log
        self.config = config
        self._join_timer = clock.timer(self.complete_join)
        self._sync_timer = clock.timer(self._on_sync_timeout)
        self._delay_timer = clock.timer(self._on_initial_delay)
        self._delay = self._delay_left = 0
        self._pending_timers: dict[str, Timer] = {}

    # ---- Join phase ---------------------------------------------------------------

    def prepare_rebalance_or_complete_join(self) -> None:
        """Start a rebalance if the state allows it. Otherwise try to complete the join phase."""
        if self.group.state in _CAN_REBALANCE:
            self.prepare_rebalance()
        else:
            self.maybe_complete_join()

    def prepare_rebalance(self) -> None:
        """Start the join phase. Members that wait for an assignment must join again."""
        group = self.group
        if group.state is states.COMPLETING_REBALANCE:
            self.reset_and_propagate_error(ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self._sync_timer.cancel()
        was_empty = group.state is states.EMPTY
        group.transition_to(states.PREPARING_REBALANCE, self.clock.now)
        if was_empty:
            delay = self.config.initial_rebalance_delay
            self._start_initial_delay(delay, max(group.rebalance_timeout - delay, 0))
        elif group.has_all_members_joined:
            self.complete_join()
        else:
            self._join_timer.start(group.rebalance_timeout)

    def maybe_complete_join(self) -> None:
        """End the join phase if all members have joined and no initial delay is running."""
        group = self.group
        if (
            group.state is states.PREPARING_REBALANCE
            and group.previous_state is not states.EMPTY
            and group.has_all_members_joined
        ):
            self.complete_join()

    def _start_initial_delay(self, delay: int, remaining: int) -> None:
        self._delay, self._delay_left = delay, remaining
        self._delay_timer.start(delay)

    def _on_initial_delay(self) -> None:
        """Extend the initial delay if a member joined during it, otherwise end the join phase."""
        remaining = self._delay_left
        if self.group.new_member_added and remaining:
            self.group.new_member_added = False
            delay = min(self.config.initial_rebalance_delay, remaining)
            self._start_initial_delay(delay, max(remaining - self._delay, 0))
        else:
            self.complete_join()

    def complete_join(self) -> None:
        """End the join phase, and remove dynamic members that have not joined."""
        group = self.group
        self._join_timer.cancel()
        self._delay_timer.cancel()
        late = [m for m in group.members.values() if m.join_reply is None and not m.instance_id]
        for member in late:
            self.cancel_session(member.id)
            group.remove(member.id)
        if not group.maybe_elect_new_joined_leader() and group.members:
            # Only static members are left and none has joined: wait for their session timeouts.
            self._join_timer.start(group.rebalance_timeout)
            return
        group.init_next_generation(self.clock.now)
        if group.state is states.EMPTY:
            self.write_group()
            return
        for member in list(group.members.values()):
            group.respond_to_join(member, group.join_response(member.id))
            self.restart_session(member)
            member.is_new = False
            group.pending_syncs[member.id] = None
        self._sync_timer.start(group.rebalance_timeout)

    # ---- Sync phase ---------------------------------------------------------------

    def reset_and_propagate_error(self, code: ErrorCode) -> None:
        """Reset all assignments, and answer pending SyncGroup requests with an error code."""
        for member in list(self.group.members.values()):
            member.assignment = NO_PARTITIONS
            self._respond_to_sync(member, SyncResponse(code))

    def propagate_assignment(self) -> None:
        """Send the assignments in response to all pending SyncGroup requests."""
        for member in list(self.group.members.values()):
            response = SyncResponse(NO_ERROR, member.assignment, self.group.protocol)
            self._respond_to_sync(member, response)

    def remove_pending_sync(self, member_id: str) -> None:
        """Record that a member has sent its SyncGroup request."""
        self.group.pending_syncs.pop(member_id, None)
        if not self.group.pending_syncs:
            self._sync_timer.cancel()

    def _respond_to_sync(self, member: ClassicMember, response: SyncResponse) -> None:
        if member.respond_to_sync(response):
            self.restart_session(member)

    def _on_sync_timeout(self) -> None:
        """Remove members that sent no SyncGroup request within the rebalance timeout."""
        group = self.group
        if not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.cancel_session(member_id)
            group.remove(member_id)
        self.prepare_rebalance()

    # ---- Sessions -----------------------------------------------------------------

    def restart_session(self, member: ClassicMember, timeout: int | None = None) -> None:
        """Restart a member's session timer."""
        session = member.session
        if session is None:
            pending = self._pending_timers.pop(member.id, None)
            session = member.session = pending or self._timer(member.id)
        session.start(member.session_timeout if timeout is None else timeout)

    def start_pending_join_timer(self, member_id: str, timeout: int) -> None:
        """Start the timer after which a member id expires if no member joins with this id."""
        timer = self._pending_timers[member_id] = self._timer(member_id)
        timer.start(timeout)

    def _timer(self, member_id: str) -> Timer:
        return self.clock.timer(partial(self._on_session_timeout, member_id))

    def cancel_session(self, member_id: str) -> None:
        """Cancel the session timer of a member or a pending member."""
        cancel_timer(self._pending_timers, member_id)
        member = self.group.members.get(member_id)
        if member is not None and member.session is not None:
            member.session.cancel()
            member.session = None

    def _on_session_timeout(self, member_id: str) -> None:
        group = self.group
        self.cancel_session(member_id)
        member = group.members.get(member_id)
        if member_id in group.pending_joins:
            group.remove(member_id)
            if group.state is states.PREPARING_REBALANCE and group.has_all_members_joined:
                self.complete_join()
        elif member is not None and not member.has_satisfied_heartbeat:
            group.respond_to_join(
                member, JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, requests.UNKNOWN_MEMBER)
            )
            group.remove(member_id)
            if group.state is not states.PREPARING_REBALANCE:
                self.prepare_rebalance_or_complete_join()
            elif group.has_all_members_joined:
                self.complete_join()

    def cancel_timers(self) -> None:
        """Cancel all timers of the group and of its members."""
        for timer in (self._join_timer, self._delay_timer, self._sync_timer):
            timer.cancel()
        for member_id in (*self.group.members, *self._pending_timers):
            self.cancel_session(member_id)

    # ---- Persistence --------------------------------------------------------------

    def write_group(self) -> None:
        """Append the group's metadata record to the log."""
        group = self.group
        members = tuple(
            MemberMetadata(
                member.id,
                member.instance_id,
                member.client,
                f"/{member.client}",
                member.rebalance_timeout,
                member.session_timeout,
                member.metadata(group.protocol),
                member.assignment,
            )
            for member in group.members.values()
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
