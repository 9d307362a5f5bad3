"""Ranges of the numbers of a CP-SAT model, computed from its coefficients before it is built."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import assert_never

from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver.evaluation import load_units
from kassay.solver.number_ranges import Arithmetic, Scale, Weights, scale_to_fit
from kassay.solver.objective import HostImbalance, Imbalance, Level
from kassay.solver.problem import Problem

MAX_CHORDS = 48
"""Range up to which a square is bounded by chords, which strengthen the linear relaxation.

Beyond it, the square is bounded by CP-SAT's product constraint.
"""
_FACTOR_BITS = 20
"""Minimum precision of the factors from loads to relative loads in a model of the makespan."""
_WITH_DIFFERENCES = (Measure.LEXIMAX, Measure.DEVIATION, Measure.BALANCE_SCORE, Measure.SPREAD)
"""Measures whose models have variables for differences of loads."""


@dataclass(frozen=True, slots=True)
class SquarePart:
    """Part of a sum of squares: factor times a square of (load - centre), plus slope times load."""

    factor: int
    centre: int
    slope: int
    lowest: int  # of load - centre
    highest: int


@dataclass(frozen=True, slots=True)
class SquareRange:
    """Parts of a sum of squares, per load unit; ``offset`` is added to their sum."""

    parts: tuple[SquarePart, ...]
    offset: int


def square_range(units: LoadUnits, total: int, worst: int) -> SquareRange:
    """Return the parts of the sum of load times relative load, up to the value ``worst``.

    The centres are the shares of the total load in proportion to the speeds.
    """
    speed = sum(units.speeds)
    centres = [total * own // speed for own in units.speeds]
    pairs = list(zip(units.factors, centres, strict=True))
    offset = -sum(factor * centre**2 for factor, centre in pairs)
    slopes = [2 * factor * centre for factor, centre in pairs]
    # No loads have less than the sum of squares of loads in proportion to the speeds.
    least, rounding = units.factors[0] * units.speeds[0] * total**2 // speed, 2
    if units.has_equal_speeds:
        # All units have one centre: the linear part is constant.
        offset += slopes[0] * total
        slopes, least, rounding = [0] * len(pairs), offset, 0
    allowed = max(worst - least, 0)
    parts = []
    for (factor, centre), slope in zip(pairs, slopes, strict=True):
        reach = isqrt(allowed // factor + rounding) + rounding
        lowest, highest = max(-reach, -centre), min(reach, total - centre)
        parts.append(SquarePart(factor, centre, slope, lowest, highest))
    return SquareRange(tuple(parts), offset)


@dataclass(frozen=True, slots=True)
class RelativeFactors:
    """Factors from loads to relative loads in a unit, rounded down if they are too large.

    Many different speeds have a large common multiple.
    """

    factors: tuple[int, ...]
    unit: int

    @classmethod
    def of(cls, units: LoadUnits, total: int | None) -> "RelativeFactors":
        """Return the factors of load units, rounded if a total load is given."""
        if total is None:
            return cls(units.factors, 1)
        bits = max(_FACTOR_BITS, Arithmetic.CP_SAT.value.bit_length() - total.bit_length() - 3)
        unit = 2 ** max(max(units.factors).bit_length() - bits, 0)
        return cls(tuple(factor // unit for factor in units.factors), unit)


def load_scale(problem: Problem, levels: Iterable[tuple[Level, int]] = ()) -> Scale:
    """Return the scale of the weights of a model that expresses some levels.

    Each level has the greatest value that the model must represent.
    """
    measured = [
        (level, load_units(problem, level), worst)
        for level, worst in levels
        if isinstance(level, Imbalance | HostImbalance)
    ]
    members = problem.member_count

    def fits(unit: int) -> bool:
        total = problem.total // unit
        # The loads of members and hosts, and their sum.
        activity, domains, difference = (members + 1) * total, (2 * members + 1) * total, 0
        for level, units, worst in measured:
            if units.names:
                numbers = _magnitudes(level.measure, units, total, worst // unit**2)
                activity, domains = max(activity, numbers[0]), domains + numbers[1]
                if level.measure in _WITH_DIFFERENCES:
                    difference = max(difference, numbers[0])
        return (
            Arithmetic.CP_SAT.represents(activity)
            and Arithmetic.CP_SAT_DIFFERENCE.represents(difference)
            and Arithmetic.CP_SAT_DOMAINS.represents(domains)
        )

    return scale_to_fit(problem.weight.tolist(), fits)


def cost_scale(costs: Weights) -> Scale:
    """Return the scale of the costs of moves of a model."""
    values = costs.tolist()
    return scale_to_fit(values, lambda unit: Arithmetic.CP_SAT.represents(2 * sum(values) // unit))


def _magnitudes(
    measure: Measure, units: LoadUnits, total: int, worst_squares: int
) -> tuple[int, int]:
    """Return the greatest activity of a constraint of one level, and the sum of its domains."""
    count, most = len(units.names), total * max(units.factors)
    match measure:
        case Measure.MAKESPAN:
            most = total * max(RelativeFactors.of(units, total).factors)
            return 2 * most, most
        case Measure.SPREAD:
            return 2 * most, 2 * most
        case Measure.BALANCE_SCORE:
            pairs = count * (count - 1) // 2
            return max(pairs, 3) * most, pairs * most
        case Measure.DEVIATION:
            distance = total * sum(units.speeds)
            return max(count, 3) * distance, count * distance
        case Measure.LEXIMAX:
            return 2 * count * most, count * (count + 1) * most
        case Measure.SUM_OF_SQUARES:
            return _square_magnitudes(square_range(units, total, worst_squares).parts, total)
        case _:
            assert_never(measure)


def _square_magnitudes(parts: Sequence[SquarePart], total: int) -> tuple[int, int]:
    squares = [max(part.lowest**2, part.highest**2) for part in parts]
    reaches = [max(-part.lowest, part.highest) for part in parts]
    terms = sum(
        part.factor * square + part.slope * total
        for part, square in zip(parts, squares, strict=True)
    )
    chords = [
        (2 * reach + 1) * (2 * total + reach)
        for part, reach in zip(parts, reaches, strict=True)
        if part.highest - part.lowest <= MAX_CHORDS
    ]
    return max(terms, *chords, 0), sum(squares) + sum(reaches)
