"""Limits of a search."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from kassay.reference.model.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of one search. A search that reaches a limit returns its incumbent and its bounds.

    Parameters
    ----------
    time
        Wall-clock seconds; 0 is allowed.
    deterministic
        CP-SAT's deterministic time per model, in its own unit of about a second; None for
        no limit. With this limit, one worker and a time limit that is not reached, equal
        input gives equal output on every machine.
    workers
        Threads of CP-SAT.

    Raises
    ------
    UsageError
        If a limit is negative, or there are fewer than 1 workers.
    """

    time: float = 60.0
    deterministic: float | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        """Check that every limit is in its range."""
        if not self.time >= 0:
            raise UsageError(f"time limit must be at least 0 seconds, got {self.time!r}")
        if self.deterministic is not None and not self.deterministic >= 0:
            raise UsageError(f"deterministic limit must be at least 0, got {self.deterministic!r}")
        if self.workers < 1:
            raise UsageError(f"workers must be at least 1, got {self.workers!r}")


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Remaining limits of a running search. A deadline replaces the time limit."""

    deadline: float  # seconds of `time.monotonic`
    limits: SearchLimits = SearchLimits()
    seed: int = 0

    @property
    def seconds(self) -> float:
        """Return the seconds left, at least 0."""
        return max(self.deadline - time.monotonic(), 0.0)

    def share(self, parts: int) -> "SearchBudget":
        """Return a budget with an equal part of the remaining time."""
        return self.until(self.seconds / parts)

    def until(self, seconds: float) -> "SearchBudget":
        """Return a budget that ends after these seconds, at the latest at the deadline."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def at_least(self, seconds: float) -> "SearchBudget":
        """Return a budget that ends at the deadline, but lasts at least these seconds."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))

    def continuation(self, most: int) -> Callable[[], bool]:
        """Return a function that reports whether the search may continue.

        With a deterministic limit, the function permits ``most`` steps and ignores the time.
        """
        if self.limits.deterministic is None:
            return lambda: self.seconds > 0
        turns = iter(range(most))
        return lambda: next(turns, None) is not None


@dataclass(frozen=True, slots=True)
class FlowClock:
    """Decides by its expected duration whether a flow, which cannot be interrupted, may start.

    Parameters
    ----------
    deadline
        In seconds of `time.monotonic`. A flow may end up to `FlowClock.GRACE` seconds later.
    expected
        Expected seconds of one flow.
    """

    deadline: float
    expected: float
    GRACE: ClassVar[float] = 1.0

    def may_start(self) -> bool:
        """Return whether a flow is expected to end in time."""
        return time.monotonic() + self.expected <= self.deadline + self.GRACE

    def is_over(self) -> bool:
        """Return whether the next part of a flow starts too late."""
        return time.monotonic() > self.deadline + self.GRACE
