"""Find rebalances and their causes in log messages of brokers and clients."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kassay.experiments.history.log_messages import (
    LogEvent,
    LogEventKind,
    RebalanceCause,
    cause_of,
    client_of,
)
from kassay.reference.model.group import Protocol

_OPEN_GENERATIONS = 64
"""Number of open generations per group, because logs of clients can differ in order."""
_RESTART_MS = 600_000
"""Maximum time in ms between leaving and joining of a client that counts as a restart."""
_REMEMBERED = 2_000
"""Number of clients per group for which kassay keeps the time of the last leave."""
_SAME_REBALANCE_MS = 10_000
"""Maximum time in ms between the ends of one rebalance at two members."""
_SHOWN_LINES = 4
"""Maximum number of log lines that kassay keeps per rebalance."""
_MEMBER_IN_REASON = re.compile(
    r"(?:[Mm]ember|[Ll]eader|static member|for \()\s*(?:MemberMetadata\(memberId=)?"
    r"(?!with |metadata )([^\s,;()]+)"
)
_PASSIVE = (RebalanceCause.OTHER_MEMBER, RebalanceCause.UNKNOWN)


@dataclass(slots=True, kw_only=True)
class LogRebalance:
    """Rebalance in a log: a generation (classic protocol) or an epoch (consumer protocol).

    ``started`` and ``ended`` are in milliseconds since 1970; ``ended`` is None if the log does not
    contain the end. ``joined``, ``left``, ``expired`` (session timeout) and ``timed_out`` (poll or
    rebalance timeout) are member ids or, in logs of clients, client ids. ``member`` caused the
    rebalance. ``absences`` are the longest times in ms until clients joined again, by the cause of
    their leaves; ``leave_cause`` is that cause for ``member``. ``settings`` is a message with the
    settings of a member. ``lines`` are the lines of the first messages.
    """

    group: str
    protocol: Protocol
    number: int | None = None
    started: int | None = None
    ended: int | None = None
    reason: str | None = None
    cause: RebalanceCause = RebalanceCause.UNKNOWN
    member: str | None = None
    members: int | None = None
    assignor: str | None = None
    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    timed_out: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    absences: dict[RebalanceCause, int] = field(default_factory=dict)
    leave_cause: RebalanceCause | None = None
    settings: LogEvent | None = None
    from_coordinator: bool = True
    is_stabilized: bool = False
    lines: list[LogEvent] = field(default_factory=list)

    @property
    def not_stable_ms(self) -> int:
        """Return the duration of the rebalance in milliseconds, or 0 if it is unknown."""
        if self.started is None or self.ended is None:
            return 0
        return max(0, self.ended - self.started)

    def show(self, event: LogEvent) -> None:
        """Store the line of a message, unless `_SHOWN_LINES` lines are stored already."""
        if len(self.lines) < _SHOWN_LINES:
            self.lines.append(event)


_CAUSE_OF_CHANGE = {
    LogEventKind.TIMED_OUT: RebalanceCause.POLL_TIMEOUT,
    LogEventKind.EXPIRED: RebalanceCause.SESSION_TIMEOUT,
    LogEventKind.LEFT: RebalanceCause.LEAVE,
    LogEventKind.JOINED: RebalanceCause.JOIN,
    LogEventKind.REPLACED: RebalanceCause.STATIC_MEMBER,
}
"""Cause of a rebalance without a stated reason, by preceding change. The first match counts."""
_CHANGES = {kind: kind.replace(" ", "_") for kind in _CAUSE_OF_CHANGE}
"""Name of the `LogRebalance` field with the members that had a kind of change."""


@dataclass(slots=True)
class _ClientState:
    """State of a client from its request to join until the end of the rebalance."""

    started: int | None = None
    reason: str | None = None
    cause: RebalanceCause = RebalanceCause.UNKNOWN
    number: int | None = None
    stable: int | None = None  # generation of the last rebalance
    members: int | None = None
    assignor: str | None = None
    is_rejoining: bool = False
    is_new: bool = False  # its first message is a request to join
    is_consumer: bool = False  # of the consumer protocol
    events: list[LogEvent] = field(default_factory=list)


class RebalanceLog:
    """Builder of the rebalances of a group from log messages in order of time."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._open: LogRebalance | None = None
        self._recent: OrderedDict[int, LogRebalance] = OrderedDict()
        self._changes: list[LogEvent] = []
        self._clients: dict[str, _ClientState] = {}
        self._departed: OrderedDict[str, tuple[int, RebalanceCause]] = OrderedDict()
        self._has_coordinator = False

    def add(self, event: LogEvent) -> Iterator[LogRebalance]:
        """Add a message, and yield the rebalances that are then complete."""
        if event.client is None:
            self._has_coordinator = True
            yield from self._add_of_coordinator(event)
        else:
            yield from self._add_of_client(event)

    def flush(self) -> Iterator[LogRebalance]:
        """Yield the remaining rebalances, after the last message was added."""
        yield from self._close(None)
        yield from self._recent.values()
        self._recent.clear()

    # ---- Messages of the coordinator -----------------------------------------

    def _add_of_coordinator(self, event: LogEvent) -> Iterator[LogRebalance]:
        if event.kind in _CHANGES or event.kind is LogEventKind.CHANGED:
            self._change(event)
            return
        match event.kind:
            case LogEventKind.PREPARING:
                yield from self._start(event)
            case LogEventKind.STABILIZED:
                self._stabilize(event)
            case LogEventKind.ASSIGNED | LogEventKind.EMPTY:
                yield from self._complete(event)
            case LogEventKind.BUMPED | LogEventKind.COMPUTED if event.number is not None:
                yield from self._at_epoch(event, event.number)
            case LogEventKind.ACKNOWLEDGED:
                known = self._recent.get(event.number or 0)
                if known is not None and event.reason == "STABLE":
                    known.ended = event.time
            case LogEventKind.ABANDONED:
                self._changes = [each for each in self._changes if each.member != event.member]

    def _stabilize(self, event: LogEvent) -> None:
        one = self._open or self._new(event, Protocol.CLASSIC)  # The log can start here.
        one.number, one.members, one.is_stabilized = event.number, event.size, True
        one.ended = event.time
        one.show(event)
        self._open = one

    def _complete(self, event: LogEvent) -> Iterator[LogRebalance]:
        one = self._open
        if one is None or event.number != one.number:
            return  # The log starts later, or the leader answers to an older generation.
        if event.kind is LogEventKind.EMPTY:
            one.members = 0
        one.members = one.members if event.size is None else event.size
        one.assignor = event.assignor or one.assignor
        one.show(event)
        yield from self._close(event.time)

    def _start(self, event: LogEvent) -> Iterator[LogRebalance]:
        yield from self._close(event.time)
        number = (event.number or 0) + 1
        if self._recent and number <= next(reversed(self._recent)):
            yield from self.flush()  # The group has been deleted and created again.
        self._open = one = self._new(event, Protocol.CLASSIC)
        one.number, one.reason, one.cause = number, event.reason, cause_of(event.reason)
        found = _MEMBER_IN_REASON.search(event.reason or "")
        one.member = found[1] if found else None
        self._take_changes(one)
        if one.member is not None and "joins" not in (event.reason or ""):
            self._apply_reason(one, one.member, event)

    def _apply_reason(self, one: LogRebalance, member: str, event: LogEvent) -> None:
        if one.cause is RebalanceCause.JOIN:
            self._join(one, member, event.time)
        left = {
            RebalanceCause.SESSION_TIMEOUT: one.expired,
            RebalanceCause.POLL_TIMEOUT: one.timed_out,
            RebalanceCause.LEAVE: one.left,
        }.get(one.cause)
        if left is not None:
            if member not in left:
                left.append(member)
            self._depart(member, event.time, one.cause)

    def _at_epoch(self, event: LogEvent, number: int) -> Iterator[LogRebalance]:
        """Start or extend the rebalance of an epoch, or end it if its target is computed."""
        yield from self._close(event.time)
        one = self._recent.get(number)
        if one is None:
            if self._recent and number < next(reversed(self._recent)):
                yield from self.flush()
            one = self._new(event, Protocol.CONSUMER)
            one.number = number
            self._take_changes(one)
            yield from self._keep(one)
        else:
            one.show(event)
        if event.kind is LogEventKind.COMPUTED:
            one.assignor = event.assignor or one.assignor
            one.ended = event.time

    def _new(self, event: LogEvent, protocol: Protocol) -> LogRebalance:
        one = LogRebalance(group=self._group, protocol=protocol, started=event.time)
        one.show(event)
        return one

    def _close(self, time: int | None) -> Iterator[LogRebalance]:
        """End the open rebalance, at ``time`` (ms since 1970) if it is not None."""
        one, self._open = self._open, None
        if one is not None:
            one.ended = time if time is not None else one.ended
            yield from self._keep(one)

    def _keep(self, one: LogRebalance) -> Iterator[LogRebalance]:
        if one.number is None:
            yield one
            return
        replaced = self._recent.pop(one.number, None)
        if replaced is not None:
            yield replaced
        self._recent[one.number] = one
        if len(self._recent) > _OPEN_GENERATIONS:
            yield self._recent.popitem(last=False)[1]

    def _change(self, event: LogEvent) -> None:
        one = self._open
        last = next(reversed(self._recent.values()), None)
        has_left = event.kind is LogEventKind.LEFT  # in the last rebalance, as its reason states
        if one is None and last and has_left and event.member in (*last.left, *last.timed_out):
            last.settings = event if event.session_timeout else last.settings
        elif one is None or one.is_stabilized:
            self._add_change(event)
        else:
            self._apply(one, event)

    def _add_change(self, event: LogEvent) -> None:
        self._changes.append(event)
        # The log can contain no rebalance of the group, only changes.
        del self._changes[:-_REMEMBERED]

    def _take_changes(self, one: LogRebalance) -> None:
        changes, self._changes = self._changes, []
        changes = [
            event
            for event in changes
            # The coordinator knows whether a client that leaves is a static member.
            if not (event.client is not None and event.kind is LogEventKind.LEFT)
            and not _is_without_rebalance(event, one)
        ]
        for event in changes:
            self._apply(one, event)
            known = event.client is None and None not in (one.started, event.time)
            if known and one.protocol is Protocol.CONSUMER:
                # The partitions of a fenced member have no owner before the epoch of the next one.
                one.started = min(one.started or 0, event.time or 0)
        if one.cause is not RebalanceCause.UNKNOWN or _take_cause(one, changes):
            return
        stated_change = next((event for event in changes if event.reason), None)
        if stated_change is not None:
            one.reason, one.cause = stated_change.reason, cause_of(stated_change.reason)
            one.member = stated_change.member
        elif one.protocol is Protocol.CONSUMER and not changes:
            # Since 4.0, the level of these messages is debug.
            one.cause = RebalanceCause.SUBSCRIPTION

    def _apply(self, one: LogRebalance, event: LogEvent) -> None:
        one.show(event)
        one.settings = event if event.session_timeout else one.settings
        name = _CHANGES.get(event.kind)
        if name is None:
            return
        stated = cause_of(event.reason)
        has_left = event.kind is LogEventKind.LEFT
        if has_left and stated is RebalanceCause.POLL_TIMEOUT:
            name = "timed_out"
        if event.kind is LogEventKind.TIMED_OUT and one.cause is RebalanceCause.LEAVE:
            one.cause = RebalanceCause.POLL_TIMEOUT  # as the log of the client states
        listed: list[str] = getattr(one, name)
        for member in _members(event):
            if event.kind is LogEventKind.JOINED:
                self._join(one, member, event.time)
            elif member not in listed:
                listed.append(member)
                if event.kind is not LogEventKind.REPLACED:
                    self._depart(member, event.time, _cause_of_change(event))
        if has_left and one.cause is RebalanceCause.LEAVE and stated not in _PASSIVE:
            # The member is the one of the reason, which names no cause of the client.
            one.cause, one.left = stated, [each for each in one.left if each not in listed]

    def _join(self, one: LogRebalance, member: str, time: int | None) -> None:
        if member not in one.joined:
            one.joined.append(member)
        departed, cause = self._departed.pop(client_of(member), (None, RebalanceCause.UNKNOWN))
        if departed is None or time is None or not 0 <= time - departed <= _RESTART_MS:
            return
        one.absences[cause] = max(time - departed, one.absences.get(cause, 0))
        if one.cause is RebalanceCause.JOIN and one.member in (member, None):
            one.cause, one.member, one.leave_cause = RebalanceCause.RESTART, member, cause

    def _depart(self, member: str, time: int | None, cause: RebalanceCause) -> None:
        if time is None or client_of(member) == member:
            return  # Member ids of the consumer protocol do not name the client.
        self._departed[client_of(member)] = time, cause
        if len(self._departed) > _REMEMBERED:
            self._departed.popitem(last=False)

    # ---- Messages of clients -------------------------------------------------

    def _add_of_client(self, event: LogEvent) -> Iterator[LogRebalance]:
        name = event.client or ""
        state = self._clients.setdefault(name, _ClientState())
        if state.is_consumer and event.kind is LogEventKind.SYNCED and event.protocol == "classic":
            return  # librdkafka reports the join state before the new epoch
        state.is_consumer |= event.protocol == "consumer"
        if event.kind is LogEventKind.SYNCED:
            number = event.number if event.number is not None else state.number
            if state.is_rejoining and number is not None:
                yield from self._sync(name, state, event, number)
        elif event.kind is LogEventKind.IN_GENERATION:
            yield from self._in_generation(name, state, event)
        elif event.kind in (LogEventKind.REJOIN, LogEventKind.JOINING):
            # After a leave, the client joins again at the next poll, if at all.
            if cause_of(event.reason) is not RebalanceCause.LEAVE:
                if not state.is_rejoining:
                    state.is_rejoining, state.started = True, event.time
                    is_first = state.stable is None and state.cause is RebalanceCause.UNKNOWN
                    state.is_new = is_first and event.kind is LogEventKind.JOINING
                self._state_reason(state, event)
        elif event.kind is not LogEventKind.LEFT:
            self._state_reason(state, event)
            self._add_change(event._replace(member=name))
        elif state.cause is not RebalanceCause.POLL_TIMEOUT:  # which is the cause of the leave
            self._clients[name] = _ClientState()
            self._add_change(event._replace(member=name))

    def _in_generation(
        self, name: str, state: _ClientState, event: LogEvent
    ) -> Iterator[LogRebalance]:
        """Add a generation that a client reports before its assignment."""
        number, is_consumer = event.number, event.protocol == "consumer"
        # A member of the consumer protocol has a new epoch before or after it reconciles.
        is_new = number != state.number if is_consumer else state.is_rejoining
        state.number, state.members = number, event.size or None  # only the leader knows the size
        state.assignor = event.assignor or state.assignor
        if is_new and number is not None:
            yield from self._sync(name, state, event, number)
            following = self._clients[name]
            if not is_consumer:
                following.is_rejoining, following.started = True, event.time

    @staticmethod
    def _state_reason(state: _ClientState, event: LogEvent) -> None:
        cause = cause_of(event.reason)
        if state.reason is None or (state.cause in _PASSIVE and cause not in _PASSIVE):
            state.reason = event.reason or state.reason
        if state.cause in _PASSIVE and cause is not RebalanceCause.UNKNOWN:
            state.cause = cause
        if len(state.events) < _SHOWN_LINES:
            state.events.append(event)

    def _sync(
        self, name: str, state: _ClientState, event: LogEvent, number: int
    ) -> Iterator[LogRebalance]:
        """Merge a client's finished rebalance into the rebalance of the group."""
        is_consumer = state.is_consumer
        self._clients[name] = _ClientState(number=number, stable=number, is_consumer=is_consumer)
        if event.protocol == "consumer" and number == state.stable:
            number = self._epoch_of(state, number)
        one = self._recent.get(number)
        if one is None and self._open is not None and self._open.number == number:
            one = self._open
        if one is None:
            if self._has_coordinator:
                return  # Its log does not cover this time.
            one = self._new_of_client(state, event, number)
            yield from self._keep(one)
        one.assignor = event.assignor or state.assignor or one.assignor
        one.members = one.members if state.members is None else state.members
        self._explain(one, name, state)
        if not one.from_coordinator:
            starts = [time for time in (one.started, state.started) if time is not None]
            ends = [time for time in (one.ended, event.time) if time is not None]
            one.started, one.ended = min(starts, default=None), max(ends, default=None)
        for each in (*state.events, event):
            one.show(each)

    def _new_of_client(self, state: _ClientState, event: LogEvent, number: int) -> LogRebalance:
        one = LogRebalance(
            group=self._group,
            protocol=Protocol.CONSUMER if event.protocol == "consumer" else Protocol.CLASSIC,
            number=number,
            started=state.started,
            ended=event.time,
            from_coordinator=False,
        )
        changes, self._changes = self._changes, []
        for change in changes:
            one.show(change)
            getattr(one, _CHANGES[change.kind]).append(change.member)
            if change.time is not None:
                self._departed[change.member or ""] = change.time, _cause_of_change(change)
        _take_cause(one, changes)
        return one

    def _explain(self, one: LogRebalance, name: str, state: _ClientState) -> None:
        """Replace a rebalance's cause by the cause in a client's log if that is more exact."""
        # Errors of the first requests are no causes.
        cause = RebalanceCause.JOIN if state.is_new else state.cause
        if one.cause is RebalanceCause.UNKNOWN or (
            one.cause in _PASSIVE and cause is not RebalanceCause.UNKNOWN
        ):
            one.cause, one.reason = cause, state.reason
            one.member = name if cause not in _PASSIVE else None
        if cause is RebalanceCause.JOIN:
            self._join(one, name, state.started)

    def _epoch_of(self, state: _ClientState, epoch: int) -> int:
        """Return the group's epoch in a rebalance that does not change the member's epoch.

        In such a rebalance, the member revokes partitions for a member of a later epoch. Or it gets
        partitions that a member of the same epoch has revoked.
        """
        newest = next(reversed(self._recent.values()), None)
        if newest is None or newest.number is None:
            return epoch + 1
        is_same = (
            newest.ended is None
            or state.started is None
            or state.started - newest.ended < _SAME_REBALANCE_MS
        )
        return newest.number if is_same and newest.number >= epoch else epoch + 1


