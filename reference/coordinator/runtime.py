"""Runtime of a simulated coordinator: virtual time in milliseconds, settings and compacted log."""

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

Action = Callable[[], None]

_NEVER = 1 << 62


class Clock:
    """Virtual clock. Actions with the same time run in the order in which they were added."""

    __slots__ = ("_actions", "_times", "now")

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self._actions: dict[int, list[Action]] = {}
        self._times: list[int] = []

    def after(self, delay: int, action: Action) -> None:
        """Run an action ``delay`` milliseconds from now."""
        time = self.now + delay
        actions = self._actions.get(time)
        if actions is None:
            self._actions[time] = [action]
            heapq.heappush(self._times, time)
        else:
            actions.append(action)

    def timer(self, action: Action) -> "Timer":
        """Create a timer that runs an action on expiry. The timer is not started."""
        return Timer(self, action)

    def run(self, until: int) -> None:
        """Advance the time and run all actions up to and including ``until``."""
        times = self._times
        while times and times[0] <= until:
            self.now = now = times[0]
            # Actions with delay 0 extend the list during the iteration.
            for action in self._actions[now]:
                action()
            del self._actions[heapq.heappop(times)]
        self.now = max(self.now, until)


class Timer:
    """Timer that runs an action on expiry. A timer can be restarted or cancelled."""

    __slots__ = ("_action", "_clock", "_deadline", "_fires_at")

    def __init__(self, clock: Clock, action: Action) -> None:
        self._clock = clock
        self._action = action
        self._deadline = _NEVER
        self._fires_at = _NEVER

    def start(self, delay: int) -> None:
        """Start or restart the timer. It expires ``delay`` milliseconds from now."""
        self._deadline = self._clock.now + delay
        # A later deadline is scheduled only when the earlier one fires: session timers are
        # restarted far more often than they expire.
        if self._fires_at > self._deadline:
            self._schedule()

    def cancel(self) -> None:
        """Cancel the timer if it is running."""
        self._deadline = self._fires_at = _NEVER

    def _schedule(self) -> None:
        self._fires_at = self._deadline
        self._clock.after(self._deadline - self._clock.now, self._fire)

    def _fire(self) -> None:
        now = self._clock.now
        if self._fires_at != now:
            return  # Cancelled, or restarted with a shorter delay.
        if self._deadline > now:
            self._schedule()
        else:
            self.cancel()
            self._action()


class Timers:
    """Timers by name, such as the sessions of members."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[str, Timer] = {}

    def start(self, name: str, delay: int, action: Action) -> None:
        """Start or restart the timer with a name. Create the timer if it does not exist."""
        timer = self._timers.get(name)
        if timer is None:
            timer = self._timers[name] = self._clock.timer(action)
        timer.start(delay)

    def cancel(self, *names: str) -> None:
        """Cancel and remove timers. Names without a timer have no effect."""
        for name in names:
            timer = self._timers.pop(name, None)
            if timer is not None:
                timer.cancel()

    def cancel_all(self) -> None:
        """Cancel and remove all timers."""
        self.cancel(*list(self._timers))


class Log:
    """Compacted log: the newest value of each key. ``writes`` counts appends and deletions."""

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}
        self.writes = 0

    def clear(self) -> None:
        """Delete all values."""
        self._values.clear()

    def append(self, key: Hashable, value: object) -> None:
        """Append a value, which replaces an earlier value of the key and must not change."""
        self.writes += 1
        self._values.pop(key, None)
        self._values[key] = value

    def delete(self, key: Hashable) -> None:
        """Delete a key, as a tombstone does."""
        self.writes += 1
        self._values.pop(key, None)

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Yield the current keys and values, the oldest first."""
        yield from self._values.items()


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Settings of the group coordinator. All times are in milliseconds."""

    initial_rebalance_delay: int = 3_000  # group.initial.rebalance.delay.ms
    max_size: int = 2**31 - 1  # group.max.size
    new_member_join_timeout: int = 300_000  # a constant of the broker
    # Consumer protocol only:
    heartbeat_interval: int = 5_000  # group.consumer.heartbeat.interval.ms
    session_timeout: int = 45_000  # group.consumer.session.timeout.ms
    assignment_interval: int = 1_000  # group.consumer.assignment.interval.ms


DEFAULTS = CoordinatorConfig()
