"""Run CP-SAT once: minimise an expression, or find any placement."""

from dataclasses import dataclass
from functools import partial

from ortools.sat.python import cp_model

from kassay.reference.model.errors import InternalError
from kassay.solver.cpsat.model import AssignmentModel, Expression
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.problem import EXACT_IN_64_BITS, Placement


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of one CP-SAT search: placement, lower bound, and proven infeasibility."""

    placement: Placement | None  # the best one found
    bound: int | None  # None if no search ran
    infeasible: bool = False  # proven infeasible


def minimise(
    model: AssignmentModel, expression: Expression, budget: SearchBudget, bound: int
) -> SearchResult:
    """Minimise an expression with a known lower bound, by one CP-SAT search.

    The expression must be at least 0: CP-SAT reports a bound of 0 if it had no time to find
    one.
    """
    if budget.seconds <= 0:
        return SearchResult(None, None)
    # A variable as objective has no offset, which CP-SAT would store as a float.
    objective = model.cp.new_int_var(min(bound, EXACT_IN_64_BITS), EXACT_IN_64_BITS, "objective")
    model.cp.add(objective == expression + model.zero)
    model.cp.minimize(objective)
    result = _search(model, budget)
    model.cp.clear_objective()
    return result


def satisfy(model: AssignmentModel, budget: SearchBudget) -> SearchResult:
    """Find any placement that the CP-SAT model allows."""
    model.cp.clear_objective()
    return _search(model, budget)


def _search(model: AssignmentModel, budget: SearchBudget) -> SearchResult:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = budget.seconds
    solver.parameters.num_workers = budget.limits.workers
    solver.parameters.random_seed = budget.seed % 2**31
    if budget.limits.deterministic is not None:
        solver.parameters.max_deterministic_time = budget.limits.deterministic
    stop = budget.limits.stop
    # CP-SAT would replace the signal handler that sets the event.
    solver.parameters.catch_sigint_signal = stop is None
    status = call_until_stopped(partial(solver.solve, model.cp), stop, cancel=solver.stop_search)
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"CP-SAT rejects the model: {model.cp.validate()}")
    feasible = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return SearchResult(
        placement=model.read(solver) if feasible else None,
        # The integer bound; the reported one is a float, inexact beyond 2**53.
        bound=int(solver.response_proto.inner_objective_lower_bound),
        infeasible=status == cp_model.INFEASIBLE,
    )
