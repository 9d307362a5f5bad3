"""Convert levels of the objective and constraints to CP-SAT expressions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import isqrt
from typing import assert_never

import numpy as np
from ortools.sat.python import cp_model

from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.solver import constraints, evaluation, objective
from kassay.solver.cpsat.model import (
    MAX_CHORDS,
    AssignmentModel,
    Expression,
    RelativeFactors,
    cost_scale,
    square_range,
    weighted_sum,
)
from kassay.solver.incumbent_pool import MAX_PLAIN_CHOICES
from kassay.solver.problem import Arithmetic

_MAX_PAIRS = 40_000


@dataclass(frozen=True, slots=True)
class Term:
    """CP-SAT expression that represents the value of a level.

    The value of the level is at least ``factor * expression + offset``. If weights are exact, it
    is equal.
    """

    expression: Expression
    factor: int = 1
    offset: int = 0
    is_exact: bool = True
    is_plain: bool = False
    """Whether the expression is to be the objective itself. It has no constant."""

    def value(self, scaled: int) -> int:
        """Convert a lower bound on the CP-SAT expression to a lower bound on the level."""
        return self.factor * scaled + self.offset

    def scaled(self, value: int) -> int:
        """Convert an upper limit on the level to an upper limit on the CP-SAT expression."""
        return (value - self.offset) // self.factor

    def scaled_up(self, bound: int) -> int:
        """Convert a lower bound on the level to a lower bound on the CP-SAT expression."""
        return max(-((self.offset - bound) // self.factor), 0) if self.is_exact else 0


def level_terms(
    model: AssignmentModel, level: objective.Level, worst: int
) -> tuple[Term, ...] | None:
    """Add a level to the CP-SAT model, and return the expressions to minimise or to limit.

    Return None if there are too many members. The terms need not represent values above ``worst``.
    The scale of the model must be the `load_scale` of levels that include this level with this
    ``worst``. Only leximax has several terms, one per member or host.
    """
    match level:
        case objective.Imbalance() | objective.HostImbalance():
            has_one = model.problem.profiles is None or level.measure is Measure.MAKESPAN
            return (_imbalance_terms if has_one else _window_squares)(model, level, worst)
        case objective.Movement():
            costs = evaluation.movement_costs(model.problem, level)
            scale = cost_scale(costs)
            costs = np.array([scale.quotient(cost) for cost in costs.tolist()], dtype=np.int64)
            term = Term(model.moves(costs), scale.unit, is_exact=scale.is_exact)
        case objective.CrossRack():
            term = Term(_cross_rack(model))
        case objective.TopicSpread():
            term = _topic_spread(model)
        case objective.MembersUsed():
            term = Term(_members_used(model))
        case objective.Colocation():
            term = _colocation(model, level)
        case objective.FlowLevel():
            raise objective.only_by_flows(level)
        case _:
            assert_never(level)
    return (term,)


def _imbalance_terms(
    model: AssignmentModel, level: objective.Imbalance | objective.HostImbalance, worst: int
) -> tuple[Term, ...] | None:
    units = evaluation.load_units(model.problem, level)
    most = model.highest * max(units.factors, default=1)
    if not units.names:
        return (Term(0),)
    windows, unit, rest = model.window_loads(units), model.scale.unit, model.scale.rest
    loads, is_exact = windows[0], model.scale.is_exact
    is_makespan = level.measure is Measure.MAKESPAN
    factors = RelativeFactors.of(units, model.highest if is_makespan else None)
    pairs = len(loads) ** 2 if level.measure is Measure.BALANCE_SCORE else 0
    if pairs > _MAX_PAIRS or not Arithmetic.CP_SAT.represents(max(factors.factors)):
        return None
    relative: list[Expression] = [
        load * factor
        for loads_of_window in windows
        for load, factor in zip(loads_of_window, factors.factors, strict=True)
    ]
    match level.measure:
        case Measure.SUM_OF_SQUARES:
            is_small = sum(map(len, model.count)) <= MAX_PLAIN_CHOICES
            plain = _plain_squares(model, loads, units, worst) if is_small else None
            term = plain or _squares(model, loads, units, worst)
        case Measure.DEVIATION:
            term = _deviation(model, loads, units)
        case Measure.BALANCE_SCORE:
            # A remainder changes the distances of one load to all others.
            error = rest * max(units.factors) * (len(loads) - 1)
            distances = _distances(model, list(combinations(relative, 2)), most)
            term = Term(distances, unit, -error, is_exact)
        case Measure.MAKESPAN:
            most = model.highest * max(factors.factors)
            is_exact = is_exact and factors.unit == 1
            term = Term(_greatest(model, relative, most), unit * factors.unit, is_exact=is_exact)
        case Measure.SPREAD:
            least = model.cp.new_int_var(0, most, "least")
            for load in relative:
                model.cp.add(load >= least)
            spread = _greatest(model, relative, most) - least
            term = Term(spread, unit, -rest * max(units.factors), is_exact)
        case Measure.LEXIMAX:
            sizes = range(1, len(loads) + 1)
            return tuple(
                Term(_sum_of_greatest(model, relative, size, most), unit, is_exact=is_exact)
                for size in sizes
            )
        case _:
            assert_never(level.measure)
    return (term,)


_MAX_WINDOW_SQUARES = 500
"""Maximum number of squared loads in several windows; CP-SAT proves little about more."""


def _window_squares(
    model: AssignmentModel, level: objective.Imbalance | objective.HostImbalance, worst: int
) -> tuple[Term, ...] | None:
    """Return a term for the squared loads in all weight windows, or None if it is too large."""
    units, squared = evaluation.load_units(model.problem, level), model.scale.unit**2
    if not units.names:
        return (Term(0),)
    windows = model.window_loads(units)
    highest, count = min(model.highest, isqrt(worst // squared)), len(windows) * len(units.names)
    greatest = count * max(units.factors) * highest**2
    if count > _MAX_WINDOW_SQUARES or not Arithmetic.CP_SAT.represents(greatest):
        return None
    parts: list[tuple[Expression, int]] = [
        (_square(model, load, 0, highest), factor)
        for loads in windows
        for load, factor in zip(loads, units.factors, strict=True)
    ]
    return (Term(weighted_sum(parts), squared, is_exact=model.scale.is_exact),)


def _deviation(model: AssignmentModel, loads: Sequence[Expression], units: LoadUnits) -> Term:
    speed = sum(units.speeds)
    pairs: list[tuple[Expression, Expression]] = [
        (speed * load, own * model.total) for load, own in zip(loads, units.speeds, strict=True)
    ]
    # The remainders change the loads and the total, hence each distance twice.
    error = 2 * speed * model.scale.rest
    return Term(
        _distances(model, pairs, model.total * speed),
        model.scale.unit,
        -error,
        model.scale.is_exact,
    )


def _greatest(model: AssignmentModel, loads: Sequence[Expression], most: int) -> cp_model.IntVar:
    greatest = model.cp.new_int_var(0, most, "greatest")
    for load in loads:
        model.cp.add(load <= greatest)
    return greatest


def _sum_of_greatest(
    model: AssignmentModel, loads: Sequence[Expression], size: int, most: int
) -> Expression:
    """Return an expression for the sum of the ``size`` greatest loads.

    It is the minimum over t of ``size * t`` plus the sum of each load's excess over t.
    """
    if size == len(loads):
        return weighted_sum([(load, 1) for load in loads])
    threshold = model.cp.new_int_var(0, most, f"threshold{size}")
    terms: list[tuple[Expression, int]] = [(threshold, size)]
    for load in loads:
        excess = model.cp.new_int_var(0, most, "")
        model.cp.add(load <= excess + threshold)
        terms.append((excess, 1))
    return weighted_sum(terms)


def _distances(
    model: AssignmentModel, pairs: Sequence[tuple[Expression, Expression]], most: int
) -> Expression:
    distances: list[tuple[Expression, int]] = []
    for one, other in pairs:
        distance = model.cp.new_int_var(0, most, "")
        model.cp.add(one - other <= distance)
        model.cp.add(other - one <= distance)
        distances.append((distance, 1))
    return weighted_sum(distances)


def _plain_squares(
    model: AssignmentModel, loads: Sequence[Expression], units: LoadUnits, worst: int
) -> Term | None:
    """Return the sum of squared loads as a term; None if it is too large or speeds differ.

    CP-SAT has cuts for squares of variables from 0, which prove more than `_squares`.
    """
    squared = model.scale.unit**2
    highest = min(isqrt(worst // squared), model.total)
    greatest = len(loads) * highest**2
    if not units.has_equal_speeds or not Arithmetic.CP_SAT.represents(greatest):
        return None
    parts: list[tuple[Expression, int]] = []
    for load in loads:
        square = model.cp.new_int_var(0, highest**2, "")
        model.cp.add_multiplication_equality(square, [load, load])
        parts.append((square, 1))
    return Term(weighted_sum(parts), squared, is_exact=model.scale.is_exact, is_plain=True)


def _squares(
    model: AssignmentModel, loads: Sequence[Expression], units: LoadUnits, worst: int
) -> Term:
    """Return a term with small coefficients for the sum of squared loads.

    With the factor ``f`` of a unit and its centre ``c``, ``f * load**2`` is
    ``f * (load - c)**2 + 2 * f * c * load - f * c**2``.
    """
    squared = model.scale.unit**2
    columns = square_range(units, model.total, worst // squared)
    parts: list[tuple[Expression, int]] = []
    for load, column in zip(loads, columns.parts, strict=True):
        shifted = load - column.centre
        parts.append((_square(model, shifted, column.lowest, column.highest), column.factor))
        parts.extend([(load, column.slope)] if column.slope else [])
    offset = columns.offset * squared
    return Term(weighted_sum(parts), squared, offset, model.scale.is_exact)


def _square(
    model: AssignmentModel, expression: Expression, lowest: int, highest: int
) -> cp_model.IntVar:
    """Add a variable that is at least the square of an expression with a known range."""
    cp = model.cp
    square = cp.new_int_var(0, max(lowest * lowest, highest * highest), "")
    if highest - lowest <= MAX_CHORDS:
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
    racks = evaluation.RackTable(model.problem)
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


def _colocation(model: AssignmentModel, level: objective.Colocation) -> Term:
    used: list[tuple[Expression, int]] = []
    blocks = evaluation.colocation_blocks(model.problem, level)
    for block in blocks:
        members: dict[int, cp_model.IntVar] = {}
        for partition in block:
            for member, count in model.count[int(model.classes.class_of[partition])].items():
                if member not in members:
                    members[member] = model.cp.new_bool_var("")
                model.cp.add(count <= members[member])
        used.extend((variable, 1) for variable in members.values())
    return Term(weighted_sum(used), offset=-len(blocks))


def _members_used(model: AssignmentModel) -> Expression:
    members = range(model.problem.member_count)
    used = [model.cp.new_bool_var(f"used{member}") for member in members]
    for partitions, counts in zip(model.classes.partitions, model.count, strict=True):
        for member, count in counts.items():
            model.cp.add(count <= len(partitions) * used[member])
    return weighted_sum([(variable, 1) for variable in used])


Range = tuple[Expression, int, int]  # an expression, its least and its greatest value


def add_constraint(
    model: AssignmentModel,
    constraint: constraints.Constraint,
    literal: cp_model.IntVar | None = None,
) -> None:
    """Add a constraint to the CP-SAT model, enforced only if ``literal`` is true."""
    for expression, least, most in _ranges(model, constraint):
        if not isinstance(expression, int):
            rule = model.cp.add_linear_constraint(expression, least, most)
            if literal is not None:
                rule.only_enforce_if(literal)
        elif not least <= expression <= most:
            model.cp.add_bool_or([] if literal is None else [literal.negated()])


def _ranges(model: AssignmentModel, constraint: constraints.Constraint) -> Iterator[Range]:
    problem = model.problem
    match constraint:
        case constraints.Capacity():
            limits = evaluation.window_limits(problem, constraint)
            loads_of = zip(model.windows, model.window_loads(problem.member_units), strict=True)
            for window, loads in loads_of:
                if window in limits:
                    most = min(model.scale.quotient(limits[window]), model.highest)
                    for member in evaluation.members_named(problem, constraint.member):
                        yield loads[member], 0, most
        case constraints.MaxPartitions():
            most = min(constraint.limit, problem.partition_count)
            for member in evaluation.members_named(problem, constraint.member):
                yield model.partitions[member], 0, most
        case constraints.MaxMoves():
            ones = np.ones(problem.partition_count, dtype=np.int64)
            yield model.moves(ones), 0, min(constraint.limit, problem.partition_count)
        case _:
            yield from _partition_ranges(model, constraint)


def _partition_ranges(
    model: AssignmentModel, constraint: constraints.PartitionConstraint
) -> Iterator[Range]:
    problem = model.problem
    match constraint:
        case constraints.Pinned(topic=topic, partition=number):
            partitions = evaluation.topic_partitions(problem, topic, number)
            members = evaluation.members_named(problem, constraint.member)
            choices = [_has(model, int(at), member) for at in partitions for member in members]
            yield choices[0] if choices else 0, 1, 1
        case constraints.Forbidden(topic=topic, partition=number):
            partitions = evaluation.topic_partitions(problem, topic, number)
            members = evaluation.members_named(problem, constraint.member)
            classes = np.unique(model.classes.class_of[partitions]).tolist()
            for index, member in product(classes, members):
                yield model.count[index].get(member, 0), 0, 0
        case constraints.Colocated():
            for first, *others in evaluation.colocated_partitions(problem, constraint):
                for other, member in product(others, range(problem.member_count)):
                    yield _has(model, first, member) - _has(model, other, member), 0, 0
        case constraints.Separated():
            apart = evaluation.separated_partitions(problem, constraint)
            for member in range(problem.member_count):
                yield weighted_sum([(_has(model, at, member), 1) for at in apart]), 0, 1
        case _:
            assert_never(constraint)


def _has(model: AssignmentModel, partition: int, member: int) -> Expression:
    """Return an expression that is 1 if the member has the partition, else 0."""
    return model.count[int(model.classes.class_of[partition])].get(member, 0)
