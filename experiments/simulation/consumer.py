"""Base class of simulated consumers under the classic and the consumer protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kassay.experiments.simulation.environment import Environment
from kassay.experiments.simulation.script import MemberPlan
from kassay.reference.coordinator.runtime import Timer
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.protocol.group_messages import ErrorCode

RETRIABLE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Error codes after which a consumer sends its request again."""

_T = TypeVar("_T")


class Consumer(ABC):
    """A simulated consumer process that is stopped, running or suspended.

    A suspended consumer is either stalled or frozen. A stalled consumer does not poll, so
    it neither consumes nor rejoins, but it sends heartbeats. A frozen consumer, as in a long
    garbage collection, does nothing, and must reach the coordinator before it consumes again.
    """

    generation: int  # generation, or member epoch under the consumer protocol

    def __init__(self, environment: Environment, plan: MemberPlan) -> None:
        self.environment = environment
        self._clock, self._settings = environment.clock, environment.settings
        self._broker = environment.broker
        self._ownership, self._offsets = environment.ownership, environment.offsets
        self.plan = plan
        self.topics = tuple(sorted(plan.topics))
        self.name = plan.id
        self.instance_id = plan.id if plan.static else None
        self.member_id = ""
        self.owned: Partitions = NO_PARTITIONS
        self.is_up = False
        self.is_suspended = False
        self.is_frozen = False
        self._request_number = 0
        self._deferred: list[Callable[[], None]] = []
        self._consumes = True
        self._must_reach_coordinator = False
        self._committed_at = 0
        self._start_timer = environment.clock.timer(self.start)
        self._timers: list[Timer] = []
        self._heartbeat_timer = self._timer(self._heartbeat)
        self._poll_timer = self._timer(self._poll)
        self._max_poll_timer = self._timer(self._on_max_poll_exceeded)
        self._resume_timer = self._timer(self._end_suspension)

    # ---- Process --------------------------------------------------------------------

    def start_after(self, delay: int) -> None:
        """Start the consumer process after a delay in milliseconds."""
        self._start_timer.start(delay)

    def start(self) -> None:
        """Start the consumer process."""
        self._start_process()
        if self._settings.start_up:
            self._schedule(self._join_group, self._settings.start_up)
        else:
            self._join_group()
        self._start_polls()

    def continue_membership(self, member_id: str, owned: Partitions, generation: int) -> None:
        """Run as a member of a stable group since before the start of the simulation."""
        self._start_process()
        self.member_id = member_id
        self._acquire(owned)
        self._continue_membership(generation)
        self._start_polls()

    def _start_process(self) -> None:
        self._start_timer.cancel()
        self.is_up = True
        self.is_suspended = self.is_frozen = False
        self._consumes = True
        self._must_reach_coordinator = False
        self._deferred.clear()
        self._request_number += 1
        self._reset()

    def _start_polls(self) -> None:
        if self._offsets.is_active:
            self._poll_timer.start(self._settings.poll)

    def leave(self) -> None:
        """Close the consumer: commit, and leave the group. A static member does not leave."""
        if self.is_up:
            self._commit()
            if self.plan.leaves:
                self._leave_group()
            self._end()

    def crash(self) -> None:
        """Stop the consumer process without leaving the group."""
        if self.is_up:
            self._end()

    def _end(self) -> None:
        self._release(self.owned)
        self.is_up = False
        self._request_number += 1
        for timer in self._timers:
            timer.cancel()

    def _fail(self, code: ErrorCode) -> None:
        self.environment.add_note(self.name, f"stops with {code}")
        self.crash()

    def _timer(self, action: Callable[[], None]) -> Timer:
        timer = self._clock.timer(action)
        self._timers.append(timer)
        return timer

    def suspend(self, duration: int, *, frozen: bool) -> None:
        """Stop polling for ``duration`` ms. If ``frozen``, stop the whole process."""
        if self.is_up:
            if self._consumes and len(self.owned):
                self._ownership.release(self.owned, self._clock.now)
            self._consumes = False
            self.is_suspended = True
            self.is_frozen = self.is_frozen or frozen
            self._resume_timer.start(duration)
            if self.is_frozen:
                self._max_poll_timer.cancel()
            else:
                self._max_poll_timer.start(self._settings.max_poll)

    def _end_suspension(self) -> None:
        was_frozen, self.is_frozen, self.is_suspended = self.is_frozen, False, False
        self._max_poll_timer.cancel()
        deferred, self._deferred = self._deferred, []
        # The deferred responses may be out of date, and the group may have rebalanced.
        self._must_reach_coordinator = was_frozen or bool(deferred)
        for handle in deferred:
            handle()
        if self._must_reach_coordinator:
            self._verify_membership()
        else:
            self._continue()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Change the subscription of the consumer."""
        self.plan = replace(self.plan, topics=topics)
        self.topics = tuple(sorted(topics))
        if self.is_up:
            self._on_subscription_change()

    # ---- Consumption --------------------------------------------------------------------

    def _acquire(self, partitions: Partitions) -> None:
        if len(partitions):
            owned = self.owned
            self.owned = Partitions.of([*owned, *partitions]) if len(owned) else partitions
            self._offsets.seek_to_committed(partitions)
            if self._consumes:
                self._ownership.acquire(self.name, partitions, self._clock.now)

    def _release(self, partitions: Partitions) -> None:
        if len(partitions):
            if self._consumes:
                self._ownership.release(partitions, self._clock.now)
            if partitions is self.owned:
                self.owned = NO_PARTITIONS
            else:
                released = frozenset(partitions)
                self.owned = Partitions.of(tp for tp in self.owned if tp not in released)

    def _resume(self) -> None:
        if not (self._consumes or self.is_suspended or self._must_reach_coordinator):
            self._consumes = True
            if len(self.owned):
                self._ownership.acquire(self.name, self.owned, self._clock.now)

    def _poll(self) -> None:
        now = self._clock.now
        self._poll_timer.start(self._settings.poll)
        self._offsets.lag(now)
        if self._consumes:
            rate = self.plan.rate
            limit = None if rate is None else rate * self._settings.poll // 1000
            self._offsets.read(self.owned, limit, now)
            if now - self._committed_at >= self._settings.commit:
                self._commit()

    def _commit(self) -> None:
        self._committed_at = self._clock.now
        if self._consumes and self._offsets.is_active and len(self.owned):
            offsets = self._offsets.positions(self.owned)
            self._broker.commit(self.member_id, self.generation, offsets)

    # ---- Requests ---------------------------------------------------------------------

    def _response_to(self, handle: Callable[[_T], None]) -> Callable[[_T], None]:
        """Return a callback that handles the response to a new request.

        The response is handled after the network latency, unless the consumer sends another
        request first.
        """
        self._request_number += 1
        return partial(self._send_response, self._request_number, handle)

    def _send_response(self, request: int, handle: Callable[[_T], None], response: _T) -> None:
        if request == self._request_number:
            receive = partial(self._receive, request, handle, response)
            self._clock.after(self.environment.latency(), receive)

    def _schedule(self, action: Callable[[], None], delay: int) -> None:
        """Run an action after a delay, unless the consumer sends another request first."""
        self._request_number += 1
        self._clock.after(delay, partial(self._receive, self._request_number, action))

    def _receive(self, request: int, handle: Callable[..., None], *response: object) -> None:
        if request != self._request_number:
            return
        if self.is_suspended:
            self._deferred.append(partial(self._receive, request, handle, *response))
        else:
            handle(*response)

    @abstractmethod
    def _reset(self) -> None: ...

    @abstractmethod
    def _continue_membership(self, generation: int) -> None: ...

    @abstractmethod
    def _join_group(self) -> None: ...

    @abstractmethod
    def _heartbeat(self) -> None: ...

    @abstractmethod
    def _leave_group(self) -> None: ...

    @abstractmethod
    def _verify_membership(self) -> None: ...  # after a freeze

    @abstractmethod
    def _continue(self) -> None: ...  # after a stall

    @abstractmethod
    def _on_max_poll_exceeded(self) -> None: ...

    @abstractmethod
    def _on_subscription_change(self) -> None: ...
