"""Levels as expressions to minimise."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

from ortools.sat.python import cp_model

from kassay.solver.cpsat.model import AssignmentModel, Expression, weighted_sum
from kassay.solver.evaluation import RackTable, movement_costs
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    Level,
    Measure,
    MembersUsed,
    Movement,
    TopicSpread,
)
from kassay.solver.problem import EXACT_IN_64_BITS

# Squares over at most this many values are cut out exactly by tangents, which the linear
# relaxation sees; wider ones go through CP-SAT's product constraint.
_TANGENTS = 48
_MOST_PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class Term:
    """An integer expression whose least value is sought.

    The level's value is ``factor * expression + offset``: the expression is scaled and
    centred so that it fits 64 bits.
    """

    expression: Expression
    factor: int = 1
    offset: int = 0

    def value(self, scaled: int) -> int:
        """Turn a value of the expression into one of the level."""
        return self.factor * scaled + self.offset

    def scaled(self, value: int) -> int:
        """Return the greatest value of the expression within a value of the level."""
        return (value - self.offset) // self.factor

    def scaled_up(self, bound: int) -> int:
        """Return the least value of the expression that reaches a bound of the level."""
        return -((self.offset - bound) // self.factor)


def level_terms(model: AssignmentModel, level: Level, worst: int) -> tuple[Term, ...] | None:
    """Add a level to the model.

    Parameters
    ----------
    model
        Grows by the variables that the level needs.
    level
        What to minimise.
    worst
        The greatest value of the level that must be represented: what an incumbent has,
        or a limit. It keeps squares small.

    Returns
    -------
    tuple of Term or None
        What to minimise one after the other: one term, or for leximax one a position.
        None if the level cannot be written in 64 bits.
    """
    match level:
        case Imbalance():
            return _imbalance_terms(model, level, worst) if model.fits else None
        case Movement():
            costs = movement_costs(model.problem, level)
            if costs.dtype == object and sum(costs.tolist()) >= EXACT_IN_64_BITS:
                return None
            return (Term(model.moves(costs)),)
        case CrossRack():
            return (Term(_cross_rack(model)),)
        case TopicSpread():
            return (_topic_spread(model),)
        case MembersUsed():
            return (Term(_members_used(model)),)


def _imbalance_terms(
    model: AssignmentModel, level: Imbalance, worst: int
) -> tuple[Term, ...] | None:
    loads = model.load
    if not loads:
        return (Term(0),)
    match level.measure:
        case Measure.SUM_OF_SQUARES:
            term = _squares(model, worst)
        case Measure.DEVIATION:
            term = _deviation(model)
        case Measure.BALANCE_SCORE:
            term = _pairwise(model)
        case Measure.MAKESPAN:
            term = Term(_greatest(model), model.unit)
        case Measure.SPREAD:
            term = Term(_greatest(model) - _least(model), model.unit)
        case Measure.LEXIMAX:
            sizes = range(1, len(loads) + 1)
            return tuple(Term(_greatest_sum(model, size), model.unit) for size in sizes)
    return None if term is None else (term,)


def _deviation(model: AssignmentModel) -> Term | None:
    width = len(model.load)
    if model.total * width * width >= EXACT_IN_64_BITS:
        return None
    pairs: list[tuple[Expression, Expression]] = [
        (width * load, model.total) for load in model.load
    ]
    return Term(_distances(model, pairs, model.total * width), model.unit)


def _pairwise(model: AssignmentModel) -> Term | None:
    pairs = list(combinations(model.load, 2))
    if len(pairs) > _MOST_PAIRS or model.total * len(pairs) >= EXACT_IN_64_BITS:
        return None
    return Term(_distances(model, pairs, model.total), model.unit)


def _least(model: AssignmentModel) -> cp_model.IntVar:
    least = model.cp.new_int_var(0, model.total, "least")
    for load in model.load:
        model.cp.add(load >= least)
    return least


def _greatest(model: AssignmentModel) -> cp_model.IntVar:
    greatest = model.cp.new_int_var(0, model.total, "greatest")
    for load in model.load:
        model.cp.add(load <= greatest)
    return greatest


def _greatest_sum(model: AssignmentModel, size: int) -> Expression:
    """Sum of the greatest loads: the least over t of ``size * t`` plus all excess over t."""
    if size == len(model.load):
        return model.total
    threshold = model.cp.new_int_var(0, model.total, f"threshold{size}")
    terms: list[tuple[Expression, int]] = [(threshold, size)]
    for load in model.load:
        excess = model.cp.new_int_var(0, model.total, "")
        model.cp.add(load <= excess + threshold)
        terms.append((excess, 1))
    return weighted_sum(terms)


def _distances(
    model: AssignmentModel, pairs: Sequence[tuple[Expression, Expression]], most: int
) -> Expression:
    distances = []
    for one, other in pairs:
        distance = model.cp.new_int_var(0, most, "")
        model.cp.add(one - other <= distance)
        model.cp.add(other - one <= distance)
        distances.append(distance)
    return weighted_sum([(distance, 1) for distance in distances])


def _squares(model: AssignmentModel, worst: int) -> Term | None:
    """Sum of squared loads, centred on the mean so that the squares stay small.

    With c the mean rounded down and T the total, the sum of squared loads is that of
    ``load - c`` plus ``2 c T - n c^2``.
    """
    width, unit = len(model.load), model.unit
    centre = model.total // width
    offset = 2 * centre * model.total - width * centre * centre
    allowed = worst // (unit * unit) - offset
    if allowed >= EXACT_IN_64_BITS:
        return None
    reach = isqrt(max(allowed, 0))
    squares = [
        _square(model, load - centre, max(-reach, -centre), min(reach, model.total - centre))
        for load in model.load
    ]
    return Term(weighted_sum([(square, 1) for square in squares]), unit * unit, offset * unit**2)


def _square(
    model: AssignmentModel, expression: Expression, lowest: int, highest: int
) -> cp_model.IntVar:
    """Add a variable at least the square of an expression that lies in a range."""
    cp = model.cp
    square = cp.new_int_var(0, max(lowest * lowest, highest * highest), "")
    if highest - lowest <= _TANGENTS:
        cp.add(expression >= lowest)
        cp.add(expression <= highest)
        for at in range(lowest, highest):
            # The chord from `at` to `at + 1`: no integer lies below it but between them.
            cp.add(square >= (2 * at + 1) * expression - at * (at + 1))
        if lowest == highest:
            cp.add(square >= lowest * lowest)
        return square
    base = cp.new_int_var(lowest, highest, "")
    cp.add(base == expression)
    cp.add_multiplication_equality(square, [base, base])
    return square


def _cross_rack(model: AssignmentModel) -> Expression:
    racks = RackTable(model.problem)
    terms: list[tuple[Expression, int]] = []
    for rows, entry in zip(model.classes.rows, model.count, strict=True):
        far = [(n, 1) for position, n in entry.items() if racks.far(int(rows[0]), position)]
        terms.extend(far)
    return weighted_sum(terms)


def _topic_spread(model: AssignmentModel) -> Term:
    piles: dict[tuple[int, int], list[tuple[Expression, int]]] = {}
    sizes: dict[int, int] = {}
    for rows, entry in zip(model.classes.rows, model.count, strict=True):
        topic = int(model.problem.topic[rows[0]])
        sizes[topic] = sizes.get(topic, 0) + len(rows)
        for position, count in entry.items():
            piles.setdefault((topic, position), []).append((count, 1))
    squares: list[tuple[Expression, int]] = [
        (_square(model, weighted_sum(parts), 0, sizes[topic]), 1)
        for (topic, _), parts in piles.items()
    ]
    return Term(weighted_sum(squares))


def _members_used(model: AssignmentModel) -> Expression:
    used = [model.cp.new_bool_var(f"used{position}") for position in range(model.problem.width)]
    for rows, entry in zip(model.classes.rows, model.count, strict=True):
        for position, count in entry.items():
            model.cp.add(count <= len(rows) * used[position])
    return weighted_sum([(variable, 1) for variable in used])
