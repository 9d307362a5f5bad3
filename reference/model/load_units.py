"""Load units: the members or hosts of a group, with their speeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

_MIN_ROUNDED = 100
"""Load from which the shown load is an integer."""


@dataclass(frozen=True)
class LoadUnits:
    """Load units: the members of a group, or its hosts with the loads of their members.

    The *relative load* of a load unit is its load divided by its speed, times the least common
    multiple of all speeds. It is an integer, and equals the load if all speeds are equal.

    Parameters
    ----------
    names
        Name per load unit.
    unit_of
        Index of the load unit of each member.
    speeds
        Speed per load unit; at least 1. Only the ratios of the speeds matter.

    Examples
    --------
    >>> units = LoadUnits(("a", "b"), (0, 1), (2, 3))
    >>> units.relative_loads([4, 6]), units.relative_loads([5, 5])
    ([12, 12], [15, 10])
    """

    names: tuple[str, ...]
    unit_of: tuple[int, ...]
    speeds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Divide the speeds by their greatest common divisor."""
        divisor = gcd(*self.speeds) or 1
        if divisor > 1:
            object.__setattr__(self, "speeds", tuple(speed // divisor for speed in self.speeds))

    @property
    def has_equal_speeds(self) -> bool:
        """Return whether all load units have the same speed."""
        return max(self.speeds, default=1) == 1

    @cached_property
    def factors(self) -> tuple[int, ...]:
        """Factor from load to relative load, per load unit."""
        multiple = lcm(*self.speeds)
        return tuple(multiple // speed for speed in self.speeds)

    def shown(self, relative_load: int, scale: Fraction | int = 1) -> int | float:
        """Convert a relative load to the unit of the loads of the fastest load unit.

        The result has one decimal if it is below 100 and not an integer, and none otherwise.
        ``scale`` multiplies it, for example by the ratio to another speed.

        Examples
        --------
        >>> units = LoadUnits(("a", "b"), (0, 1), (2, 3))
        >>> [units.shown(load) for load in units.relative_loads([5, 5])]
        [7.5, 5]
        """
        fraction = Fraction(relative_load, min(self.factors, default=1)) * scale
        if fraction.denominator == 1:
            return fraction.numerator
        exact = float(fraction)
        shown = round(exact, 1) if exact < _MIN_ROUNDED else round(exact)
        return round(shown) if shown == round(shown) else shown

    def loads(self, member_loads: Sequence[int]) -> list[int]:
        """Return the load of each load unit: the sum of the loads of its members."""
        loads = [0] * len(self.names)
        for unit, load in zip(self.unit_of, member_loads, strict=True):
            loads[unit] += load
        return loads

    def relative_loads(self, loads: Sequence[int]) -> list[int]:
        """Convert the loads of the load units to relative loads."""
        return [load * factor for load, factor in zip(loads, self.factors, strict=True)]


def leximax_rank(loads: Sequence[int], units: LoadUnits | None = None) -> int:
    """Encode loads as one integer. The order of the integers is the leximax order of the loads.

    Under leximax, loads in descending order compare lexicographically. The total load and the
    number of members must be equal. With ``units``, the relative loads are encoded.

    Examples
    --------
    >>> leximax_rank([1, 3, 2]) < leximax_rank([2, 4, 0])
    True
    """
    total = sum(loads)
    if units is not None:
        total *= max(units.factors, default=1)
        loads = units.relative_loads(loads)
    return rank_of_descending(sorted(loads, reverse=True), total)


def rank_of_descending(loads: Sequence[int], most: int) -> int:
    """Encode descending loads of at most ``most`` as one integer."""
    rank = 0
    for load in loads:
        rank = rank * (most + 1) + load
    return rank
