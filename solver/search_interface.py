"""Define the requests and results of searches."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Level
from kassay.solver.problem import Placement, Problem
from kassay.solver.solution import Method, ProgressPoint, UsedMethod


@dataclass(frozen=True, slots=True)
class Request:
    """Problem to solve, with its levels, constraints and options."""

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
        """Return the number of pairs of a partition and a member."""
        return self.problem.partition_count * self.problem.member_count


@dataclass(frozen=True, slots=True)
class LexicographicResult:
    """Best placement with proven bounds; without a placement, constraints that conflict."""

    placement: Placement | None  # None if there is none, or none was found within the limits
    claims: tuple[LevelClaim, ...] = ()
    node_prices: tuple[int, ...] = ()
    conflict: tuple[Constraint, ...] = ()
    conflict_origin: Origin = Origin.CP_SAT
    progress: tuple[ProgressPoint, ...] = ()
    method: UsedMethod = UsedMethod.CP_SAT

    def placements(self, problem: Problem) -> tuple[Placement, ...]:
        """Return the best placement, and the placements that are better on a single level."""
        if self.placement is None:
            return ()
        best = (problem.to_placement(claim.best) for claim in self.claims if claim.best)
        return (self.placement, *(one for one in best if one is not None))


def claim_about(
    problem: Problem, claim: LevelClaim, placement: Placement, *, best: Placement
) -> LevelClaim:
    """Set the value of a claim to the value of a placement.

    If this value is worse than that of the claim, because of a tolerance, add the placement
    ``best`` to the claim.
    """
    value = level_value(problem, claim.level, placement)
    shown = problem.to_assignment(best) if value > claim.value else None
    return replace(claim, value=value, best=shown)


class ProvenBound(NamedTuple):
    """Lower bound on a level, and the method that proved the bound."""

    value: int
    origin: Origin


@dataclass
class KnownLevels:
    """Placements and bounds that are known before the levels are minimised.

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
        """Return the claims and their node prices, or no prices if the claims are incomplete."""
        priced = [one.origin is Origin.NODE_PRICES for one in self.bounds.values()].count(True)
        if all(claim.origin is Origin.NODE_PRICES for claim in claims[:priced]):
            return tuple(claims), self.node_prices
        return tuple(
            replace(claim, origin=Origin.FLOW) if claim.origin is Origin.NODE_PRICES else claim
            for claim in claims
        ), ()


@dataclass(frozen=True, slots=True)
class LevelResult:
    """Result of one minimised level."""

    claim: LevelClaim
    limit: int
    placement: Placement
