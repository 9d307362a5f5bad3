"""One time limit for all searches of a plan."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kassay.experiments.compare import CaseLimits

Progress = Callable[[str], None]
"""Function that receives the name of a part of the work when it starts."""


@dataclass(slots=True)
class TimeShares:
    """Remaining time of a plan. Each part of the work gets a share."""

    limits: CaseLimits
    progress: Progress | None = None
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self.deadline = time.monotonic() + self.limits.time

    def share(self, name: str, share: float, *, parts: int = 1) -> CaseLimits:
        """Start a part of the work, and return the limits of each of its searches."""
        if self.progress is not None and not self.limits.is_stopped:
            self.progress(name)
        left = max(0.0, self.deadline - time.monotonic())
        return replace(self.limits, time=left * share / parts)
