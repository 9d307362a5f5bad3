"""Check whether constraints can be met, and find a small subset of conflicting constraints."""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraint_expressions import add_constraint
from kassay.solver.cpsat.model import AssignmentModel, SearchResult, search
from kassay.solver.cpsat.partition_classes import symmetry_classes
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import EXACT_IN_64_BITS, Problem

# Seconds to shrink a conflict, beyond the caller's limit: infeasibility is proven by then.
_SHRINKING_SECONDS = 1.5


def find_any_placement(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> SearchResult:
    """Find any placement that meets the constraints, or prove that none exists."""
    if problem.total >= EXACT_IN_64_BITS or not budget.has_time:
        return SearchResult(None, None)
    model = AssignmentModel(problem, symmetry_classes(problem, (), constraints))
    for constraint in constraints:
        add_constraint(model, constraint)
    return search(model, budget)


def find_conflict(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    """Return a small subset of the constraints that cannot be met together.

    CP-SAT returns a set of assumptions that cannot hold together. Each assumption is then
    removed if the others are still infeasible. The result is minimal unless time runs out.
    """
    limits = SearchLimits(workers=budget.limits.workers, stop=budget.limits.stop)
    budget = SearchBudget(budget.deadline + _SHRINKING_SECONDS, limits, budget.seed)
    core = _sufficient_assumptions(problem, constraints, budget)
    for constraint in core:
        others = tuple(other for other in core if other is not constraint)
        if find_any_placement(problem, others, budget).infeasible:
            core = others
    return core


def _sufficient_assumptions(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    model = AssignmentModel(problem, symmetry_classes(problem, (), constraints))
    literals = [model.cp.new_bool_var(f"holds{index}") for index in range(len(constraints))]
    for constraint, literal in zip(constraints, literals, strict=True):
        add_constraint(model, constraint, literal)
    model.cp.add_assumptions(literals)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = budget.seed % 2**31
    solver.parameters.max_time_in_seconds = budget.seconds
    if solver.solve(model.cp) != cp_model.INFEASIBLE:
        return tuple(constraints)
    core = set(solver.sufficient_assumptions_for_infeasibility())
    named = zip(constraints, literals, strict=True)
    return tuple(rule for rule, literal in named if literal.index in core) or tuple(constraints)
