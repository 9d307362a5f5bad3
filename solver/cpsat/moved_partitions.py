"""CP-SAT model with variables for moves only: fewest moves, and lowest loads with few moves.

A partition with an owner stays, unless the variable of its class that counts the leaving
partitions is positive. The load of a member is its owned load, minus the load that leaves, plus
the load that it receives. If few partitions move, most variables are 0, and the search ends
earlier than with a variable for each partition that stays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.constraints import Constraint
from kassay.solver.cpsat.constraint_expressions import add_constraint
from kassay.solver.cpsat.level_expressions import level_terms
from kassay.solver.cpsat.model import (
    AssignmentModel,
    Expression,
    SearchResult,
    is_small_enough,
    minimise,
    weighted_sum,
)
from kassay.solver.cpsat.model_ranges import load_scale
from kassay.solver.cpsat.partition_classes import symmetry_classes
from kassay.solver.evaluation import level_value, violated
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Level, Movement
from kassay.solver.problem import Ints, Placement, Problem

LevelLimit = tuple[Level, int]
"""Level with its greatest permitted value."""


@dataclass(frozen=True, slots=True)
class MovedPartitionsModel:
    """Searches for few moves and low loads with a variable per possible move.

    All constraints are expressed, and limits on all levels except leximax. A search returns no
    placement and no bound if the model is too large. Weights that are too large for CP-SAT are
    scaled: the bounds are valid then.

    Parameters
    ----------
    constraints
        Constraints of each search, with the capacities of the members.
    movement
        Cost of the moves.
    possible
        Moves that the searches consider, per partition and member; None for all moves.
    interleaves
        Whether CP-SAT runs several strategies in turn. They find placements near a known bound
        earlier, and prove bounds later.
    """

    problem: Problem
    constraints: Sequence[Constraint] = ()
    movement: Movement = field(default_factory=Movement)
    possible: NDArray[np.bool_] | None = None
    interleaves: bool = False

    def fewest_moves(
        self,
        limits: Iterable[LevelLimit],
        *,
        budget: SearchBudget,
        hint: Placement | None = None,
        bound: int = 0,
    ) -> SearchResult:
        """Minimise the cost of the moves within limits on other levels, such as the makespan.

        ``bound`` is a proven lower bound on the cost; the bound of the result is not lower.
        """
        return self.minimise(self.movement, limits, budget=budget, hint=hint, bound=bound)

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

        Parameters
        ----------
        hint
            Placement from which the search starts. It need not meet the constraints and limits.
        bound
            Proven lower bound on the level; the bound of the result is not lower.
        """
        limits = tuple(limits)
        worst = self._worst_value(level, limits, hint)
        model = self._build(level, limits, worst, budget) if budget.has_work else None
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
        placement = found.placement
        if placement is not None and not self._is_within(limits, placement):
            placement = None
        return SearchResult(placement, max(terms[0].value(found.bound), bound), found.infeasible)

    def _is_within(self, limits: Sequence[LevelLimit], placement: Placement) -> bool:
        return not any(violated(self.problem, self.constraints, placement)) and all(
            level_value(self.problem, limited, placement) <= limit for limited, limit in limits
        )

    def _build(
        self, level: Level, limits: Sequence[LevelLimit], worst: int, budget: SearchBudget
    ) -> "_LeavingModel | None":
        """Build the model of all constraints and limits; return None if it is too large."""
        problem = self.problem
        levels = [self.movement, level, *(limited for limited, _ in limits)]
        classes = symmetry_classes(problem, levels, self.constraints)
        if not is_small_enough(problem, classes, levels, budget):
            return None
        scale = load_scale(problem, [*limits, (level, worst)])
        model = _LeavingModel(problem, classes, scale, possible=self.possible)
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
        """Return an upper bound on the minimum: the value of the hint, or of all on one member."""
        problem = self.problem
        if hint is not None and self._is_within(limits, hint):
            return level_value(problem, level, hint)
        together = np.zeros(problem.partition_count, dtype=np.int32)
        members = range(problem.member_count)
        return max((level_value(problem, level, together + at) for at in members), default=0)


@dataclass
class _LeavingModel(AssignmentModel):
    """CP-SAT model with variables only for partitions that leave their owner."""

    possible: NDArray[np.bool_] | None = None
    leaving: dict[int, cp_model.IntVar] = field(init=False, default_factory=dict)
    """Number of partitions that leave their owner, per symmetry class with an owner."""

    def new_counts(self, index: int, consumers: Sequence[int]) -> dict[int, Expression]:
        """Create the variables of one symmetry class: leaving partitions, and receivers."""
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
        """Return the load of each member as an expression, in units."""
        return [load + self.zero for load in self.load_sums()]

    def moves(self, costs: Ints) -> Expression:
        """Return the total cost of the moves as an expression."""
        return weighted_sum(
            [
                (leaving, int(costs[self.classes.partitions[index][0]]))
                for index, leaving in self.leaving.items()
            ]
        )

    def hint(self, placement: Placement) -> None:
        """Give a placement to CP-SAT as warm start."""
        super().hint(placement)
        for index, leaving in self.leaving.items():
            partitions = self.classes.partitions[index]
            left = placement[partitions] != self.problem.owner[partitions]
            self.cp.add_hint(leaving, int(np.count_nonzero(left)))
