"""Store the placements that a search finds, and select the best placement."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_metrics import Measure
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.objective import Imbalance, Level
from kassay.solver.problem import Placement, Problem
from kassay.solver.search_interface import LevelResult

MAX_PLAIN_CHOICES = 2_000
"""Maximum number of (class or partition, member) pairs for squares that are products of loads.

Searches of larger groups rarely prove the minimum, and end early if they reach the known bound.
"""


@dataclass
class IncumbentPool:
    """Pool of the placements found so far that meet the constraints."""

    problem: Problem
    levels: Sequence[Level]
    constraints: Sequence[Constraint]
    placements: list[Placement]
    reached: list[LevelResult] = field(default_factory=list)
    _values: dict[tuple[int, int], tuple[Level, Placement, int]] = field(default_factory=dict)
    """Values by identity of level and placement, which stay referenced."""

    def add(self, placement: Placement) -> bool:
        """Add a placement if it meets the constraints; return whether it was added."""
        is_valid = self.is_permitted(placement)
        if is_valid:
            self.placements.append(placement)
        return is_valid

    def is_permitted(self, placement: Placement) -> bool:
        """Return whether a placement meets the constraints."""
        return not any(violated(self.problem, self.constraints, placement))

    def incumbent(self, level: Level) -> Placement:
        """Return the best placement on a level within the limits of earlier levels."""
        found = self.best(level, self.limits())
        if found is None:
            raise InternalError(
                "internal error: no placement is valid; report a bug with this group document"
            )
        return found

    def best(self, level: Level, limits: Sequence[tuple[Level, int]]) -> Placement | None:
        """Return the best placement on a level within limits, or None if there is none."""
        order = [level, *(other for other in self.levels if other is not level)]
        return min(
            (
                placement
                for placement in self.placements
                if all(self._value(limited, placement) <= limit for limited, limit in limits)
            ),
            key=lambda placement: [self._value(other, placement) for other in order],
            default=None,
        )

    def value(self, level: Level) -> int:
        """Return the value of the incumbent on a level."""
        return self._value(level, self.incumbent(level))

    def limits(self) -> list[tuple[Level, int]]:
        """Return the levels that are already minimised, with their limits."""
        return [(done.claim.level, done.limit) for done in self.reached]

    def _value(self, level: Level, placement: Placement) -> int:
        key = id(level), id(placement)
        if key not in self._values:
            value = level_value(self.problem, level, placement)
            self._values[key] = level, placement, value
        return self._values[key][2]

    def limits_squares(self) -> bool:
        """Return whether an earlier level limits the sum of squares of a small group.

        A CP-SAT model of all partitions then proves the fewest moves faster than one of moves.
        """
        is_small = self.problem.partition_count * self.problem.member_count <= MAX_PLAIN_CHOICES
        levels = [
            done.claim.level for done in self.reached if isinstance(done.claim.level, Imbalance)
        ]
        return is_small and any(level.measure is Measure.SUM_OF_SQUARES for level in levels)
