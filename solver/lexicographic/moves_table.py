"""Table of the lowest maximum load for each number of moves, with bounds.

The table is the single source of plans, frontiers and limits on moves for groups with different
weights. Greedy moves, a beam search and exchanges fill it within seconds. Integer programs with
variables for moved partitions only, and column generation, then improve and prove its entries.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.bounds.level_bounds import makespan_bound
from kassay.solver.constraints import Constraint, Forbidden, MaxMoves, Pinned
from kassay.solver.evaluation import level_value, violated
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import Placement, Problem

if TYPE_CHECKING:
    from kassay.solver.weighted.search.moves_beam import MovesBeam

Report = Callable[[int, int, int], None]
"""Function that receives a number of moves, the maximum load and its bound."""

MAX_MOVES = 500
"""Default maximum number of moves of the table."""
_BEAMS = ((60, 40, 0), (6, MAX_MOVES, 4), (60, 40, 4))
"""Width of each beam, its maximum number of moves, and its number of exchanging states.

Beams that find good entries for few moves in little time come first.
"""
_COUNTED_MOVES = 100
"""Maximum number of moves for which the table has a bound from the start."""
_MIN_SECONDS = 0.4
"""Minimum time for the greedy moves, and for one entry of the table."""
_BEAM_STEPS, _SQUARES_STEPS = 5_000, 2_000
"""Maximum number of steps with a deterministic limit."""


@dataclass
class MovesTable:
    """Lowest maximum loads found for 0, 1, 2, … moves, with placements and lower bounds.

    Values and bounds never increase with the number of moves. ``rules`` are the constraints
    without limits on moves, with the capacities.
    """

    problem: Problem
    rules: Sequence[Constraint]
    most: int = MAX_MOVES
    report: Report | None = None
    placements: list[Placement] = field(init=False)
    values: list[int] = field(init=False)
    bounds: list[int] = field(init=False)
    _waiting: list[tuple[int, int, int]] = field(init=False, default_factory=lambda: [*_BEAMS])

    def __post_init__(self) -> None:
        start = keep_owned(self.problem)
        lowest = makespan_bound(self.problem)
        value = max(self.problem.loads(start), default=0)
        self.placements, self.values = [start], [value]
        self.lowest = min(lowest, value)
        self.bounds = [self.counted_bound(0, value)]

    @staticmethod
    def is_applicable(problem: Problem, rules: Iterable[Constraint]) -> bool:
        """Return whether a table can be computed.

        The weights must differ and the speeds be equal, and the current owners must meet the
        constraints.
        """
        rules = [rule for rule in rules if not isinstance(rule, MaxMoves)]
        return (
            problem.group.is_weighted
            and problem.group.has_equal_speeds
            and not problem.has_big_loads
            and problem.partition_count > 0
            and not any(violated(problem, rules, keep_owned(problem)))
        )

    @property
    def top(self) -> int:
        """Greatest number of moves in the table."""
        return len(self.values) - 1

    def is_proven(self, moves: int) -> bool:
        """Return whether the maximum load for a number of moves is proven."""
        return self.values[moves] == self.bounds[moves]

    def fewest_moves(self, max_load: int) -> tuple[int, int] | None:
        """Return the fewest moves found within a maximum load, and a lower bound on them."""
        found = next((k for k, value in enumerate(self.values) if value <= max_load), None)
        if found is None:
            return None
        return found, next(k for k, bound in enumerate(self.bounds) if bound <= max_load)

    def add(self, placement: Placement) -> bool:
        """Add a placement; return whether it lowers a maximum load in the table."""
        value = max(self.problem.loads(placement), default=0)
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
        while self.top < moves:
            last = self.bounds[-1]
            counted = self.counted_bound(self.top + 1, last) if self.top < _COUNTED_MOVES else 0
            self.values.append(self.values[-1])
            self.placements.append(self.placements[-1])
            self.bounds.append(min(max(counted, self.lowest), last))

    def raise_bound(self, moves: int, bound: int) -> None:
        """Raise the bounds for a number of moves and for fewer moves."""
        for fewer in range(min(moves, self.top) + 1):
            self.bounds[fewer] = max(self.bounds[fewer], min(bound, self.values[fewer]))

    def search(self, budget: SearchBudget) -> None:
        """Fill the table by greedy moves and beam searches, until a bound is reached.

        A further call continues with the beam searches that did not end within the budget.
        """
        # Imported here: the module adds to the start-up time of every command.
        from kassay.solver.weighted.search.moves_beam import MovesBeam  # noqa: PLC0415

        if not self._waiting:
            return
        beam = MovesBeam(self.problem, self.placements[0], self.may_receive)
        if len(self._waiting) == len(_BEAMS):
            self._search_greedily(beam, budget)
        may_continue = budget.continuation(_BEAM_STEPS)
        while self._waiting and not all(map(self.is_proven, range(self.top + 1))):
            width, limit, exchanging = self._waiting[0]
            for heaviest in (None, self.lowest // 2):  # heavier partitions stay
                most = min(self.most, limit, self.top + 1)
                found = beam.search(
                    most, width, may_continue, heaviest=heaviest, exchanging=exchanging
                )
                self._add_until_lowest(found)
            if not may_continue():
                break
            del self._waiting[0]
        if self.values[-1] > self.lowest:
            # Imported here: numpy.random and SciPy take longer to load than the greedy moves.
            from kassay.solver.weighted.search.limited_moves import (  # noqa: PLC0415
                scan_load_limits,
            )

            for placement in scan_load_limits(self.problem, budget):
                self.add(placement)
        self._truncate()

    def _search_greedily(self, beam: "MovesBeam", budget: SearchBudget) -> None:
        """Add moves that lower the sum of squares most, or the maximum load most.

        They have at least `_MIN_SECONDS`, so that they end in most groups at any time limit.
        """
        may_continue = budget.at_least(_MIN_SECONDS).continuation(_BEAM_STEPS)
        self._add_until_lowest(beam.lower_squares(self.most, may_continue))
        for heaviest in (None, self.lowest // 2):
            most = min(self.most, self.top + 1)
            found = beam.search(most, 1, may_continue, heaviest=heaviest, exchanging=0)
            self._add_until_lowest(found)

    def _add_until_lowest(self, placements: Iterable[Placement]) -> None:
        """Add placements until one has the lowest possible maximum load."""
        for placement in placements:
            self.add(placement)
            if max(self.problem.loads(placement)) <= self.lowest:
                return

    def _truncate(self) -> None:
        """Remove entries with more moves than the first one with the lowest maximum load."""
        size = self.values.index(self.values[-1]) + 1
        del self.values[size:], self.placements[size:], self.bounds[size:]

    def prove(self, counts: Sequence[int], budget: SearchBudget) -> None:
        """Improve and prove the entries with given numbers of moves, in this order."""
        counts = [count for count in counts if count <= self.top]
        for number, count in enumerate(counts):
            if not budget.has_time:
                return
            self.raise_bound(count, self.counted_bound(count))
            self._add_neighbours(count)
            if not self.is_proven(count):
                share = 1 / (1 + sum(not self.is_proven(one) for one in counts[number:]) / 2)
                self._prove(count, self._part(budget, min(1.0, share)))
                if self.report is not None:
                    self.report(count, self.values[count], self.bounds[count])

    def _add_neighbours(self, moves: int) -> None:
        """Add placements that differ by one move from those with one move more or less."""
        from kassay.solver.weighted.search.moves_beam import MovesBeam  # noqa: PLC0415

        beam = MovesBeam(self.problem, self.placements[0], self.may_receive)
        if moves and not self.is_proven(moves):
            self._add_until_lowest(beam.with_one_more_move(self.placements[moves - 1]))
        if moves < self.top and not self.is_proven(moves):
            self._add_until_lowest(beam.without_one_move(self.placements[moves + 1]))

    @staticmethod
    def _part(budget: SearchBudget, share: float) -> SearchBudget:
        if budget.limits.deterministic is not None:
            return budget
        return budget.part(share) if budget.seconds * share > _MIN_SECONDS else budget

    def _prove(self, moves: int, budget: SearchBudget) -> None:
        """Improve and prove one entry by integer programs, then by column generation."""
        # Imported here: loading OR-Tools takes longer than the search in a small group.
        from kassay.solver.cpsat.moved_partitions import MovedPartitionsModel  # noqa: PLC0415
        from kassay.solver.weighted.search.limited_moves import (  # noqa: PLC0415
            LimitedMovesSearch,
        )

        model = MovedPartitionsModel(self.problem, self.rules)
        found = model.lowest_makespan(
            moves,
            budget=self._part(budget, 0.6),
            hint=self.placements[moves],
            bound=self.bounds[moves],
        )
        if found.placement is not None:
            self.add(found.placement)
        if found.bound is not None:
            self.raise_bound(moves, found.bound)
        if self.rules or self.is_proven(moves) or not budget.has_time:
            return
        rng = np.random.default_rng(budget.seed)
        search = LimitedMovesSearch(self.problem, moves, self.placements[moves], rng)
        search.run(budget)
        self.add(search.placement)
        self.raise_bound(moves, search.bound)

    def even_out(self, counts: Iterable[int], budget: SearchBudget) -> None:
        """Lower the sums of squares of entries, without more moves or higher maximum loads."""
        from kassay.solver.weighted.search.even_receivers import (  # noqa: PLC0415
            lower_squares_within,
        )

        may_continue = budget.continuation(_SQUARES_STEPS)
        for count in counts:
            placement = lower_squares_within(
                self.problem, self.placements[count], self.may_receive, may_continue
            )
            self.replace(count, placement)

    def replace(self, moves: int, placement: Placement) -> None:
        """Replace the placement of an entry if the new one is valid and as good on each level."""
        if self.add(placement) or any(violated(self.problem, self.rules, placement)):
            return
        levels: tuple[Level, ...] = (Imbalance(Measure.MAKESPAN), Movement(), Imbalance())
        for level in levels:
            value = level_value(self.problem, level, placement)
            if value > level_value(self.problem, level, self.placements[moves]):
                return
        self.placements[moves] = placement

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
        """Return a lower bound on the maximum load within a number of moves, without search.

        The bound is not above ``most``.
        """
        from kassay.solver.weighted.search.limited_moves import (  # noqa: PLC0415
            makespan_bound_within,
        )

        most = self.values[0] if most is None else most
        return makespan_bound_within(self.problem, moves, low=self.lowest, high=most)