def _take_cause(one: LogRebalance, changes: Sequence[LogEvent]) -> bool:
    """Set the cause of a rebalance from changes of members, and return whether there are any."""
    for kind in _CAUSE_OF_CHANGE:
        found = next((event for event in changes if event.kind is kind), None)
        if found is not None:
            one.cause = _cause_of_change(found)
            if one.cause is RebalanceCause.JOIN and one.absences:
                one.cause, one.leave_cause = RebalanceCause.RESTART, next(iter(one.absences))
            one.member, one.reason = found.member or found.instance, found.reason
            return True
    return False


def _cause_of_change(event: LogEvent) -> RebalanceCause:
    stated = cause_of(event.reason)
    return _CAUSE_OF_CHANGE[event.kind] if stated in _PASSIVE else stated


def _is_without_rebalance(event: LogEvent, one: LogRebalance) -> bool:
    stated = (RebalanceCause.STATIC_MEMBER, RebalanceCause.PROTOCOL)
    if event.kind is not LogEventKind.REPLACED or one.cause in stated:
        return False
    if one.cause is not RebalanceCause.UNKNOWN or one.protocol is Protocol.CONSUMER:
        return True
    if event.time is None or one.started is None:
        return True
    return event.time < one.started - _SAME_REQUEST_MS


_SAME_REQUEST_MS = 1_000
"""Maximum time in ms between the messages of one request."""
_SET = re.compile(r"^(?:\w*Set|\w*Map|List)?[\[({]*(.*?)[\])}]*$", re.DOTALL)


def _members(event: LogEvent) -> Iterable[str]:
    if event.member is None:
        return () if event.instance is None else (event.instance,)
    if event.kind is not LogEventKind.TIMED_OUT or event.client is not None:
        return (event.member,)
    inside = _SET.match(event.member)
    return [one.strip() for one in (inside[1] if inside else "").split(",") if one.strip()]


def rebalances_of_log(events: Iterable[LogEvent]) -> Iterator[LogRebalance]:
    """Find the rebalances in log messages that are in order of time.

    The rebalances of a group are in order. A rebalance is yielded when a later message can no
    longer change it.
    """
    groups: dict[str, RebalanceLog] = {}
    for event in events:
        if event.group not in groups:
            groups[event.group] = RebalanceLog(event.group)
        yield from groups[event.group].add(event)
    for log in groups.values():
        yield from log.flush()
