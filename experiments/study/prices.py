"""Prices of goals: what topic spread, few moves and balance cost, and how far an answer is."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kassay.experiments.comparison.compare import CaseLimits, without_capacities
from kassay.experiments.study.tables import OPTIMUM, MeasureRow
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.evaluation import level_value
from kassay.solver.objective import Imbalance, Level, Movement, TopicSpread
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

_SPREAD, _SQUARES, _MOVES = TopicSpread(), Imbalance(), Movement()
_LOAD = Imbalance(Measure.MAKESPAN)


@dataclass
class GroupPrices:
    """Proven optima of a group with equal weights, with its goals in different orders.

    ``optimum`` has the minimum sum of squared loads, then the fewest moves.
    """

    group: Group
    optimum: Solution
    limits: CaseLimits
    _problem: Problem = field(init=False)
    _solved: dict[tuple[Level, ...], Solution] = field(init=False)

    def __post_init__(self) -> None:
        self._problem = build_problem(without_capacities(self.group))
        self._solved = {(_SQUARES, _MOVES): self.optimum}

    def _solve(self, *levels: Level) -> Solution:
        if levels not in self._solved:
            group = without_capacities(self.group)
            self._solved[levels] = solve(group, levels=levels, limits=self.limits)
        return self._solved[levels]

    def _value(self, level: Level, *order: Level) -> int | None:
        """Return a value at the optimum of some levels, None if these are not proven.

        The least sum of squares minimises the maximum load, also within an even topic spread.
        """
        solution = self._solve(*order)
        if solution.assignment is None or not all(one.gap == 0 for one in solution.levels):
            return None
        return self._measure(level, self._problem.valid_placement(solution.assignment))

    def _measure(self, level: Level, placement: Placement) -> int:
        return level_value(self._problem, level, placement)

    def of_group(self) -> Iterator[MeasureRow]:
        """Yield the prices of goals that hold for every assignor, as far as they are proven.

        The minimum of a row is the best known value without the goal.
        """
        balance, spread = (_SQUARES, _MOVES), (_SPREAD, _SQUARES, _MOVES)
        still = (_MOVES, _SQUARES)
        for name, level, order, free in (
            ("price of spread: maximum load", _LOAD, spread, balance),
            ("price of stickiness: maximum load", _LOAD, still, balance),
            ("price of balance: moves", _MOVES, balance, still),
            ("price of spread: moves", _MOVES, spread, still),
        ):
            value, least = self._value(level, *order), self._value(level, *free)
            if value is not None and least is not None:
                yield MeasureRow(OPTIMUM, name, value, least, least)

    def of_assignment(self, assignor: str, assignment: Assignment) -> Iterator[MeasureRow]:
        """Yield the values of an assignment that its own goal and other goals minimise.

        If the topic spread is minimum, two values refer to the assignments with minimum spread:
        the maximum load, and the moves with at most the sum of squared loads of the assignment.
        """
        placement = self._problem.valid_placement(assignment)
        spread: tuple[Level, ...] = (_SPREAD, _SQUARES, _MOVES)
        for name, level, order in (
            ("topic spread", _SPREAD, spread),
            ("maximum load", _LOAD, (_SQUARES, _MOVES)),
        ):
            value, least = self._measure(level, placement), self._value(level, *order)
            if least is not None:
                yield MeasureRow(assignor, name, value, least, least)
        if self._measure(_SPREAD, placement) != self._value(_SPREAD, *spread):
            return
        value, least = self._measure(_LOAD, placement), self._value(_LOAD, *spread)
        if least is not None:
            yield MeasureRow(assignor, "maximum load within spread", value, least, least)
        moves, squares = (self._measure(one, placement) for one in (_MOVES, _SQUARES))
        known = {moves}
        still: tuple[Level, ...] = (_SPREAD, _MOVES, _SQUARES)
        for within in (spread, still):
            found, other = self._value(_MOVES, *within), self._value(_SQUARES, *within)
            if found is not None and other is not None and other <= squares:
                known.add(found)
        bound = self._value(_MOVES, *still) or 0
        if squares == self._value(_SQUARES, *spread):
            bound = self._value(_MOVES, *spread) or 0
        yield MeasureRow(assignor, "moves within spread and balance", moves, min(known), bound)
