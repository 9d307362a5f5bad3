"""Virtual time: what happens next, in milliseconds, without waiting for it."""

import heapq
from collections.abc import Callable, Hashable

Action = Callable[[], None]


class _Timer:
    """A named timer; ``queued`` is the moment of its one entry in the queue."""

    __slots__ = ("action", "deadline", "queued")

    def __init__(self, deadline: int, action: Action) -> None:
        self.deadline = deadline
        self.action = action
        self.queued = deadline


class Clock:
    """A queue of things to do at given moments; time passes from one to the next.

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

    __slots__ = ("_queue", "_serial", "_timers", "now")

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self._queue: list[tuple[int, int, Hashable, Action | None]] = []
        self._timers: dict[Hashable, _Timer] = {}
        self._serial = 0

    def after(self, delay: int, action: Action) -> None:
        """Do something ``delay`` milliseconds from now, whatever else happens."""
        self._push(self.now + delay, None, action)

    def set_timer(self, key: Hashable, delay: int, action: Action) -> None:
        """Do something ``delay`` milliseconds from now unless ``key`` is set again or cancelled.

        Examples
        --------
        >>> clock, seen = Clock(), []
        >>> clock.set_timer("session", 10, lambda: seen.append(clock.now))
        >>> clock.run(until=5)
        >>> clock.set_timer("session", 10, lambda: seen.append(clock.now))
        >>> clock.run(until=30)
        >>> seen
        [15]
        """
        deadline = self.now + delay
        timer = self._timers.get(key)
        if timer is not None and timer.queued <= deadline:
            # Its entry comes up in time and is queued anew then: a session's timer is set
            # again far more often than it runs out.
            timer.deadline = deadline
            timer.action = action
            return
        self._timers[key] = _Timer(deadline, action)
        self._push(deadline, key, None)

    def cancel(self, key: Hashable) -> None:
        """Forget a timer, if it is set."""
        self._timers.pop(key, None)

    def run(self, until: int) -> None:
        """Let time pass up to and including a moment."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, key, action = heapq.heappop(queue)
            if action is not None:
                action()
            else:
                self._ring(key)
        self.now = max(self.now, until)

    def _ring(self, key: Hashable) -> None:
        timer = self._timers.get(key)
        if timer is None or timer.queued != self.now:
            return
        if timer.deadline > self.now:
            timer.queued = timer.deadline
            self._push(timer.deadline, key, None)
            return
        del self._timers[key]
        timer.action()

    def _push(self, moment: int, key: Hashable, action: Action | None) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (moment, self._serial, key, action))
