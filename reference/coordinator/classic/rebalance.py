"""The course of a rebalance: join phase, sync phase, and the timers that watch over both.

Upstream: org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from functools import partial

from kassay.reference.coordinator.classic.classic_group import ClassicGroup, ClassicMember
from kassay.reference.coordinator.classic.states import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    REACHED_FROM,
)
from kassay.reference.coordinator.clock import Clock, Timer, stop
from kassay.reference.coordinator.config import CoordinatorConfig
from kassay.reference.coordinator.log import Log
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.protocol.classic_records import GroupMetadata, MemberMetadata
from kassay.reference.protocol.messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinResponse,
    SyncResponse,
)

_CAN_REBALANCE = REACHED_FROM[PREPARING_REBALANCE]


class RebalanceProcess:
    """Brings one group from a change of membership to its next generation.

    Parameters
    ----------
    group
        The group.
    clock
        Where its timers are.
    log
        Where it is written.
    config
        The broker's settings.
    """

    def __init__(
        self, group: ClassicGroup, clock: Clock, log: Log, config: CoordinatorConfig
    ) -> None:
        self.group = group
        self.clock = clock
        self.log = log
        self.config = config
        self._join_timer = clock.timer(self.complete_join)
        self._sync_timer = clock.timer(self._end_sync)
        self._delay_timer = clock.timer(self._end_delay)
        self._delay = self._delay_left = 0
        self._pending_timers: dict[str, Timer] = {}

    # ---- The join phase -----------------------------------------------------------

    def begin_or_advance(self) -> None:
        """Begin a rebalance where the state allows one, else see whether one can go on."""
        if self.group.state in _CAN_REBALANCE:
            self.begin()
        else:
            self.advance()

    def begin(self) -> None:
        """Begin the join phase; whoever waits for an assignment is told to join again."""
        group = self.group
        if group.state is COMPLETING_REBALANCE:
            self.fail_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
        self._forget_syncs()
        is_first = group.state is EMPTY
        group.move_to(PREPARING_REBALANCE, self.clock.now)
        if is_first:
            delay = self.config.initial_rebalance_delay
            self._delay_first(delay, max(group.rebalance_timeout - delay, 0))
        elif group.all_joined:
            self.complete_join()
        else:
            self._join_timer.start(group.rebalance_timeout)

    def advance(self) -> None:
        """End the join phase if everybody is there; an empty group's first waits its delay."""
        group = self.group
        if (
            group.state is PREPARING_REBALANCE
            and group.previous_state is not EMPTY
            and group.all_joined
        ):
            self.complete_join()

    def _delay_first(self, delay: int, remaining: int) -> None:
        self._delay, self._delay_left = delay, remaining
        self._delay_timer.start(delay)

    def _end_delay(self) -> None:
        """Wait once more if somebody new has come, up to the rebalance timeout in all."""
        remaining = self._delay_left
        if self.group.new_member_added and remaining:
            self.group.new_member_added = False
            again = min(self.config.initial_rebalance_delay, remaining)
            self._delay_first(again, max(remaining - self._delay, 0))
        else:
            self.complete_join()

    def complete_join(self) -> None:
        """End the join phase without those who are late, static members excepted."""
        group = self.group
        self._join_timer.cancel()
        self._delay_timer.cancel()
        late = [m for m in group.members.values() if m.join_reply is None and not m.instance_id]
        for member in late:
            self.forget_session(member.id)
            group.remove(member.id)
        if not group.elect_among_joined() and group.members:
            # Only static members are left and none has joined: wait for their sessions.
            self._join_timer.start(group.rebalance_timeout)
            return
        group.next_generation(self.clock.now)
        if group.state is EMPTY:
            self.write()
            return
        everybody = group.joined()
        for member in list(group.members.values()):
            members = everybody if member.id == group.leader else ()
            response = JoinResponse(
                NO_ERROR, member.id, group.generation, group.protocol, group.leader, members
            )
            group.answer_join(member, response)
            self.keep_alive(member)
            member.is_new = False
            group.pending_syncs[member.id] = None
        self._sync_timer.start(group.rebalance_timeout)

    # ---- The sync phase -----------------------------------------------------------

    def fail_syncs(self, code: ErrorCode) -> None:
        """Take every assignment back, and tell those who wait for one why."""
        for member in list(self.group.members.values()):
            member.assignment = NO_PARTITIONS
            self._answer_sync(member, SyncResponse(code))

    def propagate(self) -> None:
        """Answer everybody who waits for its assignment."""
        for member in list(self.group.members.values()):
            self._answer_sync(
                member, SyncResponse(NO_ERROR, member.assignment, self.group.protocol)
            )

    def received_sync(self, member_id: str) -> None:
        """Note that a member has asked for its assignment."""
        self.group.pending_syncs.pop(member_id, None)
        if not self.group.pending_syncs:
            self._sync_timer.cancel()

    def _answer_sync(self, member: ClassicMember, response: SyncResponse) -> None:
        if member.answer_sync(response):
            self.keep_alive(member)

    def _forget_syncs(self) -> None:
        self.group.pending_syncs.clear()
        self._sync_timer.cancel()

    def _end_sync(self) -> None:
        """Remove who has not asked for its assignment within the rebalance timeout."""
        group = self.group
        if not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.forget_session(member_id)
            group.remove(member_id)
        self.begin()

    # ---- Sessions -----------------------------------------------------------------

    def keep_alive(self, member: ClassicMember, timeout: int | None = None) -> None:
        """Start a member's session timeout anew: it expires unless it is heard of in time."""
        session = member.session
        if session is None:
            pending = self._pending_timers.pop(member.id, None)
            session = member.session = pending or self._timer(member.id)
        session.start(member.session_timeout if timeout is None else timeout)

    def watch_pending(self, member_id: str, timeout: int) -> None:
        """Give up an id that was given out unless somebody joins with it in time."""
        timer = self._pending_timers[member_id] = self._timer(member_id)
        timer.start(timeout)

    def _timer(self, member_id: str) -> Timer:
        return self.clock.timer(partial(self._expire_session, member_id))

    def forget_session(self, member_id: str) -> None:
        """Stop watching a member, or an id given out."""
        stop(self._pending_timers, member_id)
        member = self.group.members.get(member_id)
        if member is not None and member.session is not None:
            member.session.cancel()
            member.session = None

    def _expire_session(self, member_id: str) -> None:
        group = self.group
        self.forget_session(member_id)
        member = group.members.get(member_id)
        if member_id in group.pending_joins:
            group.remove(member_id)
            if group.state is PREPARING_REBALANCE and group.all_joined:
                self.complete_join()
        elif member is not None and not member.has_satisfied_heartbeat:
            group.answer_join(member, JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
            group.remove(member_id)
            if group.state is not PREPARING_REBALANCE:
                self.begin_or_advance()
            elif group.all_joined:
                self.complete_join()

    def stop(self) -> None:
        """Stop every timer."""
        for timer in (self._join_timer, self._delay_timer, self._sync_timer):
            timer.cancel()
        for member_id in (*self.group.members, *self._pending_timers):
            self.forget_session(member_id)

    # ---- Persistence --------------------------------------------------------------

    def write(self) -> None:
        """Write the group to the log as it is now."""
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
            group.since,
            members,
        )
        self.log.append("group", record)
