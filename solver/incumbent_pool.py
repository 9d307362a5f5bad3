"""Known placements and bounds of a running search, and limits of finished levels."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kassay.reference.model.errors import InternalError
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.objective import Level
from kassay.solver.problem import Placement, Problem


@dataclass
class FlowLevels:
    """Results of network flows: placements found, and proven bounds by level index.

    ``is_complete`` is true if one of the placements is optimal for all levels.
    """

    placements: list[Placement] = field(default_factory=list)
    bounds: dict[int, tuple[int, Origin]] = field(default_factory=dict)
    node_prices: tuple[int, ...] = ()  # evidence of the bounds with this origin
    conflict: tuple[Constraint, ...] = ()  # infeasible constraints
    is_complete: bool = False

    def priced_claims(
        self, claims: Sequence[LevelClaim]
    ) -> tuple[tuple[LevelClaim, ...], tuple[int, ...]]:
        """Return the claims, and the node prices if claims refer to all levels that they prove."""
        priced = [origin is Origin.NODE_PRICES for _, origin in self.bounds.values()].count(True)
        if all(claim.origin is Origin.NODE_PRICES for claim in claims[:priced]):
            return tuple(claims), self.node_prices
        return tuple(
            replace(claim, origin=Origin.FLOW) if claim.origin is Origin.NODE_PRICES else claim
            for claim in claims
        ), ()


@dataclass(frozen=True, slots=True)
class LevelResult:
    """Result of a finished level: claim, limit for later levels, and best placement."""

    claim: LevelClaim
    limit: int
    placement: Placement


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
        """Add a placement if it meets the constraints; return whether it meets them."""
        is_valid = not any(violated(self.problem, self.constraints, placement))
        if is_valid:
            self.placements.append(placement)
        return is_valid

    def incumbent(self, level: Level) -> Placement:
        """Return the best placement on a level within the limits of the finished levels."""
        found = self.best(level, self.limits())
        if found is None:
            raise InternalError("no placement is within the limits of the finished levels")
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
        """Return the finished levels with their limits."""
        return [(done.claim.level, done.limit) for done in self.reached]

    def _value(self, level: Level, placement: Placement) -> int:
        key = id(level), id(placement)
        if key not in self._values:
            value = level_value(self.problem, level, placement)
            self._values[key] = level, placement, value
        return self._values[key][2]
