"""What every simulated consumer does, whichever protocol it speaks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kassay.experiments.simulation.script import MemberPlan
from kassay.reference.coordinator.clock import Timer
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions

if TYPE_CHECKING:
    from kassay.experiments.simulation.simulation import Simulation


_T = TypeVar("_T")


class Consumer(ABC):
    """A consumer: alive or not, polling or not, with the partitions that it consumes.

    Two things can hold it up. Stalled, it does not poll, and so neither consumes nor
    rejoins, but its heartbeats go on. Frozen, as in a long garbage collection, it does
    nothing at all, and has to hear from the coordinator before it consumes again.

    Parameters
    ----------
    world
        Where it lives.
    plan
        How it is configured.
    """

    def __init__(self, world: "Simulation", plan: MemberPlan) -> None:
        self.world = world
        self._clock, self._settings = world.clock, world.settings
        self._broker, self._ledger, self._traffic = world.broker, world.ledger, world.traffic
        self.plan = plan
        self.topics = tuple(sorted(plan.topics))
        self.name = plan.id
        self.instance_id = plan.id if plan.static else None
        self.member_id = ""
        self.owned: Partitions = NO_PARTITIONS
        self.is_up = False
        self.is_stalled = False
        self.is_frozen = False
        self._ticket = 0
        self._inbox: list[Callable[[], None]] = []
        self._consumes = True
        self._must_hear = False
        self._committed_at = 0
        self._starting = world.clock.timer(self.start)
        self._timers: list[Timer] = []
        self._heartbeat = self._timer(self._beat)
        self._next_poll = self._timer(self._poll)
        self._poll_limit = self._timer(self._missed_poll)
        self._waking = self._timer(self._wake)

    # ---- Life -----------------------------------------------------------------------

    def start_after(self, delay: int) -> None:
        """Start the process some time from now."""
        self._starting.start(delay)

    def start(self) -> None:
        """Start the process."""
        self._starting.cancel()
        self.is_up = True
        self.is_stalled = self.is_frozen = False
        self._consumes = True
        self._must_hear = False
        self._inbox.clear()
        self._ticket += 1
        self._reset()
        self._begin()
        if self._traffic.is_on:
            self._next_poll.start(self._settings.poll)

    def leave(self) -> None:
        """Close the consumer: commit, and say good-bye unless it is a static member."""
        if self.is_up:
            self._commit()
            self._say_goodbye()
            self._end()

    def crash(self) -> None:
        """End the process without a word."""
        if self.is_up:
            self._end()

    def _end(self) -> None:
        self._let_go(self.owned)
        self.is_up = False
        self._ticket += 1
        for timer in self._timers:
            timer.cancel()

    def _timer(self, action: Callable[[], None]) -> Timer:
        """Make a timer that ends with the process."""
        timer = self._clock.timer(action)
        self._timers.append(timer)
        return timer

    def hold_up(self, lasts: int, *, frozen: bool) -> None:
        """Stall or freeze it for some time."""
        if self.is_up:
            self._pause()
            self.is_stalled = True
            self.is_frozen = self.is_frozen or frozen
            self._waking.start(lasts)
            if self.is_frozen:
                self._poll_limit.cancel()
            else:
                self._poll_limit.start(self._settings.max_poll)

    def _wake(self) -> None:
        was_frozen, self.is_frozen, self.is_stalled = self.is_frozen, False, False
        self._poll_limit.cancel()
        waiting, self._inbox = self._inbox, []
        # What came meanwhile may be out of date, and the group may have gone on without it.
        self._must_hear = was_frozen or bool(waiting)
        for deliver in waiting:
            deliver()
        if self._must_hear:
            self._check_in()
        else:
            self._go_on()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Change the subscription."""
        self.plan = replace(self.plan, topics=topics)
        self.topics = tuple(sorted(topics))
        if self.is_up:
            self._subscription_changed()

    # ---- Consumption --------------------------------------------------------------------

    def _take(self, partitions: Partitions) -> None:
        """Begin to consume, now or once it polls again."""
        if len(partitions):
            self.owned = _union(self.owned, partitions)
            self._traffic.start(partitions)
            if self._consumes:
                self._ledger.take(self.name, partitions, self._clock.now)

    def _let_go(self, partitions: Partitions) -> None:
        """Stop consuming."""
        if len(partitions):
            if self._consumes:
                self._ledger.release(partitions, self._clock.now)
            self.owned = _difference(self.owned, partitions)

    def _pause(self) -> None:
        if self._consumes and len(self.owned):
            self._ledger.release(self.owned, self._clock.now)
        self._consumes = False

    def _resume(self) -> None:
        """Poll again, from where it stopped."""
        if not (self._consumes or self.is_stalled or self._must_hear):
            self._consumes = True
            if len(self.owned):
                self._ledger.take(self.name, self.owned, self._clock.now)

    def _poll(self) -> None:
        now = self._clock.now
        self._next_poll.start(self._settings.poll)
        self._traffic.lag(now)
        if self._consumes:
            rate = self.plan.rate
            limit = None if rate is None else rate * self._settings.poll // 1000
            self._traffic.read(self.owned, limit, now)
            if now - self._committed_at >= self._settings.commit:
                self._commit()

    def _commit(self) -> None:
        """Commit how far it has read."""
        self._committed_at = self._clock.now
        if self._consumes and self._traffic.is_on and len(self.owned):
            offsets = self._traffic.positions(self.owned)
            self._broker.commit(self.member_id, self.commit_generation, offsets)

    # ---- Requests ---------------------------------------------------------------------

    def _ask(self, handle: Callable[[_T], None]) -> Callable[[_T], None]:
        """Return where the answer to a request goes.

        It is handled after the network's latency, unless something newer was asked.
        """
        self._ticket += 1
        return partial(self._answer, self._ticket, handle)

    def _answer(self, ticket: int, handle: Callable[[_T], None], response: _T) -> None:
        if ticket == self._ticket:
            arrive = partial(self._arrive, ticket, handle, response)
            self._clock.after(self.world.latency(), arrive)

    def _later(self, deliver: Callable[[], None], delay: int) -> None:
        """Do something after a delay, unless something newer was asked."""
        self._ticket += 1
        self._clock.after(delay, partial(self._arrive, self._ticket, deliver))

    def _arrive(self, ticket: int, deliver: Callable[..., None], *what: object) -> None:
        if ticket != self._ticket:
            return
        if self.is_stalled:
            self._inbox.append(partial(self._arrive, ticket, deliver, *what))
        else:
            deliver(*what)

    @property
    @abstractmethod
    def commit_generation(self) -> int:
        """Generation or epoch that its commits are made in."""

    @abstractmethod
    def _reset(self) -> None:
        """Forget all of a former life."""

    @abstractmethod
    def _begin(self) -> None:
        """Join the group."""

    @abstractmethod
    def _beat(self) -> None:
        """Send a heartbeat, and see to the next one."""

    @abstractmethod
    def _say_goodbye(self) -> None:
        """Tell the coordinator that it leaves."""

    @abstractmethod
    def _check_in(self) -> None:
        """Ask the coordinator whether it is still a member, after a freeze."""

    @abstractmethod
    def _go_on(self) -> None:
        """Go on after a stall."""

    @abstractmethod
    def _missed_poll(self) -> None:
        """Leave the group, having not polled for too long."""

    @abstractmethod
    def _subscription_changed(self) -> None:
        """Tell the coordinator of the new subscription."""


def _union(some: Partitions, more: Partitions) -> Partitions:
    return Partitions.of([*some, *more]) if len(some) else more


def _difference(some: Partitions, less: Partitions) -> Partitions:
    if less is some:
        return NO_PARTITIONS
    without = frozenset(less)
    return Partitions.of(tp for tp in some if tp not in without)
