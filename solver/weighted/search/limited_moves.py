"""Minimise the maximum load within a number of moves: bounds and local search."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kassay.solver.bounds.counting import makespan_bound, makespan_bound_within
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Placement, Problem
from kassay.solver.weighted.bounds.movement_bound import exchange_bound, price_step
from kassay.solver.weighted.search.few_moves import FewMovesSearch

_STEPS = 24
"""Number of load limits of each scan: geometric, then linear in the excess over the bound."""
_STEP = 1e-3
"""Work of one step, without its integer programs."""
_NEIGHBOURHOODS = 12
_PRICE_ROUNDS = 40
_MAX_FAILURES = 6
_PRECISION = 2_000
"""Reciprocal of the relative distance of value and bound at which the search ends."""


def scan_load_limits(problem: Problem, budget: SearchBudget) -> list[Placement]:
    """Return placements with few moves for a series of load limits.

    The limits lie between the lower bound and the maximum owned load. They are geometric in the
    excess over the bound. The scan runs without search.
    """
    start = keep_owned(problem)
    highest, lowest = max(problem.loads(start), default=0), makespan_bound(problem)
    costs, rng = np.ones(problem.partition_count, dtype=np.int64), np.random.default_rng(0)
    found, may_continue = [start], budget.counted(_STEP)
    for step in range(2 * _STEPS):
        limit = lowest + int((highest - lowest) * 0.86**step)
        if not may_continue():
            break
        search = FewMovesSearch(problem, limit, costs, rng)
        placement = search.initial_solution(start, may_continue)
        if placement is not None:
            found.append(placement)
    return found


@dataclass
class LimitedMovesSearch:
    """Search for the minimum makespan within a maximum number of moves.

    It searches for few moves below a load limit, by bisection over the load limit. ``bound`` is a
    lower bound on the makespan; ``placement`` is the best placement found.
    """

    problem: Problem
    max_moves: int
    placement: Placement
    rng: np.random.Generator
    budget: SearchBudget = field(init=False, default_factory=lambda: SearchBudget(inf))

    def __post_init__(self) -> None:
        self.costs = np.ones(self.problem.partition_count, dtype=np.int64)
        self.makespan = max(self.problem.loads(self.placement), default=0)
        self.bound = makespan_bound_within(self.problem, self.max_moves, high=self.makespan)

    def run(self, budget: SearchBudget) -> None:
        """Scan load limits, then bisect between the bound and the best makespan."""
        may_continue = budget.counted(_STEP)
        self.budget = budget
        excess = self.makespan - self.bound
        for step in range(_STEPS):
            self._search(self.bound + int(excess * 0.75**step), may_continue)
        excess = self.makespan - self.bound
        for step in reversed(range(_STEPS)):
            self._search(self.bound + excess * step // _STEPS, may_continue)
        failures = 0
        while failures < _MAX_FAILURES and may_continue():
            distance = self.makespan - self.bound
            if distance <= self.bound // _PRECISION:
                return
            limit = self.makespan - max(1, distance // (2 + 3 * failures))
            if self._search(limit, may_continue, _NEIGHBOURHOODS) or self._refute(limit):
                failures = 0
            else:
                failures += 1

    def _search(
        self, limit: int, may_continue: Callable[[], bool], neighbourhoods: int = 0
    ) -> bool:
        """Search for a placement within a load limit and the maximum number of moves.

        Return whether a placement was found.
        """
        if limit >= self.makespan or not may_continue():
            return False
        search = FewMovesSearch(self.problem, limit, self.costs, self.rng, self.budget)
        found = search.initial_solution(keep_owned(self.problem), self.budget.counted(_STEP))
        if found is None:
            return False
        if neighbourhoods and search.cost(found) > self.max_moves:
            steps = self.budget.counted(_STEP, neighbourhoods)
            found = search.improve(found, self.max_moves, steps)
        if search.cost(found) > self.max_moves:
            return False
        self.placement, self.makespan = found, max(self.problem.loads(found))
        return True

    def _refute(self, limit: int) -> bool:
        """Try to prove that a load limit needs more moves than permitted.

        Raise the bound, and return whether it rose.
        """
        moves = exchange_bound(
            self.problem,
            [limit] * self.problem.member_count,
            self.costs,
            incumbent=self.max_moves + 1,
            may_continue=self.budget.counted(price_step(self.problem), _PRICE_ROUNDS),
        )
        if moves <= self.max_moves:
            return False
        self.bound = max(self.bound, min(limit + 1, self.makespan))
        return True
