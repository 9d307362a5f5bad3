"""What to optimise, level by level: plain values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition


class Measure(StrEnum):
    """Measures of imbalance; see `kassay.reference.model.metrics` for their formulas."""

    SUM_OF_SQUARES = "sum_of_squares"
    MAKESPAN = "makespan"
    SPREAD = "spread"
    DEVIATION = "deviation"
    BALANCE_SCORE = "balance_score"
    LEXIMAX = "leximax"


class MovementCost(StrEnum):
    """What one moved partition costs."""

    COUNT = "count"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far later levels may fall behind the best value found for a level.

    Parameters
    ----------
    absolute
        In the level's unit.
    relative
        As a share of the best value; a float is read as the decimal it prints as, so
        that 0.01 is exactly a hundredth.

    Raises
    ------
    ValueError
        If either is negative or not finite.

    Examples
    --------
    >>> Tolerance(relative=0.01).limit(250)
    252
    >>> Tolerance(absolute=3, relative=0.01).limit(250)
    253
    """

    absolute: int = 0
    relative: Fraction | float = 0

    def __post_init__(self) -> None:
        """Check signs and make the share exact."""
        try:
            share = Fraction(str(self.relative))
        except ValueError:
            raise ValueError(
                f"relative tolerance must be a finite share, got {self.relative!r}"
            ) from None
        if share < 0 or self.absolute < 0:
            raise ValueError(
                f"tolerances must be 0 or more, got {self.absolute!r} and {self.relative!r}"
            )
        object.__setattr__(self, "relative", share)

    def limit(self, value: int) -> int:
        """Return the worst value that later levels may accept."""
        return value + max(self.absolute, int(Fraction(self.relative) * abs(value)))

    def __bool__(self) -> bool:
        """Whether it allows anything at all."""
        return bool(self.absolute or self.relative)


EXACT = Tolerance()


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Level: how unevenly load lies on the members that consume anything.

    For ``leximax`` the value is `leximax_rank` of the loads, so that it is one integer
    like the others; it takes no tolerance.

    Raises
    ------
    ValueError
        If the measure is unknown, or ``leximax`` is given a tolerance.
    """

    measure: Measure = Measure.SUM_OF_SQUARES
    tolerance: Tolerance = EXACT

    def __post_init__(self) -> None:
        """Take the measure by name."""
        object.__setattr__(self, "measure", Measure(self.measure))
        if self.measure is Measure.LEXIMAX and self.tolerance:
            raise ValueError("leximax takes no tolerance")

    @property
    def name(self) -> str:
        """Name in solutions and output: the measure's."""
        return str(self.measure)


@dataclass(frozen=True, slots=True)
class Movement:
    """Level: partitions that have an owner and go to somebody else.

    Parameters
    ----------
    cost
        `MovementCost.COUNT`: each costs 1. `MovementCost.WEIGHT`: its weight. Or (partition, cost)
        pairs, as a mapping or a tuple: partitions not listed cost ``other``.
    tolerance
        What later levels may give up.
    other
        Cost of partitions that a mapping does not list.

    Raises
    ------
    ValueError
        If a cost is negative.
    """

    cost: MovementCost | tuple[tuple[TopicPartition, int], ...] = MovementCost.COUNT
    tolerance: Tolerance = EXACT
    other: int = 1
    name: ClassVar[str] = "movement"

    def __post_init__(self) -> None:
        """Freeze a mapping and check signs."""
        if isinstance(self.cost, str):
            object.__setattr__(self, "cost", MovementCost(self.cost))
            return
        pairs = self.cost.items() if isinstance(self.cost, Mapping) else self.cost
        costs = tuple(sorted((TopicPartition(*tp), cost) for tp, cost in pairs))
        bad = next((item for item in costs if item[1] < 0), None)
        if bad is not None or self.other < 0:
            raise ValueError(f"costs of movement must be 0 or more, got {bad or self.other!r}")
        object.__setattr__(self, "cost", costs)


@dataclass(frozen=True, slots=True)
class CrossRack:
    """Level: partitions whose member is in a known rack that holds no replica of them.

    Partitions without any known rack and members without a rack never count.
    """

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "cross_rack"


@dataclass(frozen=True, slots=True)
class TopicSpread:
    """Level: how unevenly each topic lies on its consumers.

    The sum over topics and consumers of the squared number of the topic's partitions
    that the consumer has; least when every topic is dealt evenly.
    """

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "topic_spread"


@dataclass(frozen=True, slots=True)
class MembersUsed:
    """Level: members that have any partition at all."""

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "members_used"


FurtherLevel = CrossRack | TopicSpread | MembersUsed
Level = Imbalance | Movement | FurtherLevel

FURTHER_LEVELS: Mapping[str, type[FurtherLevel]] = MappingProxyType(
    {level.name: level for level in (CrossRack, TopicSpread, MembersUsed)}
)
"""Levels that may follow imbalance and movement, by name."""


def default_levels(
    group: Group, *, measure: Measure | str | None = None, tolerance: Tolerance = EXACT
) -> tuple[Level, ...]:
    """Return the levels meant by nobody saying anything: imbalance, then movement.

    Parameters
    ----------
    group
        The rebalance.
    measure
        Measure of imbalance. By default the sum of squares, or the makespan where
        partitions weigh differently.
    tolerance
        Of the imbalance.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2, weights=(1, 9)),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> default_levels(group)[0].name
    'makespan'
    """
    if measure is None:
        measure = Measure.MAKESPAN if group.is_weighted else Measure.SUM_OF_SQUARES
    return (Imbalance(Measure(measure), tolerance), Movement())


def leximax_rank(loads: Iterable[int]) -> int:
    """Read the descending load vector as the digits of one integer.

    The base is the total load plus one; for one group, where the total and the number
    of members are fixed, ranks compare exactly as the vectors do lexicographically.

    Examples
    --------
    >>> leximax_rank([1, 3, 2]) < leximax_rank([2, 4, 0])
    True
    """
    ordered = sorted(loads, reverse=True)
    base = sum(ordered) + 1
    rank = 0
    for load in ordered:
        rank = rank * base + load
    return rank
