"""Level after level: bound, incumbent, search; each level keeps what the earlier ones reached."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from kassay.solver.bounds import level_bound, load_ceiling, makespan_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraints import add_constraint
from kassay.solver.cpsat.levels import Term, level_terms
from kassay.solver.cpsat.model import AssignmentModel
from kassay.solver.cpsat.search import SearchBudget, minimise
from kassay.solver.cpsat.symmetry import classify
from kassay.solver.evaluation import level_value, level_values, movement_costs
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.objective import Imbalance, Level, Measure, Movement
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem
from kassay.solver.weighted.components import solve_components
from kassay.solver.weighted.few_moves import FewMovesSearch
from kassay.solver.weighted.load_balancing import LoadBalancer
from kassay.solver.weighted.movement_bound import exchange_bound

# Beyond this many counts, building a model takes longer than it could ever pay back.
_MOST_COUNTS = 400_000
# With fewer rows CP-SAT is done before anything else has begun.
_FEW_ROWS = 12
_MANY_ROWS = 60
_MANY_CHOICES = 10_000


@dataclass(frozen=True, slots=True)
class LevelResult:
    """A level that is done: its best value, its bound, and what later levels may use up.

    ``origin`` tells where the bound comes from.
    """

    level: Level
    best: int
    bound: int
    limit: int
    placement: Placement
    origin: Origin


@dataclass
class LexicographicSolver:
    """The levels of one problem, solved in order.

    Parameters
    ----------
    problem
        What has to be placed.
    levels
        What to minimise, in order.
    constraints
        What must hold.
    pool
        Placements known so far that meet the constraints; at least one.
    proven
        Optima of levels, by index, that were proved beforehand.
    reached
        Levels done so far.
    """

    problem: Problem
    levels: Sequence[Level]
    constraints: Sequence[Constraint]
    pool: list[Placement]
    proven: dict[int, int] = field(default_factory=dict)
    reached: list[LevelResult] = field(default_factory=list)

    def climb(self, budget: SearchBudget) -> Placement:
        """Solve every level; return the best placement found."""
        if budget.seconds > 0 and self.levels:
            self._solve_whole(budget)
        for index, level in enumerate(self.levels):
            self._reach(index, level, budget.share(len(self.levels) - index))
        return self.incumbent(self.levels[-1]) if self.levels else self.pool[0]

    def incumbent(self, level: Level) -> Placement:
        """Return the best placement on a level among those within the limits so far."""
        rest = [other for other in self.levels if other is not level]
        return min(
            (placement for placement in self.pool if self.within_limits(placement)),
            key=lambda placement: (
                level_value(self.problem, level, placement),
                level_values(self.problem, rest, placement),
            ),
        )

    def within_limits(self, placement: Placement) -> bool:
        """Whether a placement keeps what the levels done so far reached."""
        return all(
            level_value(self.problem, done.level, placement) <= done.limit for done in self.reached
        )

    def ceilings(self) -> list[int] | None:
        """Return the most load of each position that the levels done so far leave possible."""
        tops = [
            load_ceiling(self.problem, done.level.measure, done.limit)
            for done in self.reached
            if isinstance(done.level, Imbalance)
        ]
        return [min(tops)] * self.problem.width if tops else None

    def _solve_whole(self, budget: SearchBudget) -> None:
        if self.problem.size < _FEW_ROWS or not self.problem.group.is_weighted:
            return
        optimum = solve_components(self.problem, self.levels, self.constraints, seed=budget.seed)
        if optimum is not None:
            self.pool.append(optimum.placement)
            self.proven.update(enumerate(optimum.values))

    def _reach(self, index: int, level: Level, budget: SearchBudget) -> None:
        bound, origin = level_bound(self.problem, level, self.ceilings()), Origin.COUNTING
        if self.proven.get(index, 0) > bound:
            bound, origin = self.proven[index], Origin.ENUMERATION
        if self._value(level) > bound and budget.seconds > 0:
            self._improve(level, budget)
        if isinstance(level, Movement) and self._value(level) > bound:
            higher = self._exchange(level, bound, budget)
            if higher > bound:
                bound, origin = higher, Origin.EXCHANGE
        if self._value(level) > bound:
            higher = self._search(level, bound, budget)
            if higher > bound:
                bound, origin = higher, Origin.CP_SAT
        best = self._value(level)
        limit = level.tolerance.limit(best)
        placement = self.incumbent(level)
        self.reached.append(LevelResult(level, best, min(bound, best), limit, placement, origin))

    def _improve(self, level: Level, budget: SearchBudget) -> None:
        """Improve the incumbent on a level of imbalance by dealing anew what few members have."""
        if not isinstance(level, Imbalance) or self.reached or self.constraints:
            return
        if self.problem.size < _FEW_ROWS or self.problem.total >= EXACT_IN_64_BITS:
            return
        rng = np.random.default_rng(budget.seed)
        balancer = LoadBalancer(self.problem, self.incumbent(level).copy(), rng)
        target = makespan_bound(self.problem)
        go_on = _ticker(budget.share(2), 5_000)
        balancer.lower_makespan(target, go_on)
        balancer.even_out(go_on)
        self.pool.append(balancer.placement)

    def _exchange(self, level: Movement, bound: int, budget: SearchBudget) -> int:
        """Plan moves under the ceiling that the imbalance leaves, and bound them; 0 if unfit."""
        ceilings, problem = self.ceilings(), self.problem
        if ceilings is None or self.constraints or budget.seconds <= 0:
            return 0
        if (
            problem.size < _MANY_ROWS
            or problem.total >= EXACT_IN_64_BITS
            or not problem.group.is_weighted
        ):
            return 0
        costs = movement_costs(problem, level)
        mover = None
        if all(
            isinstance(done.level, Imbalance) and done.level.measure is Measure.MAKESPAN
            for done in self.reached
        ):
            mover = FewMovesSearch(
                problem, min(ceilings), costs, np.random.default_rng(budget.seed)
            )
            plan = mover.first_plan(keep_owned(problem))
            if plan is None or mover.cost(plan) > self._value(level):
                plan = self.incumbent(level)
            first = _ticker(budget.until(budget.seconds / 4), 150)
            self.pool.append(mover.improve(plan, bound, first))
        # CP-SAT adds little to this bound once rows and members are many.
        many = problem.size * problem.width >= _MANY_CHOICES
        rest = budget.until(budget.seconds * (0.95 if many else 0.5))
        proven = exchange_bound(
            problem,
            ceilings,
            costs,
            incumbent=self._value(level),
            go_on=_ticker(rest, 250),
        )
        if mover is not None and many:
            best = self.incumbent(level)
            self.pool.append(mover.improve(best, max(bound, proven), _ticker(rest, 150)))
        return proven

    def _value(self, level: Level) -> int:
        return level_value(self.problem, level, self.incumbent(level))

    def _search(self, level: Level, bound: int, budget: SearchBudget) -> int:
        """Search with CP-SAT; return a bound, 0 if there was no time for any."""
        model = self._model() if budget.seconds > 0 else None
        if model is None:
            return 0
        terms = level_terms(model, level, self._value(level))
        if terms is None:
            return 0
        if len(terms) > 1:
            return self._search_stages(model, terms, level, budget)
        found = self._minimise(model, terms[0], bound, level, budget)
        return 0 if found is None else found

    def _model(self) -> AssignmentModel | None:
        """Build the model of everything that must hold; None if it does not fit."""
        classes = classify(self.problem, self.levels, self.constraints)
        widths = [len(consumers) for consumers in self.problem.sets]
        counts = sum(widths[self.problem.set_of_row[rows[0]]] for rows in classes.rows)
        if counts > _MOST_COUNTS or self.problem.total >= EXACT_IN_64_BITS:
            return None
        model = AssignmentModel(self.problem, classes)
        for constraint in self.constraints:
            add_constraint(model, constraint)
        for done in self.reached:
            terms = level_terms(model, done.level, done.limit)
            if terms is None:
                return None
            limits = [done.limit]
            if len(terms) > 1:
                limits = sums_of_greatest(self.problem.loads(done.placement))
            for term, limit in zip(terms, limits, strict=True):
                model.cp.add(term.expression + model.zero <= term.scaled(limit))
        return model

    def _minimise(
        self, model: AssignmentModel, term: Term, bound: int, level: Level, budget: SearchBudget
    ) -> int | None:
        model.hint(self.incumbent(level))
        found = minimise(model, term.expression, budget, max(term.scaled_up(bound), 0))
        if found.placement is not None:
            self.pool.append(found.placement)
        return None if found.bound is None else term.value(found.bound)

    def _search_stages(
        self, model: AssignmentModel, terms: Sequence[Term], level: Level, budget: SearchBudget
    ) -> int:
        """Minimise the sum of the k greatest loads for k = 1, 2, ...: the loads in turn."""
        width, base = len(terms), self.problem.total + 1
        rank, before = 0, 0
        for index, term in enumerate(terms):
            share = -(-(model.total - before // model.unit) // (width - index))
            least = before + share * model.unit
            reached = self._sum_of_greatest(level, index)
            if reached > least:
                slice_ = budget.share(width - index)
                least = max(self._minimise(model, term, least, level, slice_) or 0, least)
                reached = self._sum_of_greatest(level, index)
            rank = rank * base + min(least, reached) - before
            if least < reached:
                return rank * int(base ** (width - index - 1))
            model.cp.add(term.expression + model.zero <= term.scaled(reached))
            before = reached
        return rank

    def _sum_of_greatest(self, level: Level, index: int) -> int:
        return sums_of_greatest(self.problem.loads(self.incumbent(level)))[index]


def _ticker(budget: SearchBudget, most: int) -> Callable[[], bool]:
    """Say whether to go on: by the clock, or under a deterministic limit by counting."""
    if budget.limits.deterministic is None:
        return lambda: budget.seconds > 0
    turns = iter(range(most))
    return lambda: next(turns, None) is not None


def sums_of_greatest(loads: Sequence[int]) -> list[int]:
    """Sum the greatest load, the two greatest, and so on.

    Examples
    --------
    >>> sums_of_greatest([1, 3, 2])
    [3, 5, 6]
    """
    return list(accumulate(sorted(loads, reverse=True)))
