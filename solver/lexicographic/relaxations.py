"""Solve levels from the answers with fewer constraints and levels.

With a deterministic limit, the search adds constraints one by one until its answer meets all of
them. A further constraint that this answer meets does not change the answer. With a further level
or tolerance, the search starts from the answer without it, so the answer does not become worse.
Within a time limit, only constraints are relaxed, and the searches share the time, so the answer
can become worse.
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
from kassay.solver.problem import Placement, Problem

_MAX_JOINT_LEVELS = 2
"""Number of levels that are searched together, without a search with fewer levels before."""
_MIN_SECONDS = 0.1
"""Time left below which there is no search with fewer constraints."""
_DIRECT_SHARE, _RELAXED_SHARE = 0.6, 0.2
"""Shares of the time left for a first search, and for that with fewer constraints."""
_MAX_SINGLE_RULES = 10
"""Number of constraints from which all violated constraints are added together."""


@dataclass(frozen=True, slots=True)
class RelaxableSearch:
    """Minimise levels within constraints, after a search with fewer of both."""

    problem: Problem
    levels: Sequence[Level]
    rules: Sequence[Constraint]
    initial_assignment: Assignment | None
    budget: SearchBudget
    known: tuple[RelaxedStart, ...] = ()
    """Answers from which each search starts."""

    def run(self) -> LexicographicResult:
        """Search with fewer constraints or levels first, then with all of them."""
        if self.budget.limits.deterministic is None:
            return self._run_within_time()
        return self._run_in_steps()

    def _run_in_steps(self) -> LexicographicResult:
        """Add constraints one by one, until the answer meets all of them."""
        given = []
        if len(self.levels) > _MAX_JOINT_LEVELS:
            fewer = replace(self, levels=self.levels[:-1]).run()
            if fewer.conflict:
                return fewer
            given += self._starts(fewer, is_met=True)
        exact = [replace(level, tolerance=EXACT) for level in self.levels]
        if exact != [*self.levels]:
            given += self._starts(replace(self, levels=exact).run(), is_met=False)
        active, starts = replace(self, rules=()), given
        while True:
            result = active.search(*starts)
            if result.conflict or len(active.rules) == len(self.rules):
                return result
            if result.placement is None:
                return self.search(*given)
            added = self._added_rules(active, result)
            if not added:
                return result
            active = replace(active, rules=(*active.rules, *added))
            starts = [*given, *self._starts(result, is_met=False)]

    def _added_rules(
        self, active: "RelaxableSearch", result: LexicographicResult
    ) -> Sequence[Constraint]:
        """Return the next constraints that the answer with the active ones violates.

        The capacities of the members are added together.
        """
        broken = self._violated(result)
        implied = group_constraints(self.problem.group)
        if broken and broken[0] in implied:
            return [rule for rule in self.rules if rule in implied]
        return broken[:1] if len(active.rules) < _MAX_SINGLE_RULES else broken

    def _run_within_time(self) -> LexicographicResult:
        """Use shares of the time for a first search, and for one with fewer constraints.

        The first search has all constraints; the method returns its answer if that is proven.
        If the answer of the second search meets all constraints, the method returns it or, if it
        is not proven, continues the second search. If the answer violates a constraint, another
        search with all constraints starts from the placements found and the bound.
        """
        relaxed = None if self.budget.seconds < _MIN_SECONDS else self._relaxed()
        if relaxed is None:
            return self.search()
        direct = replace(self, budget=self.budget.part(_DIRECT_SHARE)).search()
        if direct.conflict or _is_proven(direct):
            return direct
        starts = self._starts(direct, is_met=False)
        known = tuple(RelaxedStart(one.placements, ()) for one in starts)
        relaxed = replace(relaxed, known=known)
        first = replace(relaxed, budget=self.budget.part(_RELAXED_SHARE)).run()
        if first.conflict:
            return first
        if first.placement is None or self._violated(first):
            return self.search(*starts, *self._starts(first, is_met=False))
        if _is_proven(first):
            return first
        more = relaxed.search(*self._starts(first, is_met=True))
        return first if more.placement is None or self._violated(more) else more

    def _violated(self, result: LexicographicResult) -> list[Constraint]:
        """Return the constraints that an answer violates.

        They include those of a placement with the best value of a level with a tolerance: without
        this placement, the best value can be higher, and the limit on the level with it.
        """
        broken = (violated(self.problem, self.rules, one) for one in self._placements(result))
        return next((found for one in broken if (found := [*one])), [])

    def _placements(self, result: LexicographicResult) -> tuple[Placement, ...]:
        """Return the answer, and placements that are better on a level with a tolerance."""
        if result.placement is None:
            return ()
        best = (self.problem.to_placement(one.best) for one in result.claims if one.best)
        return (result.placement, *(one for one in best if one is not None))

    def _relaxed(self) -> "RelaxableSearch | None":
        """Return the search with fewer constraints, or None if there are none."""
        implied = group_constraints(self.problem.group)
        capacities = [rule for rule in self.rules if rule in implied]
        if len(self.rules) > len(capacities) > 0:
            return replace(self, rules=capacities)
        return replace(self, rules=()) if self.rules else None

    def _starts(self, result: LexicographicResult, *, is_met: bool) -> list[RelaxedStart]:
        """Return an answer with fewer constraints or levels as the start of the next search.

        If the answer violates constraints, only the bound of the first level is valid: the bounds
        of further levels depend on the values of the levels before.
        """
        if result.placement is None:
            return []
        bounds = tuple((claim.bound, claim.origin) for claim in result.claims)
        placements = self._placements(result)
        return [RelaxedStart(placements, bounds if is_met else bounds[:1], result.moves_searches)]

    def search(self, *starts: RelaxedStart) -> LexicographicResult:
        """Search with all constraints and levels."""
        return solve_levels(
            self.problem,
            levels=self.levels,
            constraints=self.rules,
            initial_assignment=self.initial_assignment,
            budget=self.budget,
            starts=(*self.known, *starts),
        )


def _is_proven(result: LexicographicResult) -> bool:
    return result.placement is not None and all(claim.is_proven for claim in result.claims)
