"""Convert levels of the objective to CP-SAT expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

from ortools.sat.python import cp_model

from kassay.reference.model.metrics import Measure
from kassay.solver.cpsat.model import AssignmentModel, Expression, weighted_sum
from kassay.solver.evaluation import RackTable, movement_costs
from kassay.solver.objective import CrossRack, Imbalance, Level, MembersUsed, Movement, TopicSpread
from kassay.solver.problem import EXACT_IN_64_BITS

# Up to this range a square is bounded by chords, which strengthen the linear relaxation;
# beyond it by CP-SAT's product constraint.
_MAX_CHORDS = 48
_MAX_PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class Term:
    """CP-SAT expression for a level; the level's value is ``factor * expression + offset``."""

    expression: Expression
    factor: int = 1
    offset: int = 0

    def value(self, scaled: int) -> int:
        """Convert a value of the CP-SAT expression to a value of the level."""
        return self.factor * scaled + self.offset

    def scaled(self, value: int) -> int:
        """Convert an upper limit on the level to an upper limit on the expression."""
        return (value - self.offset) // self.factor

    def scaled_up(self, bound: int) -> int:
        """Convert a lower bound on the level to a lower bound on the expression."""
        return -((self.offset - bound) // self.factor)


def level_terms(model: AssignmentModel, level: Level, worst: int) -> tuple[Term, ...] | None:
    """Add a level to the CP-SAT model, and return the expressions to minimise.

    Return None if they exceed 64 bits.

    The terms need not represent values above ``worst``. Only leximax has several terms, one per
    member.
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
            term = _pairwise_distances(model)
        case Measure.MAKESPAN:
            term = Term(_max_load(model), model.problem.weight_unit)
        case Measure.SPREAD:
            least = model.cp.new_int_var(0, model.total, "least")
            for load in loads:
                model.cp.add(load >= least)
            term = Term(_max_load(model) - least, model.problem.weight_unit)
        case Measure.LEXIMAX:
            sizes = range(1, len(loads) + 1)
            return tuple(
                Term(_sum_of_greatest(model, size), model.problem.weight_unit) for size in sizes
            )
    return None if term is None else (term,)


def _deviation(model: AssignmentModel) -> Term | None:
    members = len(model.load)
    if model.total * members * members >= EXACT_IN_64_BITS:
        return None
    pairs: list[tuple[Expression, Expression]] = [
        (members * load, model.total) for load in model.load
    ]
    return Term(_distances(model, pairs, model.total * members), model.problem.weight_unit)


def _pairwise_distances(model: AssignmentModel) -> Term | None:
    pairs = list(combinations(model.load, 2))
    if len(pairs) > _MAX_PAIRS or model.total * len(pairs) >= EXACT_IN_64_BITS:
        return None
    return Term(_distances(model, pairs, model.total), model.problem.weight_unit)


def _max_load(model: AssignmentModel) -> cp_model.IntVar:
    greatest = model.cp.new_int_var(0, model.total, "greatest")
    for load in model.load:
        model.cp.add(load <= greatest)
    return greatest


def _sum_of_greatest(model: AssignmentModel, size: int) -> Expression:
    """Return an expression for the sum of the ``size`` greatest loads.

    It is the minimum over t of ``size * t`` plus the sum of each load's excess over t.
    """
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
    """Return the sum of squared loads as a term, centred on the mean to keep numbers small.

    The sum of squared loads is that of ``load - mean`` plus
    ``2 * mean * total - members * mean**2``.
    """
    members, unit = len(model.load), model.problem.weight_unit
    mean = model.total // members
    offset = 2 * mean * model.total - members * mean * mean
    allowed = worst // (unit * unit) - offset
    if allowed >= EXACT_IN_64_BITS:
        return None
    reach = isqrt(max(allowed, 0))
    squares = [
        _square(model, load - mean, max(-reach, -mean), min(reach, model.total - mean))
        for load in model.load
    ]
    return Term(weighted_sum([(square, 1) for square in squares]), unit * unit, offset * unit**2)


def _square(
    model: AssignmentModel, expression: Expression, lowest: int, highest: int
) -> cp_model.IntVar:
    """Add a variable that is at least the square of an expression with a known range."""
    cp = model.cp
    square = cp.new_int_var(0, max(lowest * lowest, highest * highest), "")
    if highest - lowest <= _MAX_CHORDS:
        cp.add(expression >= lowest)
        cp.add(expression <= highest)
        for at in range(lowest, highest):
            # The chord of the square from `at` to `at + 1`.
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
    return weighted_sum(
        [
            (count, 1)
            for partitions, counts in zip(model.classes.partitions, model.count, strict=True)
            for member, count in counts.items()
            if racks.is_cross_rack(int(partitions[0]), member)
        ]
    )


def _topic_spread(model: AssignmentModel) -> Term:
    counts_of: dict[tuple[int, int], list[tuple[Expression, int]]] = {}
    sizes: dict[int, int] = {}
    for partitions, counts in zip(model.classes.partitions, model.count, strict=True):
        topic = int(model.problem.topic[partitions[0]])
        sizes[topic] = sizes.get(topic, 0) + len(partitions)
        for member, count in counts.items():
            counts_of.setdefault((topic, member), []).append((count, 1))
    squares = [
        (_square(model, weighted_sum(parts), 0, sizes[topic]), 1)
        for (topic, _), parts in counts_of.items()
    ]
    return Term(weighted_sum(squares))


def _members_used(model: AssignmentModel) -> Expression:
    members = range(model.problem.member_count)
    used = [model.cp.new_bool_var(f"used{member}") for member in members]
    for partitions, counts in zip(model.classes.partitions, model.count, strict=True):
        for member, count in counts.items():
            model.cp.add(count <= len(partitions) * used[member])
    return weighted_sum([(variable, 1) for variable in used])
