"""Table of the lowest imbalance for each number of moves, with bounds.

The table is the single source of plans, frontiers and limits on moves for groups with different
weights or speeds; `moves_table_search` fills it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.counting import level_bound, makespan_bound, makespan_bound_within
from kassay.solver.constraints import Constraint, Forbidden, MaxMoves, Pinned
from kassay.solver.evaluation import level_value, violated
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import Placement, Problem

Report = Callable[[int, int, int], None]
"""Function that receives a number of moves, the imbalance and its bound."""

MAX_MOVES = 500
"""Default maximum number of moves of the table."""
BEAMS = ((50, 40, 0), (6, MAX_MOVES, 4), (60, 40, 4))
"""Width of each beam, its maximum number of moves, and its number of exchanging states.

Beams that find good entries for few moves in little time come first. A wider beam can end in worse
entries than a narrow one, so the widths differ.
"""
_COUNTED_MOVES, _COUNTED_PARTITIONS = 100, 100_000
"""Maximum number of moves for which the table has a bound from the start, and maximum product of
this number and the partitions, which limits the time."""
_SQUARES_STEPS, _SQUARES_STEP = 2_000, 1e-3
"""Maximum number of steps of a search for lower sums of squares, and the work of one step."""


@dataclass
class MovesTable:
    """Lowest imbalances found for 0, 1, 2, … moves, with placements and lower bounds.

    Values and bounds never increase with the number of moves. ``rules`` are the constraints
    without limits on moves, with the capacities.
    """

    problem: Problem
    rules: Sequence[Constraint]
    level: Imbalance = field(default=Imbalance(Measure.MAKESPAN))
    most: int = MAX_MOVES
    report: Report | None = None
    placements: list[Placement] = field(init=False)
    values: list[int] = field(init=False)
    bounds: list[int] = field(init=False)
    is_complete: bool = field(init=False, default=False)
    """Whether all assignments were compared, so that the sums of squares are proven too."""
    waiting: list[tuple[int, int, int]] = field(init=False, default_factory=lambda: [*BEAMS])
    """Beams of the search that have not ended."""
    has_greedy_entries: bool = field(init=False, default=False)
    """Whether the greedy searches have filled the table."""

    def __post_init__(self) -> None:
        start = keep_owned(self.problem)
        value = self.value_of(start)
        lowest = makespan_bound if self._is_makespan else partial(level_bound, level=self.level)
        self.lowest = min(lowest(self.problem), value)
        self.placements, self.values = [start], [value]
        self.bounds = [self.counted_bound(0, value)]

    @staticmethod
    def is_applicable(problem: Problem, measure: Measure, rules: Iterable[Constraint]) -> bool:
        """Return whether a table can be computed.

        The weights or speeds must differ, the measure must not be leximax, and the current owners
        must meet the constraints.
        """
        rules = [rule for rule in rules if not isinstance(rule, MaxMoves)]
        return (
            (problem.group.is_weighted or not problem.group.has_equal_speeds)
            and measure is not Measure.LEXIMAX
            and not problem.has_big_loads
            and problem.partition_count > 0
            and not any(violated(problem, rules, keep_owned(problem)))
        )

    @property
    def top(self) -> int:
        """Greatest number of moves in the table."""
        return len(self.values) - 1

    def is_proven(self, moves: int) -> bool:
        """Return whether the imbalance for a number of moves is proven."""
        return self.values[moves] == self.bounds[moves]

    def fewest_moves(self, limit: int) -> tuple[int, int] | None:
        """Return the fewest moves found within a limit on the imbalance, and a lower bound."""
        found = next((k for k, value in enumerate(self.values) if value <= limit), None)
        if found is None:
            return None
        return found, next(k for k, bound in enumerate(self.bounds) if bound <= limit)

    @property
    def _is_makespan(self) -> bool:
        return self.level.measure is Measure.MAKESPAN

    @property
    def has_load_limits(self) -> bool:
        """Whether searches within one maximum load apply."""
        return self._is_makespan and self.problem.group.has_equal_speeds

    def value_of(self, placement: Placement) -> int:
        """Return the imbalance of a placement."""
        return level_value(self.problem, self.level, placement)

    def add(self, placement: Placement) -> bool:
        """Add a placement; return whether it lowers an imbalance in the table."""
        value = self.value_of(placement)
        moves = level_value(self.problem, Movement(), placement)
        if moves > self.most or any(violated(self.problem, self.rules, placement)):
            return False
        if value >= self.values[min(moves, self.top)]:
            return False
        self.extend(moves)
        for more in range(moves, self.top + 1):
            if value < self.values[more]:
                self.values[more], self.placements[more] = value, placement
        return True

    def extend(self, moves: int) -> None:
        """Add entries up to a number of moves, with the values of the last entry."""
        most = min(_COUNTED_MOVES, _COUNTED_PARTITIONS // self.problem.partition_count)
        while self.top < moves:
            last = self.bounds[-1]
            counted = self.counted_bound(self.top + 1, last) if self.top < most else 0
            self.values.append(self.values[-1])
            self.placements.append(self.placements[-1])
            self.bounds.append(min(max(counted, self.lowest), last))

    def fill(self, placements: list[Placement]) -> None:
        """Replace all entries by the best of all assignments, for 0, 1, 2, … moves."""
        self.placements, self.values = placements, [self.value_of(one) for one in placements]
        self.bounds = [*self.values]
        if self.top < self.most:
            self.lowest = self.values[-1]
        self.waiting.clear()
        self.is_complete = True

    def add_until_lowest(self, placements: Iterable[Placement]) -> None:
        """Add placements until one has the lowest possible imbalance."""
        for placement in placements:
            self.add(placement)
            if self.value_of(placement) <= self.lowest:
                return

    def truncate(self) -> None:
        """Remove entries with more moves than the first one with the lowest imbalance."""
        size = self.values.index(self.values[-1]) + 1
        del self.values[size:], self.placements[size:], self.bounds[size:]

    def raise_bound(self, moves: int, bound: int) -> None:
        """Raise the bounds for a number of moves and for fewer moves."""
        for fewer in range(min(moves, self.top) + 1):
            self.bounds[fewer] = max(self.bounds[fewer], min(bound, self.values[fewer]))

    def even_out(self, counts: Iterable[int], budget: SearchBudget) -> None:
        """Lower the sums of squares of entries, without more moves or higher maximum loads."""
        for count in counts:
            if not budget.has_work:
                return
            self.replace(count, self.evened_out(self.placements[count], budget))

    def evened_out(
        self, placement: Placement, budget: SearchBudget, *, is_limited: bool = True
    ) -> Placement:
        """Return a placement with a lower sum of squares, as `lower_squares_within`."""
        from kassay.solver.weighted.search.even_receivers import (  # noqa: PLC0415
            lower_squares_within,
        )

        may_continue = budget.counted(_SQUARES_STEP, _SQUARES_STEPS)
        return lower_squares_within(
            self.problem, placement, self.may_receive, may_continue, is_limited=is_limited
        )

    def replace(self, moves: int, placement: Placement) -> None:
        """Replace the placement of an entry if the new one is valid, and better or more even."""
        if not self.add(placement) and not any(violated(self.problem, self.rules, placement)):
            candidates = (self.placements[moves], placement)
            self.placements[moves] = min(candidates, key=self._rank)

    def _rank(self, placement: Placement) -> tuple[int, ...]:
        from kassay.solver.weighted.search.even_receivers import evenness  # noqa: PLC0415

        moves = level_value(self.problem, Movement(), placement)
        return self.value_of(placement), moves, *evenness(self.problem, placement)

    @property
    def may_receive(self) -> NDArray[np.bool_]:
        """Whether a member may receive a partition, by subscriptions and constraints."""
        problem = self.problem
        allowed = problem.may_consume[problem.consumer_set]
        names = [topic.name for topic in problem.group.topics]
        for rule in self.rules:
            if not isinstance(rule, Pinned | Forbidden):
                continue
            member = problem.member_index.get(rule.member, NO_OWNER)
            is_meant = problem.topic == names.index(rule.topic)
            if rule.partition is not None:
                is_meant &= problem.number == rule.partition
            if isinstance(rule, Pinned):
                allowed[is_meant] = False
            if member != NO_OWNER:
                allowed[is_meant, member] = isinstance(rule, Pinned)
        return allowed

    def counted_bound(self, moves: int, most: int | None = None) -> int:
        """Return a lower bound on the imbalance within a number of moves, without search.

        The bound is not above ``most``.
        """
        most = self.values[0] if most is None else most
        if not self._is_makespan:
            is_fixed = moves == 0 and (self.problem.owner != NO_OWNER).all()
            return min(self.values[0] if is_fixed else self.lowest, most)
        return makespan_bound_within(self.problem, moves, low=self.lowest, high=most)
