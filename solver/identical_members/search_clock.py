"""Clock of a search: seconds left, or a number of steps for reproducible results."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from threading import Event

from kassay.solver.limits import SearchBudget

_SECONDS_PER_TURN = 0.005
_NODES = 300


@dataclass(frozen=True, slots=True)
class SearchClock:
    """Seconds left until the end of a search, and a limit on search nodes per packing problem.

    With a deterministic limit, each question for the time takes a fixed virtual time.
    """

    now: Callable[[], float]
    end: float
    nodes: int | None = None
    stop: Event | None = None

    @classmethod
    def of(cls, budget: SearchBudget) -> "SearchClock":
        """Create and start a clock for a search budget."""
        limits = budget.limits
        if limits.deterministic is None:
            return cls(lambda: -budget.seconds, 0.0, stop=limits.stop)
        turns = iter(range(10**9))

        def now() -> float:
            return inf if limits.is_stopped else next(turns) * _SECONDS_PER_TURN

        return cls(now, limits.deterministic, _NODES, limits.stop)

    @property
    def seconds(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(self.end - self.now(), 0.0)

    @property
    def has_time(self) -> bool:
        """Return whether time is left."""
        return self.seconds > 0

    def part(self, share: float) -> "SearchClock":
        """Return a copy of the clock with only a share of the time left."""
        return replace(self, end=self.end - self.seconds * (1 - share))

    def at_most(self, seconds: float) -> "SearchClock":
        """Return a copy of the clock with at most ``seconds`` left."""
        return replace(self, end=self.end - max(self.seconds - seconds, 0.0))
