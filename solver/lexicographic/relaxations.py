"""Solve levels from the answers with fewer constraints and levels.

With a deterministic limit, a constraint that such an answer meets makes it no worse. A time limit
is shared by the searches, so that the answer can be worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.solver.constraints import Constraint, group_constraints
from kassay.solver.evaluation import violated
from kassay.solver.lexicographic.solve_levels import (
    LexicographicResult,
    RelaxedStart,
    solve_levels,
)
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import EXACT, Level
from kassay.solver.problem import Problem

_MAX_JOINT_LEVELS = 2
"""Number of levels that are searched together, without a search with fewer levels before."""
_MIN_SECONDS = 0.1
"""Time left below which there is no search with fewer constraints or levels."""
_RELAXED_SHARE = 0.2
"""Share of the time left for the search with fewer constraints or levels."""


@dataclass(frozen=True, slots=True)
class RelaxableSearch:
    """Minimise levels within constraints, after a search with fewer of both."""

    problem: Problem
    levels: Sequence[Level]
    rules: Sequence[Constraint]
    initial_assignment: Assignment | None
    budget: SearchBudget

    def run(self) -> LexicographicResult:
        """Search with fewer constraints or levels first, then with all of them.

        If the first answer meets all constraints, it is the answer, or the search with fewer
        constraints continues. Otherwise the search with all constraints starts from its bound.
        """
        is_timed = self.budget.limits.deterministic is None
        is_short = is_timed and self.budget.seconds < _MIN_SECONDS
        relaxed = None if is_short else self._relaxed()
        if relaxed is None:
            return self.search(self._exact_start())
        soon = replace(relaxed, budget=self.budget.part(_RELAXED_SHARE)) if is_timed else relaxed
        first = soon.run()
        if first.conflict:
            return first
        if first.placement is None:
            return self.search()
        if not self._is_met(first) or len(relaxed.levels) < len(self.levels):
            return self.search(_start(first, is_met=self._is_met(first)))
        if not is_timed or all(claim.is_proven for claim in first.claims):
            return first
        more = relaxed.search(_start(first, is_met=True))
        return more if self._is_met(more) else first

    def _relaxed(self) -> "RelaxableSearch | None":
        """Return the search with fewer constraints or levels, or None if there are no fewer."""
        implied = group_constraints(self.problem.group)
        capacities = [rule for rule in self.rules if rule in implied]
        if len(self.rules) > len(capacities) > 0:
            return replace(self, rules=capacities)
        if self.rules:
            return replace(self, rules=())
        if len(self.levels) > _MAX_JOINT_LEVELS:
            return replace(self, levels=self.levels[:-1])
        return None

    def _exact_start(self) -> RelaxedStart | None:
        """Return the answer without tolerances as a start.

        With a time limit, there is none: the search with tolerances mostly needs less time.
        """
        exact = [replace(level, tolerance=EXACT) for level in self.levels]
        if self.budget.limits.deterministic is None or exact == [*self.levels]:
            return None
        return _start(replace(self, levels=exact).run(), is_met=False)

    def _is_met(self, result: LexicographicResult) -> bool:
        return result.placement is not None and not any(
            violated(self.problem, self.rules, result.placement)
        )

    def search(self, start: RelaxedStart | None = None) -> LexicographicResult:
        """Search with all constraints and levels."""
        return solve_levels(
            self.problem,
            levels=self.levels,
            constraints=self.rules,
            initial_assignment=self.initial_assignment,
            budget=self.budget,
            start=start,
        )


def _start(result: LexicographicResult, *, is_met: bool) -> RelaxedStart | None:
    """Return the start of a search from an answer with fewer constraints or levels.

    If the answer violates constraints, only the bound of the first level is valid: the bounds of
    further levels depend on the values of the levels before.
    """
    if result.placement is None:
        return None
    bounds = tuple((claim.bound, claim.origin) for claim in result.claims)
    return RelaxedStart(result.placement, bounds if is_met else bounds[:1])
