"""Limits of a search: time, threads and stop event."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, fields, replace
from itertools import count
from math import ceil, inf
from threading import Event, Thread
from typing import ClassVar, Self, TypeVar

from kassay.reference.model.errors import UsageError

_Result = TypeVar("_Result")
_POLL_SECONDS = 0.02
_SECONDS_PER_QUERY = 0.005  # of a reproducible budget


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of one search. A search that reaches a limit returns its incumbent and its bounds.

    Parameters
    ----------
    time
        Wall-clock seconds; 0 is allowed.
    deterministic
        CP-SAT's deterministic time per model, in its own unit of about a second; None for
        no limit. With this limit, one worker, and if no search reaches its share of ``time``,
        equal input gives equal output.
    workers
        Threads of CP-SAT.
    stop
        Event that another thread or a signal handler sets to stop the search early.

    Raises
    ------
    UsageError
        If a limit is negative, or there are fewer than 1 workers.
    """

    time: float = 60.0
    deterministic: float | None = None
    workers: int = 1
    stop: Event | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, limits: "SearchLimits | float") -> Self:
        """Return limits of this class from other limits, or from a time limit in seconds.

        Examples
        --------
        >>> SearchLimits.of(5)
        SearchLimits(time=5, deterministic=None, workers=1)
        """
        if isinstance(limits, cls):
            return limits
        if isinstance(limits, SearchLimits):
            return cls(**{one.name: getattr(limits, one.name) for one in fields(SearchLimits)})
        if not isinstance(limits, int | float):
            raise UsageError(
                f"limits must be SearchLimits or a time limit in seconds, got {limits!r}"
            )
        return cls(time=limits)

    @property
    def is_stopped(self) -> bool:
        """Return whether the event ``stop`` is set."""
        return self.stop is not None and self.stop.is_set()

    def __post_init__(self) -> None:
        for name, value in (("time", self.time), ("deterministic", self.deterministic)):
            if value is not None and not _is_number(value):
                raise UsageError(
                    f"{name} limit must be a number of at most 300 digits, got {value!r}"
                )
        if not isinstance(self.workers, int):
            raise UsageError(f"workers must be an integer, got {self.workers!r}")
        if not self.time >= 0:
            raise UsageError(f"time limit must be at least 0 seconds, got {self.time!r}")
        if self.deterministic is not None and not self.deterministic >= 0:
            raise UsageError(f"deterministic limit must be at least 0, got {self.deterministic!r}")
        if self.workers < 1:
            raise UsageError(f"workers must be at least 1, got {self.workers!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**300)


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Remaining limits of a running search. A deadline replaces the time limit.

    `at_least` does not extend the deadline beyond ``latest``. `FlowClock` permits more seconds.
    """

    deadline: float  # in seconds of `time.monotonic`, or of a reproducible budget
    limits: SearchLimits = SearchLimits()
    seed: int = 0
    queries: Iterator[int] | None = field(default=None, repr=False, compare=False)
    latest: float = inf  # in the same seconds as the deadline
    end: float = inf  # of the whole search with its grace, in seconds of `time.monotonic`
    GRACE: ClassVar[float] = 0.5
    """Maximum seconds after the deadline, to find a first result."""

    @classmethod
    def start(cls, limits: SearchLimits, seed: int = 0) -> Self:
        """Return a budget that starts now."""
        if seed < 0:
            raise UsageError(f"seed must be at least 0, got {seed!r}")
        deadline = time.monotonic() + limits.time
        end = deadline + cls.GRACE
        return cls(deadline, limits, seed, latest=end, end=end)

    def rest(self) -> SearchLimits:
        """Return the limits for a search that ends at the deadline."""
        return replace(self.limits, time=self.seconds)

    @property
    def seconds(self) -> float:
        """Return the remaining seconds, or 0 if the search is stopped."""
        return 0.0 if self.has_ended else max(self.deadline - self._now(), 0.0)

    @property
    def has_ended(self) -> bool:
        """Return whether the search is stopped, or the whole search with its grace has no time."""
        return self.limits.is_stopped or time.monotonic() >= self.end

    @property
    def has_time(self) -> bool:
        """Return whether time is left."""
        return self.seconds > 0

    def part(self, share: float) -> "SearchBudget":
        """Return a budget that ends after a share of the remaining time."""
        left = self.seconds
        return self if left == inf else replace(self, deadline=self.deadline - left * (1 - share))

    def first_part(self, share: float) -> "SearchBudget":
        """Return the budget of a first search: a share of the remaining time.

        Unlike a `part`, it is a search of its own: `continuation` permits the least steps until
        half of the share, and ``latest`` is at most `GRACE` seconds after it.
        """
        first = self.part(share)
        latest = min(self.latest, first.deadline + self.GRACE)
        return replace(first, limits=replace(self.limits, time=first.seconds), latest=latest)

    def until(self, seconds: float) -> "SearchBudget":
        """Return a budget that ends after ``seconds``, or at the deadline if that is earlier."""
        return replace(self, deadline=min(self.deadline, self._now() + seconds))

    def at_least(self, seconds: float) -> "SearchBudget":
        """Return a budget that lasts at least ``seconds`` from now, but not beyond ``latest``.

        It also lasts after a stop of the search.
        """
        end = min(self._now() + seconds, self.latest)
        if self.limits.is_stopped:
            return replace(self, deadline=end, limits=replace(self.limits, stop=None))
        return replace(self, deadline=max(self.deadline, end))

    def reproducible(self) -> "SearchBudget":
        """Return a budget with a clock that advances 5 ms per query, for reproducible results.

        Without a deterministic limit, return the budget itself.
        """
        if self.limits.deterministic is None:
            return self
        deadline = self.limits.deterministic
        return replace(self, deadline=deadline, queries=count(), latest=inf)

    def _now(self) -> float:
        if self.queries is None:
            return time.monotonic()
        return next(self.queries) * _SECONDS_PER_QUERY

    def continuation(self, most: int, *, least: int = 0) -> Callable[[], bool]:
        """Return a function that reports whether the search may continue.

        With a deterministic limit, the function permits ``most`` steps, or fewer if the limit is
        below 1, and ignores the time until the end of the whole search. Otherwise, it permits
        ``least`` steps until half of the time limit of the whole search, and further ones until
        the deadline. Short searches therefore rarely depend on the load of the machine.
        """
        deterministic = self.limits.deterministic
        if deterministic is None:
            half = self.latest - self.GRACE - self.limits.time / 2
            until_half = self if half == inf else replace(self, deadline=max(self.deadline, half))
            first = limited_steps(least, lambda: until_half.has_time)
            return lambda: first() or self.has_time
        steps = ceil(most * min(deterministic, 1))
        return limited_steps(steps, lambda: not self.has_ended)


def limited_steps(most: int, may_continue: Callable[[], bool] = lambda: True) -> Callable[[], bool]:
    """Return a function that permits at most ``most`` steps, while the search may continue."""
    steps = iter(range(most))
    return lambda: may_continue() and next(steps, None) is not None


@dataclass(frozen=True, slots=True)
class FlowClock:
    """Clock that decides by the expected run time whether a network flow may start.

    The computation of a flow cannot be interrupted.

    Parameters
    ----------
    budget
        A flow may end up to `FlowClock.GRACE` seconds after the deadline of the budget.
    expected
        Expected seconds of one flow.
    """

    budget: SearchBudget
    expected: float
    GRACE: ClassVar[float] = 1.0

    def may_start(self) -> bool:
        """Return whether a flow is expected to end at most `GRACE` seconds after the deadline."""
        return not self.is_over(self.expected)

    def is_over(self, seconds: float = 0.0) -> bool:
        """Return whether the search is stopped, or a computation of ``seconds`` is too long.

        It is too long if it would end more than `GRACE` seconds after the deadline.
        """
        end = time.monotonic() + seconds
        return self.budget.limits.is_stopped or end > self.budget.deadline + self.GRACE


def call_until_stopped(
    call: Callable[[], _Result], stop: Event | None, *, cancel: Callable[[], object] | None = None
) -> _Result | None:
    """Call a function of a C++ library, and end the call early if ``stop`` is set.

    The function runs in another thread. The calling thread handles signals during the call, which
    it cannot do within the library. When the event ``stop`` is set, ``cancel`` makes the library
    return its result early. Without ``cancel``, the thread is abandoned and the result is None.
    Without an event, the function is called directly.
    """
    if stop is None:
        return call()
    future: Future[_Result] = Future()
    Thread(target=_complete, args=(future, call), daemon=True).start()
    while not wait([future], _POLL_SECONDS).done:
        if stop.is_set():
            if cancel is None:
                return None
            cancel()
    return future.result()


def _complete(future: Future[_Result], call: Callable[[], _Result]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised again by Future.result
        future.set_exception(error)
