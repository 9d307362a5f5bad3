"""Check whether constraints can be met, and find a small subset of conflicting constraints."""

from collections.abc import Sequence
from dataclasses import replace

from ortools.sat.python import cp_model

from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraint_expressions import add_constraint
from kassay.solver.cpsat.model import AssignmentModel, SearchResult, run_cpsat, search
from kassay.solver.cpsat.model_ranges import load_scale
from kassay.solver.cpsat.partition_classes import symmetry_classes
from kassay.solver.evaluation import violated
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Problem

_SHRINKING_WORK = 1.5
"""Work to shrink a conflict, whatever the limit: infeasibility is proven by then."""


def find_any_placement(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> SearchResult:
    """Find any placement that meets the constraints, or prove that none exists.

    Weights that are too large for CP-SAT are first rounded down, so that infeasibility is proven.
    If the placement found exceeds a capacity, they are rounded up.
    """
    scale = load_scale(problem)
    for rounds_up in (False, True):
        if not budget.has_work:
            break
        model = AssignmentModel(
            problem, symmetry_classes(problem, (), constraints), scale, rounds_up=rounds_up
        )
        for constraint in constraints:
            add_constraint(model, constraint)
        found = search(model, budget)
        if found.infeasible and not rounds_up:
            return found
        if found.placement is not None and not any(violated(problem, constraints, found.placement)):
            return found
    return SearchResult(None, None)


def find_conflict(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    """Return a small subset of the constraints that cannot be met together.

    CP-SAT returns a set of assumptions that cannot hold together. Each assumption is then
    removed if the others are still infeasible. The result is minimal if the work suffices.
    """
    budget = budget.for_first_result(_SHRINKING_WORK)
    core = _sufficient_assumptions(problem, constraints, budget)
    for constraint in core:
        others = tuple(other for other in core if other is not constraint)
        if find_any_placement(problem, others, budget).infeasible:
            core = others
    return core


def _sufficient_assumptions(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> tuple[Constraint, ...]:
    model = AssignmentModel(
        problem, symmetry_classes(problem, (), constraints), load_scale(problem)
    )
    literals = [model.cp.new_bool_var(f"holds{index}") for index in range(len(constraints))]
    for constraint, literal in zip(constraints, literals, strict=True):
        add_constraint(model, constraint, literal)
    model.cp.add_assumptions(literals)
    # CP-SAT returns a sufficient set of assumptions with one worker only.
    one_worker = replace(budget, limits=replace(budget.limits, workers=1))
    solver, status = run_cpsat(model.cp, one_worker)
    if status != cp_model.INFEASIBLE:
        return tuple(constraints)
    core = set(solver.sufficient_assumptions_for_infeasibility())
    named = zip(constraints, literals, strict=True)
    return tuple(rule for rule, literal in named if literal.index in core) or tuple(constraints)
