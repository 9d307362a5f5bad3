"""One CP-SAT search, and the one place where its answer becomes a claim."""

import time
from dataclasses import dataclass, replace

from ortools.sat.python import cp_model

from kassay.solver.cpsat.model import AssignmentModel, Expression
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import EXACT_IN_64_BITS, Placement


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """How long searches may go on.

    Parameters
    ----------
    deadline
        Wall-clock end, in seconds of `time.monotonic`.
    limits
        Limits of the caller; the deadline replaces their time.
    seed
        Seed of the search.
    """

    deadline: float
    limits: SearchLimits = SearchLimits()
    seed: int = 0

    @property
    def seconds(self) -> float:
        """Wall-clock seconds that are left, at least 0."""
        return max(self.deadline - time.monotonic(), 0.0)

    def share(self, parts: int) -> "SearchBudget":
        """Return a budget of an equal part of the seconds left."""
        return self.until(self.seconds / parts)

    def until(self, seconds: float) -> "SearchBudget":
        """Return a budget that ends this many seconds from now, if not sooner."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def at_least(self, seconds: float) -> "SearchBudget":
        """Return a budget that ends this many seconds from now, if not later."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found and proved.

    Parameters
    ----------
    placement
        The best placement found, if any.
    bound
        Proven lower bound on the objective; None if there was no search.
    infeasible
        Whether it was proved that there is no placement.
    """

    placement: Placement | None
    bound: int | None
    infeasible: bool = False


def minimise(
    model: AssignmentModel, expression: Expression, budget: SearchBudget, least: int
) -> SearchResult:
    """Look for the least value of an expression, which is known to be at least ``least``.

    Expressions must be 0 or more, as all of ours are: CP-SAT reports a bound of 0 where
    it had no time to find any.
    """
    if budget.seconds <= 0:
        return SearchResult(None, None)
    # A variable of its own leaves the objective without an offset, which CP-SAT keeps as a float.
    objective = model.cp.new_int_var(min(least, EXACT_IN_64_BITS), EXACT_IN_64_BITS, "objective")
    model.cp.add(objective == expression + model.zero)
    model.cp.minimize(objective)
    found = _run(model, budget)
    model.cp.clear_objective()
    return found


def satisfy(model: AssignmentModel, budget: SearchBudget) -> SearchResult:
    """Look for any placement that the model allows."""
    model.cp.clear_objective()
    return _run(model, budget)


def _run(model: AssignmentModel, budget: SearchBudget) -> SearchResult:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = budget.seconds
    solver.parameters.num_workers = budget.limits.workers
    solver.parameters.random_seed = budget.seed % 2**31
    if budget.limits.deterministic is not None:
        solver.parameters.max_deterministic_time = budget.limits.deterministic
    status = solver.solve(model.cp)
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"CP-SAT calls the model invalid: {model.cp.validate()}")
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return SearchResult(
        placement=model.read(solver) if found else None,
        # The integer that CP-SAT keeps beside the float it reports; exact beyond 2**53.
        bound=int(solver.response_proto.inner_objective_lower_bound),
        infeasible=status == cp_model.INFEASIBLE,
    )
