"""Limit the work, time and threads of a search.

Searches count their work, in units of about one second of one core of a typical machine. The
same input, options and seed therefore give the same result on any machine. This is the only
module of the solver with a clock. It serves the safety limit and reported durations.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, fields, replace
from math import inf
from threading import Event, Thread
from typing import ClassVar, Self, TypeVar

from kassay.reference.model.errors import UsageError

_Result = TypeVar("_Result")
_POLL_SECONDS = 0.02


def now() -> float:
    """Return the time of a monotonic clock in seconds."""
    return time.monotonic()


@dataclass
class WorkCounter:
    """Work that a running search has spent. Its nested searches share the counter.

    ``is_interrupted`` is true if the safety limit or the stop event ended the search early.
    """

    spent: float = 0.0
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of one search; at a limit, the search returns its best result so far.

    Parameters
    ----------
    work
        Counted work in units of about one second of one core of a typical machine, such as
        CP-SAT's deterministic time; 0 is allowed.
    time
        Safety limit: wall-clock seconds, or None for no limit. If it ends a search, the result
        depends on the speed of the machine, and says so.
    workers
        Threads of CP-SAT. With more than one, results are not reproducible.
    stop
        Event that another thread or a signal handler sets to stop the search early.
    counter
        Counter of a running search of which this search is a part.

    Raises
    ------
    UsageError
        If a limit is negative, or there are fewer than 1 workers.
    """

    work: float = 60.0
    time: float | None = None
    workers: int = 1
    stop: Event | None = field(default=None, repr=False, compare=False)
    counter: WorkCounter | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, limits: "SearchLimits | float") -> Self:
        """Convert other limits, or a time limit in seconds, to limits of this class."""
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
        for name, value in (("work", self.work), ("time", self.time)):
            if value is not None and not _is_number(value):
                raise UsageError(
                    f"{name} limit must be a number of at most 300 digits, got {value!r}"
                )
        if not isinstance(self.workers, int):
            raise UsageError(f"workers must be an integer, got {self.workers!r}")
        if not self.work >= 0:
            raise UsageError(f"work limit must be at least 0, got {self.work!r}")
        if self.time is not None and not self.time >= 0:
            raise UsageError(f"time limit must be at least 0 seconds, got {self.time!r}")
        if self.workers < 1:
            raise UsageError(f"workers must be at least 1, got {self.workers!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**300)


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Work and time that a running search or one of its nested searches may still use.

    Nested searches share the counter. A loop that asks whether work is left must spend work, so
    that it ends.
    """

    deadline: float  # in units of the counter
    limits: SearchLimits = SearchLimits()
    seed: int = 0
    counter: WorkCounter = field(default_factory=WorkCounter, repr=False, compare=False)
    end: float = inf  # of the safety limit, in seconds of `now`
    GRACE: ClassVar[float] = 1.0
    """Maximum work after the deadline for a computation that cannot be interrupted, and maximum
    seconds after the safety limit."""

    @classmethod
    def start(cls, limits: SearchLimits, seed: int = 0) -> Self:
        """Return a budget that starts now. Raise UsageError if the seed is negative."""
        if seed < 0:
            raise UsageError(f"seed must be at least 0, got {seed!r}")
        counter = WorkCounter() if limits.counter is None else limits.counter
        end = inf if limits.time is None else now() + limits.time
        return cls(counter.spent + limits.work, limits, seed, counter, end)

    def rest(self) -> SearchLimits:
        """Return limits for a nested search that counts its work in this budget."""
        seconds = None if self.end == inf else self.seconds
        return replace(self.limits, work=self.left, time=seconds, counter=self.counter)

    @property
    def seconds(self) -> float:
        """Return the seconds until the time limit, or infinity without a time limit."""
        return inf if self.end == inf else max(self.end - now(), 0.0)

    @property
    def is_interrupted(self) -> bool:
        """Return whether the search is stopped or out of time, and record an interruption."""
        if self.limits.is_stopped or (self.end < inf and now() >= self.end):
            self.counter.is_interrupted = True
            return True
        return False

    @property
    def left(self) -> float:
        """Return the work that is left, or 0 if the search is interrupted."""
        return 0.0 if self.is_interrupted else max(self.deadline - self.counter.spent, 0.0)

    @property
    def has_work(self) -> bool:
        """Return whether work is left."""
        return self.left > 0

    def spend(self, units: float) -> None:
        """Add work to the counter."""
        self.counter.spent += units

    def part(self, share: float) -> "SearchBudget":
        """Return a budget that ends after a share of the work that is left."""
        left = self.left
        return self if left == inf else replace(self, deadline=self.deadline - left * (1 - share))

    def until(self, units: float) -> "SearchBudget":
        """Return a budget with at most ``units`` of work."""
        return replace(self, deadline=min(self.deadline, self.counter.spent + units))

    def for_first_result(self, units: float) -> "SearchBudget":
        """Return a budget with at least ``units`` of work, even after a limit or a stop.

        A search that has found nothing yet may exceed the safety limit by half of `GRACE`.
        """
        return replace(
            self,
            deadline=max(self.deadline, self.counter.spent + units),
            limits=replace(self.limits, stop=None),
            end=max(self.end, min(now() + units, self.end + self.GRACE / 2)),
        )

    def counted(self, units: float, most: int | None = None) -> Callable[[], bool]:
        """Return a function that permits further steps and counts their work."""

        def may_continue() -> bool:
            if not self.has_work:
                return False
            self.spend(units)
            return True

        return may_continue if most is None else limited_steps(most, may_continue)

    def may_start(self, units: float) -> bool:
        """Return whether an uninterruptible computation may start, and count its work.

        The computation may exceed the limits by `GRACE`. ``units`` is its work, and its seconds.
        """
        is_late = self.end < inf and now() + units > self.end + self.GRACE
        if self.limits.is_stopped or is_late:
            self.counter.is_interrupted = True
            return False
        if self.counter.spent + units > self.deadline + self.GRACE:
            return False
        self.spend(units)
        return True


def limited_steps(most: int, may_continue: Callable[[], bool] = lambda: True) -> Callable[[], bool]:
    """Return a function that permits at most ``most`` steps of a search."""
    steps = iter(range(most))
    return lambda: next(steps, None) is not None and may_continue()


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
