"""The method as a whole: from a group to placements, bounds or a conflict."""

from collections.abc import Sequence
from dataclasses import dataclass

from kassay.reference.model.assignment import Assignment
from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraints import add_constraint
from kassay.solver.cpsat.infeasibility import conflict
from kassay.solver.cpsat.lexicographic import LevelResult, LexicographicSolver
from kassay.solver.cpsat.model import AssignmentModel
from kassay.solver.cpsat.search import SearchBudget, SearchResult, satisfy
from kassay.solver.cpsat.symmetry import classify
from kassay.solver.evaluation import broken
from kassay.solver.initial_solutions import initial_placements
from kassay.solver.objective import Level
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem

# Seconds that finding any placement at all may take, whatever the limit: a limit should
# cost proof, not the answer, but under constraints there need not be one.
_LEAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CpSatResult:
    """What came of a problem.

    Parameters
    ----------
    placement
        The best placement found; None if there is none, or none was found in time.
    reached
        Value and bound of each level.
    conflict
        Constraints that clash, where it is proved that no placement meets them.
    """

    placement: Placement | None
    reached: tuple[LevelResult, ...] = ()
    conflict: tuple[Constraint, ...] = ()


def solve_problem(
    problem: Problem,
    *,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    initial_assignment: Assignment | None,
    budget: SearchBudget,
) -> CpSatResult:
    """Find the best placement and bounds for every level."""
    pool = initial_placements(problem)
    if initial_assignment is not None:
        warm_start = problem.to_placement(initial_assignment)
        pool += [] if warm_start is None else [warm_start]
    pool = [placement for placement in pool if not any(broken(problem, constraints, placement))]
    if not pool:
        found = _any_placement(problem, constraints, budget)
        if found.infeasible:
            return CpSatResult(None, conflict=conflict(problem, constraints, budget))
        if found.placement is None:
            return CpSatResult(None)
        pool = [found.placement]
    ladder = LexicographicSolver(problem, levels, constraints, pool)
    placement = ladder.climb(budget)
    return CpSatResult(placement, tuple(ladder.reached))


def _any_placement(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> SearchResult:
    if problem.total >= EXACT_IN_64_BITS:
        return SearchResult(None, None)
    model = AssignmentModel(problem, classify(problem, (), constraints))
    for constraint in constraints:
        add_constraint(model, constraint)
    return satisfy(model, budget.at_least(_LEAST_SECONDS))
