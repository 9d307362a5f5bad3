"""Known placements and proven bounds of a running search, and its request and result."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_metrics import Measure
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level
from kassay.solver.problem import Placement, Problem
from kassay.solver.solution import Method, ProgressPoint, UsedMethod

MAX_PLAIN_CHOICES = 2_000
"""Maximum number of (class or partition, member) pairs for squares that are products of loads.

Searches of larger groups rarely prove the minimum, and end early if they reach the known bound.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """Problem with levels and constraints, and the options that decide how it is solved."""

    problem: Problem
    levels: tuple[Level, ...]
    rules: tuple[Constraint, ...]
    budget: SearchBudget
    method: Method = Method.AUTO
    given: tuple[Placement, ...] = ()
    """Placements to start from: a warm start, or answers to a request with fewer constraints."""
    is_derived: bool = False
    """Whether constraints are left out or weights rounded; no further request is derived then."""

    @property
    def choices(self) -> int:
        """Number of pairs of a partition and a member."""
        return self.problem.partition_count * self.problem.member_count


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with claims per level, or the conflicting constraints."""

    placement: Placement | None  # None if there is none, or none was found within the limits
    claims: tuple[LevelClaim, ...] = ()
    node_prices: tuple[int, ...] = ()
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()
    method: UsedMethod = UsedMethod.CP_SAT

    def placements(self, problem: Problem) -> tuple[Placement, ...]:
        """Return the answer, and placements that are better on a level with a tolerance."""
        if self.placement is None:
            return ()
        best = (problem.to_placement(claim.best) for claim in self.claims if claim.best)
        return (self.placement, *(one for one in best if one is not None))


def claim_about(
    problem: Problem, claim: LevelClaim, placement: Placement, *, best: Placement
) -> LevelClaim:
    """Set the value of a claim to the value of a placement.

    A tolerance may make this value worse than the best value of the level. Then add the best
    placement.
    """
    value = level_value(problem, claim.level, placement)
    shown = problem.to_assignment(best) if value > claim.value else None
    return replace(claim, value=value, best=shown)


class ProvenBound(NamedTuple):
    """Lower bound on a level and its origin; the value is 0 if nothing is proven."""

    value: int
    origin: Origin


@dataclass
class KnownLevels:
    """Placements, and proven bounds by level index, before the levels are minimised in order.

    ``is_complete`` is true if one of the placements is optimal for all levels.
    """

    placements: list[Placement] = field(default_factory=list)
    bounds: dict[int, ProvenBound] = field(default_factory=dict)
    node_prices: tuple[int, ...] = ()  # evidence of the bounds with this origin
    conflict: tuple[Constraint, ...] = ()  # infeasible constraints
    is_complete: bool = False

    def priced_claims(
        self, claims: Sequence[LevelClaim]
    ) -> tuple[tuple[LevelClaim, ...], tuple[int, ...]]:
        """Return claims and node prices. Without a claim on each priced level, drop the prices."""
        priced = [one.origin is Origin.NODE_PRICES for one in self.bounds.values()].count(True)
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
        is_valid = self.is_permitted(placement)
        if is_valid:
            self.placements.append(placement)
        return is_valid

    def is_permitted(self, placement: Placement) -> bool:
        """Return whether a placement meets the constraints."""
        return not any(violated(self.problem, self.constraints, placement))

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

    def limits_squares(self) -> bool:
        """Return whether a finished level limits the sum of squares of a small group.

        A CP-SAT model of all partitions then proves the fewest moves faster than one of moves.
        """
        is_small = self.problem.partition_count * self.problem.member_count <= MAX_PLAIN_CHOICES
        levels = [
            done.claim.level for done in self.reached if isinstance(done.claim.level, Imbalance)
        ]
        return is_small and any(level.measure is Measure.SUM_OF_SQUARES for level in levels)
