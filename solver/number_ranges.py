"""Ranges of numbers: the integers that a method represents exactly, and scaling to a range.

All other modules ask this module. They compute the greatest magnitude of their numbers, sums and
products in Python integers, from the coefficients, before they build an array or a model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[Any]  # int64, or Python integers where int64 could overflow

UNREACHABLE = 2**62
"""Number in int64 above all magnitudes in range; the sum with such a magnitude is in int64."""


class Arithmetic(Enum):
    """Kind of arithmetic with a limited range; the value is the first magnitude out of range."""

    INT64 = 2**60
    """Arrays of NumPy: a few numbers in range can be added without overflow."""
    FLOAT = 2**53
    """Sums of integers in floating point."""
    FLOAT_SOLVER = 2**50
    """Linear programs of HiGHS, which adds and scales floating-point numbers."""
    CP_SAT = 2**44
    """Activities of constraints and the objective of CP-SAT.

    Its linear relaxation uses floating point. With greater coefficients, it does not separate
    values: CP-SAT raises bounds in steps of 1, and allocates memory without limit.
    """
    CP_SAT_DIFFERENCE = 2**28
    """Activities of constraints with variables for differences of loads, in CP-SAT.

    With greater coefficients, CP-SAT has allocated gigabytes for eight partitions, and its presolve
    has removed optimal solutions.
    """
    CP_SAT_DOMAINS = 2**61
    """Sum of the domains of all variables of a CP-SAT model."""

    def represents(self, magnitude: int) -> bool:
        """Return whether integers up to a magnitude are exact."""
        return magnitude < self.value


_TEXT_BITS = 14_000
"""Bits of integers that Python converts to text by default (`sys.get_int_max_str_digits`)."""


def exact_integers(values: Sequence[int]) -> Weights:
    """Convert integers to an array of int64, or of Python integers if sums may overflow.

    The integers must not be negative.
    """
    return np.array(values, dtype=_dtype(sum(values)))


def integer_text(value: int) -> str:
    """Return an integer as text, or its size if it has more digits than Python converts."""
    return f"{value:,}" if value.bit_length() < _TEXT_BITS else f"about 2**{value.bit_length()}"


def exact_column(column: Weights, most: int) -> Weights:
    """Convert a column to int64, or to Python integers if ``most`` exceeds 64 bits.

    ``most`` is an upper bound of the results that are computed from the column.
    """
    return column.astype(_dtype(most))


def _dtype(most: int) -> type:
    return np.int64 if Arithmetic.INT64.represents(most) else object


@dataclass(frozen=True, slots=True)
class Scale:
    """Division of non-negative integers by a unit, rounded down.

    The sum of the remainders, ``rest``, is exact: a sum of any of the integers is at least the
    unit times the sum of their quotients, and exceeds it by at most ``rest``.

    Examples
    --------
    >>> Scale(10, rest=7).quotient(32)
    3
    """

    unit: int = 1
    rest: int = 0

    @property
    def is_exact(self) -> bool:
        """Return whether the division has no remainders."""
        return self.rest == 0

    def quotient(self, value: int, *, rounds_up: bool = False) -> int:
        """Return a value in units."""
        return -(-value // self.unit) if rounds_up else value // self.unit


def scale_to_fit(values: Sequence[int], fits: Callable[[int], bool]) -> Scale:
    """Return the scale with the smallest unit for which a computation is in range.

    The unit is the greatest common divisor of the values, times a power of 2.

    Parameters
    ----------
    fits
        Function that returns whether the computation is in range if the integers are divided by
        a unit. It must be true for units above the total.

    Examples
    --------
    >>> scale_to_fit([60, 90], lambda unit: 150 // unit < 10)
    Scale(unit=30, rest=0)
    >>> scale_to_fit([61, 90], lambda unit: 151 // unit < 10)
    Scale(unit=16, rest=23)
    """
    unit, total = gcd(*values) or 1, sum(values)
    while unit <= total and not fits(unit):
        unit *= 2
    return Scale(unit, total - unit * sum(value // unit for value in values))
