"""Which constraints clash: a small set of them that no placement meets."""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraints import add_constraint
from kassay.solver.cpsat.model import AssignmentModel
from kassay.solver.cpsat.search import SearchBudget, satisfy
from kassay.solver.cpsat.symmetry import classify
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import Problem

# Seconds to shrink a conflict, beyond the caller's limit: infeasibility is known by then.
_SHRINKING = 5.0


def conflict(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    """Return constraints that clash, none of which can be spared.

    CP-SAT names assumptions that suffice for infeasibility; then each is left out in
    turn, and stays out if the others still clash. Where time is short the set may be
    larger than needed, but it always clashes.
    """
    limits = SearchLimits(workers=budget.limits.workers)
    budget = SearchBudget(budget.deadline + _SHRINKING, limits, budget.seed)
    core = _sufficient(problem, constraints, budget)
    for constraint in core:
        others = tuple(other for other in core if other is not constraint)
        if is_infeasible(problem, others, budget):
            core = others
    return core


def is_infeasible(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> bool:
    """Whether CP-SAT proves within its budget that no placement meets the constraints."""
    if budget.seconds <= 0:
        return False
    model = AssignmentModel(problem, classify(problem, (), constraints))
    for constraint in constraints:
        add_constraint(model, constraint)
    return satisfy(model, budget).infeasible


def _sufficient(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    model = AssignmentModel(problem, classify(problem, (), constraints))
    literals = [model.cp.new_bool_var(f"holds{index}") for index in range(len(constraints))]
    for constraint, literal in zip(constraints, literals, strict=True):
        add_constraint(model, constraint, literal)
    model.cp.add_assumptions(literals)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = budget.seed % 2**31
    solver.parameters.max_time_in_seconds = budget.seconds
    if solver.solve(model.cp) != cp_model.INFEASIBLE:
        return tuple(constraints)
    core = set(solver.sufficient_assumptions_for_infeasibility())
    chosen = tuple(
        constraint
        for constraint, literal in zip(constraints, literals, strict=True)
        if literal.index in core
    )
    return chosen or tuple(constraints)
