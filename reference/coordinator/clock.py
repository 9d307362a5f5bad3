"""Virtual time: what happens next, in milliseconds, without waiting for it."""

import heapq
from collections.abc import Callable

Action = Callable[[], None]

_NEVER = 1 << 62


class Clock:
    """Things to do at given moments; time passes from one moment to the next.

    What is due at the same moment happens in the order in which it was asked for, so a
    run depends on nothing but what was put in.

    Examples
    --------
    >>> clock, seen = Clock(), []
    >>> clock.after(30, lambda: seen.append("late"))
    >>> clock.after(10, lambda: seen.append("early"))
    >>> clock.run(until=20)
    >>> clock.now, seen
    (20, ['early'])
    """

    __slots__ = ("_due", "_moments", "now")

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self._due: dict[int, list[Action]] = {}
        self._moments: list[int] = []

    def after(self, delay: int, action: Action) -> None:
        """Do something ``delay`` milliseconds from now, whatever else happens."""
        moment = self.now + delay
        due = self._due.get(moment)
        if due is None:
            self._due[moment] = [action]
            heapq.heappush(self._moments, moment)
        else:
            due.append(action)

    def timer(self, action: Action) -> "Timer":
        """Return a timer that does something when it runs out, not started yet."""
        return Timer(self, action)

    def run(self, until: int) -> None:
        """Let time pass up to and including a moment."""
        moments = self._moments
        while moments and moments[0] <= until:
            self.now = now = moments[0]
            # The list grows while it is gone through: by what is to be done at once.
            for action in self._due[now]:
                action()
            del self._due[heapq.heappop(moments)]
        self.now = max(self.now, until)


class Timer:
    """Does something once its time has run out, unless it is started again or cancelled.

    Examples
    --------
    >>> clock, seen = Clock(), []
    >>> timer = clock.timer(lambda: seen.append(clock.now))
    >>> timer.start(10)
    >>> clock.run(until=5)
    >>> timer.start(10)
    >>> clock.run(until=30)
    >>> seen
    [15]
    """

    __slots__ = ("_action", "_clock", "_comes_up", "_deadline")

    def __init__(self, clock: Clock, action: Action) -> None:
        self._clock = clock
        self._action = action
        self._deadline = _NEVER
        self._comes_up = _NEVER

    def start(self, delay: int) -> None:
        """Let it run out ``delay`` milliseconds from now, and not before."""
        self._deadline = self._clock.now + delay
        # Where it comes up sooner it is put off then, and takes its place among what is due with
        # it then: a session's timer is started again far more often than it runs out.
        if self._comes_up > self._deadline:
            self._schedule()

    def cancel(self) -> None:
        """Stop it, if it is running."""
        self._deadline = self._comes_up = _NEVER

    def _schedule(self) -> None:
        self._comes_up = self._deadline
        self._clock.after(self._deadline - self._clock.now, self._come_up)

    def _come_up(self) -> None:
        now = self._clock.now
        if self._comes_up != now:
            return  # Cancelled since, or started with a shorter delay.
        if self._deadline > now:
            self._schedule()
        else:
            self.cancel()
            self._action()


def stop(timers: dict[str, Timer], name: str) -> None:
    """Cancel and forget one of several timers, if it is there."""
    timer = timers.pop(name, None)
    if timer is not None:
        timer.cancel()
