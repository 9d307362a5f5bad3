"""Solve levels from the answers with fewer constraints and levels.

The searches share the work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.counting import level_bound
from kassay.solver.certificate.certificate import stable_claims
from kassay.solver.constraints import (
    Capacity,
    Constraint,
    MaxMoves,
    group_constraints,
)
from kassay.solver.evaluation import violated
from kassay.solver.lexicographic.solve_levels import (
    LexicographicResult,
    RelaxedStart,
    solve_levels,
)
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import EXACT, Imbalance, Level, Movement, Tolerance
from kassay.solver.problem import Problem

_MAX_JOINT_LEVELS = 2
"""Number of levels that are searched together, without a search with fewer levels before."""
_MIN_WORK = 0.1
"""Work left below which there is no search with fewer constraints, and least work of a search that
adds a constraint."""
_FEWER_LEVELS_SHARE = 0.8
"""Share of the time left for a search with the levels up to the moves, at least the first two."""
_QUICK_WORK = 0.2
"""Work of a first search without constraints."""
_FULL_SHARE, _RELAXED_SHARE = 0.4, 2 / 3
"""Share of the time left for the search with all constraints, and then for the search with fewer
constraints."""
_LOADS_TOLERANCE, _LOADS_SHARE = Tolerance(relative=Fraction(1, 1_000)), 0.3
"""Tolerance of the loads in a search for few moves before a search within a limit on moves, and its
share of the time left."""


@dataclass(frozen=True, slots=True)
class RelaxableSearch:
    """Minimise levels within constraints, and start from answers with fewer of both."""

    problem: Problem
    levels: Sequence[Level]
    rules: Sequence[Constraint]
    initial_assignment: Assignment | None
    budget: SearchBudget
    known: tuple[RelaxedStart, ...] = ()
    """Answers from which each search starts."""

    def run(self) -> LexicographicResult:
        """Search with all constraints and levels, and with fewer of them."""
        found = self._run_with_all_rules()
        is_open = found.placement is None and not found.conflict
        return self._add_rules_in_turn() if is_open and self.rules else found

    def _add_rules_in_turn(self) -> LexicographicResult:
        """Add violated constraints one after the other, and start from the answer before.

        Repairs meet one more constraint more easily than all of them together.
        """
        active, starts = replace(self, rules=()), list[RelaxedStart]()
        while True:
            budget = self.budget.for_first_result(_MIN_WORK)
            found = replace(active, budget=budget).search(*starts)
            broken = [] if found.placement is None else self._violated(found)
            if not broken:
                return found
            active = replace(active, rules=(*active.rules, broken[0]))
            starts = self._starts(found, has_same_levels=False)

    def _run_with_all_rules(self) -> LexicographicResult:
        if any(isinstance(rule, MaxMoves) for rule in self.rules):
            # Without the limit, answers have too many moves to be of use.
            return self.search()
        placements = (placement for one in self.known for placement in one.placements)
        if any(not any(violated(self.problem, self.rules, one)) for one in placements):
            proven = replace(self, budget=self.budget.until(0)).search()
            if proven.conflict or _is_proven(proven):
                return proven
        return self._run_in_parts()

    def _run_in_parts(self) -> LexicographicResult:
        """Use shares of the time for searches with fewer levels or constraints.

        The levels after the moves have the time that the levels before them leave.
        """
        if self.budget.left < _MIN_WORK:
            return self.search()
        moves = (at for at, level in enumerate(self.levels) if isinstance(level, Movement))
        first_levels = self.levels[: max(next(moves, 1) + 1, _MAX_JOINT_LEVELS)]
        if len(first_levels) == len(self.levels):
            return self._relax_constraints()
        within = self.budget.part(_FEWER_LEVELS_SHARE)
        first = replace(self, levels=first_levels, budget=within).run()
        return first if first.conflict else self.search(*self._starts(first, has_same_levels=True))

    def _relax_constraints(self) -> LexicographicResult:
        """Search without constraints for a short time, then with all or some of them.

        If the first answer is proven and meets the constraints, it is the result.
        """
        if not self.rules:
            return self.search()
        share = min(1.0, _QUICK_WORK / max(self.budget.left, _QUICK_WORK))
        quick = replace(self, rules=(), budget=self.budget.part(share)).search()
        if quick.conflict or (self._is_final(quick) and not self._violated(quick)):
            return quick
        # The short search may have ended its searches for few moves too early to continue them.
        start, relaxed = RelaxedStart(quick.placements(self.problem), ()), self._relaxed()
        return self.search(start) if relaxed is None else self._take_turns(relaxed, [start])

    def _take_turns(
        self, relaxed: "RelaxableSearch", starts: list[RelaxedStart]
    ) -> LexicographicResult:
        """Search with all constraints, with fewer of them, and again with all of them.

        The first search is omitted if the lowest loads meet the constraints whenever any loads do.
        If the answer of the second search meets all constraints, this search continues instead.
        """
        if not self._lowest_loads_meet_rules():
            full = replace(self, budget=self.budget.part(_FULL_SHARE)).search(*starts)
            if full.conflict or self._is_final(full):
                return full
            starts = self._starts(full, has_same_levels=False)
        known = tuple(RelaxedStart(one.placements, ()) for one in starts)
        relaxed = replace(relaxed, known=(*self.known, *known))
        found = replace(relaxed, budget=self.budget.part(_RELAXED_SHARE)).search()
        if found.conflict or (self._is_final(found) and not self._violated(found)):
            return found
        if found.placement is None or self._violated(found):
            return self.search(*starts, *self._starts(found, has_same_levels=False))
        more = relaxed.search(*self._starts(found, has_same_levels=True))
        return found if more.placement is None or self._violated(more) else more

    def _is_final(self, result: LexicographicResult) -> bool:
        """Return whether there is an answer that is proven, or no time is left."""
        return result.placement is not None and (_is_proven(result) or not self.budget.has_work)

    def _lowest_loads_meet_rules(self) -> bool:
        """Return whether the lowest loads meet the constraints whenever any loads do.

        Return True only if all constraints are capacities of all members, not below `level_bound`,
        the first level is the makespan without a tolerance, and speeds are equal.
        """
        level, problem = self.levels[0], self.problem
        return (
            isinstance(level, Imbalance)
            and (level.measure, level.tolerance) == (Measure.MAKESPAN, EXACT)
            and problem.group.has_equal_speeds
            and all(
                isinstance(rule, Capacity)
                and rule.member is None
                and rule.limit >= level_bound(problem, level)
                for rule in self.rules
            )
        )

    def _violated(self, result: LexicographicResult) -> list[Constraint]:
        """Return the constraints that an answer violates.

        A level with a tolerance can have a second placement with its best value, which sets the
        limit of the level. If the answer meets all constraints, return those that this placement
        violates: with them, the best value and the limit can be higher.
        """
        broken = (
            violated(self.problem, self.rules, one) for one in result.placements(self.problem)
        )
        return next((found for one in broken if (found := [*one])), [])

    def _relaxed(self) -> "RelaxableSearch | None":
        """Return the search with fewer constraints, or None if all of them are to be kept.

        If the first level has a tolerance, keep all of them, because the searches for few moves
        meet constraints. Otherwise, keep the capacities of the group if there are others, because
        the search for the lowest loads finds lower loads without constraints.
        """
        if self.levels[0].tolerance != EXACT:
            return None
        implied = group_constraints(self.problem.group)
        rules = [rule for rule in self.rules if rule in implied]
        if len(rules) == len(self.rules):
            rules = []
        return replace(self, rules=rules) if len(rules) < len(self.rules) else None

    def _starts(self, result: LexicographicResult, *, has_same_levels: bool) -> list[RelaxedStart]:
        """Return an answer with fewer constraints or levels as the start of the next search.

        If the next search has the same constraints and first levels, the bounds of `stable_claims`
        are valid, otherwise only the bound of the first level is.
        """
        if result.placement is None:
            return []
        valid = result.claims[:1]
        if has_same_levels:
            valid = tuple(stable_claims(self.problem, result.claims))
        bounds = tuple((claim.bound, claim.origin) for claim in valid)
        return [RelaxedStart(result.placements(self.problem), bounds, result.moves_searches)]

    def search(self, *starts: RelaxedStart) -> LexicographicResult:
        """Search with all constraints and levels."""
        known = (
            one if one.rules.issubset(self.rules) else replace(one, bounds=()) for one in self.known
        )
        return solve_levels(
            self.problem,
            levels=self.levels,
            constraints=self.rules,
            initial_assignment=self.initial_assignment,
            budget=self.budget,
            starts=(*known, *starts),
        )


def _is_proven(result: LexicographicResult) -> bool:
    return result.placement is not None and all(claim.is_proven for claim in result.claims)
