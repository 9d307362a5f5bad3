"""Minimise levels and find valid placements with CP-SAT."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.cpsat.expressions import Term, add_constraint, level_terms
from kassay.solver.cpsat.model import (
    AssignmentModel,
    Expression,
    SearchResult,
    is_small_enough,
    load_scale,
    minimise,
    run_cpsat,
    search,
    symmetry_classes,
    weighted_sum,
)
from kassay.solver.evaluation import level_value, load_units, violated
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Ints, Placement, Problem


def search_level(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> int:
    """Minimise one level with CP-SAT, and return a lower bound on the level.

    Return 0 without a search, or if leximax before the level is not proven: then the model also
    excludes placements with a lower leximax value.
    """
    found = _search(pool, level, bound, budget)
    leximax = (done.claim for done in pool.reached if _is_leximax(done.claim.level))
    return found if all(claim.is_proven for claim in leximax) else 0


def _search(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> int:
    limits = pool.limits()
    measured = [level, *(each for each, _ in limits)]
    movement = next((each for each in measured if isinstance(each, Movement)), None)
    limits_moves = any(isinstance(rule, MaxMoves) for rule in pool.constraints)
    is_leximax = any(map(_is_leximax, measured))
    has_windows = pool.problem.profiles is not None
    if has_windows or (
        (movement is not None or limits_moves) and not is_leximax and not pool.limits_squares()
    ):
        # Few partitions move, so that a model with variables for moves only is smaller.
        moved = MovedPartitionsModel(pool.problem, pool.constraints, movement or Movement())
        found = moved.minimise(
            level, limits, budget=budget, hint=pool.incumbent(level), bound=bound
        )
        if found.placement is not None:
            pool.add(found.placement)
        return found.bound or 0
    model = _build_model(pool, level, budget)
    terms = None if model is None else level_terms(model, level, pool.value(level))
    if model is None or terms is None:
        return 0
    if len(terms) > 1:
        return _search_leximax(pool, model, terms, level, budget)
    model.hint(pool.incumbent(level))
    return _minimise(pool, model, terms[0], bound, budget) or 0


def _is_leximax(level: Level) -> bool:
    return isinstance(level, Imbalance | HostImbalance) and level.measure is Measure.LEXIMAX


def _build_model(pool: IncumbentPool, level: Level, budget: SearchBudget) -> AssignmentModel | None:
    """Return a CP-SAT model with the limits of earlier levels, or None if it is too large."""
    problem = pool.problem
    classes = symmetry_classes(problem, pool.levels, pool.constraints)
    levels = [level, *(done.claim.level for done in pool.reached)]
    if not is_small_enough(problem, classes, levels, budget):
        return None
    scale = load_scale(problem, [*pool.limits(), (level, pool.value(level))])
    model = AssignmentModel(problem, classes, scale)
    for constraint in pool.constraints:
        add_constraint(model, constraint)
    for done in pool.reached:
        terms = level_terms(model, done.claim.level, done.limit)
        if terms is None:
            return None
        limits = [done.limit]
        if len(terms) > 1:
            limits = _sums_of_greatest(problem, done.claim.level, done.placement)
        for term, limit in zip(terms, limits, strict=True):
            model.add_limit(term.expression, term.scaled(limit))
    return model


def _minimise(
    pool: IncumbentPool, model: AssignmentModel, term: Term, bound: int, budget: SearchBudget
) -> int | None:
    result = minimise(
        model, term.expression, budget, term.scaled_up(bound), is_direct=term.is_plain
    )
    if result.placement is not None:
        pool.add(result.placement)
    return None if result.bound is None else term.value(result.bound)


def _search_leximax(
    pool: IncumbentPool,
    model: AssignmentModel,
    terms: Sequence[Term],
    level: Level,
    budget: SearchBudget,
) -> int:
    """Minimise the loads in descending order, one after the other; return a lower bound."""
    problem, units = pool.problem, load_units(pool.problem, level)
    members, unit = len(terms), problem.weight_unit
    base = problem.total * max(units.factors) + 1
    rank, before = 0, 0
    for index, term in enumerate(terms):
        bound = before
        if units.has_equal_speeds:
            bound += -(-((problem.total - before) // unit) // (members - index)) * unit
        reached = _sums_of_greatest(problem, level, pool.incumbent(level))[index]
        if reached > bound:
            model.hint(pool.incumbent(level))
            # The greatest load needs most of the work.
            part = budget.part(1 / min(members - index, 2))
            bound = max(_minimise(pool, model, term, bound, part) or 0, bound)
            reached = _sums_of_greatest(problem, level, pool.incumbent(level))[index]
        rank = rank * base + min(bound, reached) - before
        if bound < reached:
            return rank * int(base ** (members - index - 1))
        model.add_limit(term.expression, term.scaled(reached))
        before = reached
    return rank


def _sums_of_greatest(problem: Problem, level: Level, placement: Placement) -> list[int]:
    """Return the sums of the k greatest relative loads for k = 1, 2, and so on."""
    units = load_units(problem, level)
    loads = units.relative_loads(units.loads(problem.loads(placement)))
    return list(accumulate(sorted(loads, reverse=True)))


LevelLimit = tuple[Level, int]
"""Level with its greatest permitted value."""


@dataclass(frozen=True, slots=True)
class MovedPartitionsModel:
    """CP-SAT model with one variable per possible move.

    A partition with an owner stays, unless the variable of its class that counts the leaving
    partitions is positive. The load of a member is its owned load, minus the load that leaves, plus
    the load that it receives. If few partitions move, most variables are 0, and the search ends
    earlier than with a variable for each partition that stays.

    All constraints are expressed, and limits on all levels except leximax. A search returns no
    placement and no bound if the model is too large. Weights that are too large for CP-SAT are
    scaled: the bounds are valid then.
    """

    problem: Problem
    constraints: Sequence[Constraint] = ()  # with the capacities of the members
    movement: Movement = field(default_factory=Movement)  # cost of the moves
    possible: NDArray[np.bool_] | None = None  # moves, per partition and member; None for all
    interleaves: bool = False
    """Whether CP-SAT runs several strategies in turn. They find placements near a known bound
    earlier, and prove bounds later."""

    def minimise(
        self,
        level: Level,
        limits: Iterable[LevelLimit],
        *,
        budget: SearchBudget,
        hint: Placement | None = None,
        bound: int = 0,
    ) -> SearchResult:
        """Minimise a level within limits on other levels.

        The search starts from a hint, which need not meet the constraints and limits. ``bound`` is
        a proven lower bound on the level; the bound of the result is not lower.
        """
        limits = tuple(limits)
        windows = first_windows(self.problem, hint, [level, *(limited for limited, _ in limits)])
        value, best = partial(level_value, self.problem, level), list[Placement]()
        while True:
            found = self._minimise(level, limits, windows, budget=budget, hint=hint, bound=bound)
            placement, bound = found.placement, max(bound, found.bound or 0)
            if placement is not None and self._is_within(limits, placement):
                best.append(placement)
            missing = list[int]()
            if placement is not None and not self._is_within([*limits, (level, bound)], placement):
                peaks = self.problem.load_profiles(placement).max(axis=0)
                order = np.argsort(-peaks, kind="stable").tolist()
                missing = [at for at in order if at not in windows][:_MORE_WINDOWS]
            if not missing or not budget.has_work:
                return replace(found, placement=min(best, key=value, default=None))
            windows = (*windows, *missing)

    def _minimise(
        self,
        level: Level,
        limits: tuple[LevelLimit, ...],
        windows: tuple[int, ...],
        *,
        budget: SearchBudget,
        hint: Placement | None,
        bound: int,
    ) -> SearchResult:
        worst = self._worst_value(level, limits, hint)
        has_work = budget.has_work
        model = self._build(level, limits, worst, budget, windows) if has_work else None
        if model is None:
            return SearchResult(None, None)
        terms = level_terms(model, level, worst)
        if terms is None or len(terms) > 1:
            return SearchResult(None, None)
        if hint is not None:
            model.hint(hint)
        found = minimise(
            model,
            terms[0].expression,
            budget,
            terms[0].scaled_up(bound),
            interleaves=self.interleaves,
        )
        if found.bound is None:
            return found
        return SearchResult(
            found.placement, max(terms[0].value(found.bound), bound), found.infeasible
        )

    def _is_within(self, limits: Sequence[LevelLimit], placement: Placement) -> bool:
        return not any(violated(self.problem, self.constraints, placement)) and all(
            level_value(self.problem, limited, placement) <= limit for limited, limit in limits
        )

    def _build(
        self,
        level: Level,
        limits: Sequence[LevelLimit],
        worst: int,
        budget: SearchBudget,
        windows: tuple[int, ...],
    ) -> "_LeavingModel | None":
        problem = self.problem
        levels = [self.movement, level, *(limited for limited, _ in limits)]
        classes = symmetry_classes(problem, levels, self.constraints)
        if not is_small_enough(problem, classes, levels, budget):
            return None
        scale = load_scale(problem, [*limits, (level, worst)])
        model = _LeavingModel(problem, classes, scale, windows=windows, possible=self.possible)
        for constraint in self.constraints:
            add_constraint(model, constraint)
        for limited, limit in limits:
            terms = level_terms(model, limited, limit)
            if terms is None or len(terms) > 1:
                return None
            model.add_limit(terms[0].expression, terms[0].scaled(limit))
        return model

    def _worst_value(
        self, level: Level, limits: Sequence[LevelLimit], hint: Placement | None
    ) -> int:
        """Return an upper bound on the minimum of a level."""
        problem = self.problem
        if hint is not None and self._is_within(limits, hint):
            return level_value(problem, level, hint)
        together = np.zeros(problem.partition_count, dtype=np.int32)
        members = range(problem.member_count)
        return max((level_value(problem, level, together + at) for at in members), default=0)


@dataclass
class _LeavingModel(AssignmentModel):
    possible: NDArray[np.bool_] | None = None
    leaving: dict[int, cp_model.IntVar] = field(init=False, default_factory=dict)
    """Number of partitions that leave their owner, per symmetry class with an owner."""

    def new_counts(self, index: int, consumers: Sequence[int]) -> dict[int, Expression]:
        """Create variables for the moved partitions of one symmetry class."""
        partitions = self.classes.partitions[index]
        size, owner = len(partitions), int(self.problem.owner[partitions[0]])
        if self.possible is not None:
            consumers = [at for at in consumers if at == owner or self.possible[partitions[0], at]]
        if owner == NO_OWNER:
            return super().new_counts(index, consumers)
        received = {at: self.cp.new_int_var(0, size, "") for at in consumers if at != owner}
        if not received:
            return {owner: size}
        leaving = self.cp.new_int_var(0, size, "")
        if size == 1:
            self.cp.add_exactly_one([*received.values(), leaving.negated()])
        else:
            self.cp.add(cp_model.LinearExpr.sum(list(received.values())) == leaving)
        self.leaving[index] = leaving
        return {**received, owner: size - leaving}

    @cached_property
    def load(self) -> Sequence[Expression]:
        return [load + self.zero for load in self.load_sums()]

    def moves(self, costs: Ints) -> Expression:
        return weighted_sum(
            [
                (leaving, int(costs[self.classes.partitions[index][0]]))
                for index, leaving in self.leaving.items()
            ]
        )

    def hint(self, placement: Placement) -> None:
        super().hint(placement)
        for index, leaving in self.leaving.items():
            partitions = self.classes.partitions[index]
            left = placement[partitions] != self.problem.owner[partitions]
            self.cp.add_hint(leaving, int(np.count_nonzero(left)))


_FIRST_WINDOWS, _MORE_WINDOWS = 2, 3
"""Numbers of windows in the first model, and of windows that are added at once."""


def first_windows(
    problem: Problem, hint: Placement | None, levels: Sequence[Level]
) -> tuple[int, ...]:
    """Select the weight windows with the highest loads for the first CP-SAT model.

    Select all windows if the group is small or a level is a sum of squares.
    """
    measured = [each for each in levels if isinstance(each, Imbalance | HostImbalance)]
    if problem.has_few_terms or any(level.measure is not Measure.MAKESPAN for level in measured):
        return tuple(range(problem.window_count))
    chosen = np.argsort(-problem.load_table.sum(axis=0), kind="stable")[:_FIRST_WINDOWS].tolist()
    if hint is not None:
        peaks = problem.load_profiles(hint).max(axis=0)
        chosen += np.argsort(-peaks, kind="stable")[:_FIRST_WINDOWS].tolist()
    return tuple(dict.fromkeys(chosen))


_SHRINKING_WORK = 1.5
"""Work to shrink a conflict. It has no other limit, because infeasibility is already proven."""


def find_any_placement(
    problem: Problem, constraints: Sequence[Constraint], budget: SearchBudget
) -> SearchResult:
    """Find any placement that meets the constraints, or prove that none exists.

    Weights that are too large for CP-SAT are first rounded down, so that infeasibility is proven.
    If the placement found violates a constraint, weights are rounded up.
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

    The result is minimal if the work suffices.
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
