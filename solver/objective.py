"""Define the levels of the lexicographic objective."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import TopicPartition


class MovementCost(StrEnum):
    """Cost of one moved partition: 1, or the weight of the partition."""

    COUNT = "count"
    WEIGHT = "weight"


def _integer(value: object, name: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{name} must be an integer, got {value!r}") from None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Permitted excess of a level over its best value, to improve later levels.

    Parameters
    ----------
    absolute
        In the unit of the level.
    relative
        Share of the best value. A float means its decimal representation: 0.01 is 1/100.
    up_to
        Upper limit on the value of the level, instead of an excess. All values up to it are
        permitted, so the level is minimised only until its value is within the limit.

    Raises
    ------
    UsageError
        If a part is negative, or if ``up_to`` is combined with an excess.

    Examples
    --------
    >>> Tolerance(relative=0.01).limit(250)
    252
    >>> Tolerance(absolute=3, relative=0.01).limit(250)
    253
    >>> Tolerance(up_to=300).limit(250)
    300
    """

    absolute: int = 0
    relative: Fraction | float = 0
    up_to: int | None = None

    def __post_init__(self) -> None:
        try:
            share = Fraction(str(self.relative))
        except ValueError:
            raise UsageError(
                f"relative tolerance must be a finite number, got {self.relative!r}"
            ) from None
        object.__setattr__(self, "absolute", _integer(self.absolute, "absolute tolerance"))
        if self.up_to is not None:
            object.__setattr__(self, "up_to", _integer(self.up_to, "up_to"))
        if share < 0 or self.absolute < 0:
            raise UsageError(
                f"absolute and relative tolerance must be at least 0, got {self.absolute!r} "
                f"and {self.relative!r}"
            )
        if self.up_to is not None and (self.up_to < 0 or self.absolute or share):
            raise UsageError(f"up_to must be at least 0, and other tolerances 0, got {self}")
        object.__setattr__(self, "relative", share)

    def __str__(self) -> str:
        if self.up_to is not None:
            return f"up to {self.up_to}"
        share = f"{Fraction(self.relative) * 100}%"
        return (
            f"+{self.absolute}" + f" or {share}" * (self.relative != 0) if self.absolute else share
        )

    def limit(self, value: int) -> int:
        """Return the maximum value that the tolerance permits if the minimum is ``value``."""
        if self.up_to is not None:
            return max(value, self.up_to)
        return value + max(self.absolute, int(Fraction(self.relative) * abs(value)))

    def __bool__(self) -> bool:
        return bool(self.absolute or self.relative) or self.up_to is not None


EXACT = Tolerance()

WEIGHTED_TOLERANCE = Tolerance(relative=Fraction(2, 100))
"""Default tolerance of the maximum load if weights or speeds differ.

Measured weights change by more than 2% between two captures, and the last 2% of balance cost
most of the moves.
"""


@dataclass(frozen=True, slots=True)
class _LoadLevel:
    """Level that measures the imbalance of loads."""

    measure: Measure = Measure.SUM_OF_SQUARES
    tolerance: Tolerance = EXACT

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", Measure(self.measure))
        if self.measure is Measure.LEXIMAX and self.tolerance:
            raise UsageError(
                f"leximax supports no tolerance, got {self.tolerance}; use another measure"
            )


@dataclass(frozen=True, slots=True)
class Imbalance(_LoadLevel):
    """Level that measures the imbalance of the loads of the members.

    If members differ in speed, loads are compared relative to the speeds, see
    `metrics.imbalance_of`.

    The value of ``leximax`` is `leximax_rank` of the loads; it takes no tolerance.

    Parameters
    ----------
    is_preference
        Whether the level only selects one of the assignments that are optimal on the levels before
        it. An assignment can be optimal without a proof of this level.
    """

    is_preference: bool = False

    @property
    def name(self) -> str:
        """Return the name of the measure as the name of the level."""
        return str(self.measure)


@dataclass(frozen=True, slots=True)
class HostImbalance(_LoadLevel):
    """Level that measures the imbalance of the loads of the hosts.

    The load of a host is the load of its members, and its speed the sum of their speeds. A
    member without a host is a host of its own.
    """

    @property
    def name(self) -> str:
        """Return ``host_`` and the name of the measure as the name of the level."""
        return f"host_{self.measure}"


HOST_LEVELS = MappingProxyType({f"host_{measure}": measure for measure in Measure})
"""Measures of the levels about hosts, by name of the level."""


@dataclass(frozen=True, slots=True)
class Movement:
    """Level that adds up the costs of the moves; a move costs 1 by default.

    Parameters
    ----------
    cost
        Cost per moved partition: `MovementCost.COUNT` (1), `MovementCost.WEIGHT` (its weight),
        or (partition, cost) pairs as a mapping or a tuple.
    other
        Cost of partitions that ``cost`` does not list.
    """

    cost: MovementCost | tuple[tuple[TopicPartition, int], ...] = MovementCost.COUNT
    tolerance: Tolerance = EXACT
    other: int = 1
    name: ClassVar[str] = "movement"

    def __post_init__(self) -> None:
        if isinstance(self.cost, str):
            object.__setattr__(self, "cost", MovementCost(self.cost))
            return
        pairs = self.cost.items() if isinstance(self.cost, Mapping) else self.cost
        costs = tuple(
            sorted(
                (TopicPartition(*tp), _integer(cost, "the cost of a move")) for tp, cost in pairs
            )
        )
        object.__setattr__(self, "other", _integer(self.other, "the cost of a move"))
        negative = ((f"a move of {tp}", cost) for tp, cost in costs if cost < 0)
        move, least = next(negative, ("a move", self.other))
        if least < 0:
            raise UsageError(f"the cost of {move} must be at least 0, got {least}")
        object.__setattr__(self, "cost", costs)


@dataclass(frozen=True, slots=True)
class CrossRack:
    """Level that counts the partitions without a replica in the rack of their member.

    Partitions without a known rack and members without a rack never count.
    """

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "cross_rack"


@dataclass(frozen=True, slots=True)
class TopicSpread:
    """Level that measures how unevenly members share the partitions of each topic.

    The sum over topics and members of the squared number of the topic's partitions that
    the member has.
    """

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "topic_spread"


@dataclass(frozen=True, slots=True)
class MembersUsed:
    """Level that counts the members with at least one partition."""

    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "members_used"


@dataclass(frozen=True, slots=True)
class FlowLevel:
    """Level that only network flows can minimise."""

    tolerance: Tolerance = EXACT
    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class IdleMembers(FlowLevel):
    """Level that counts the subscribed members without a partition."""

    name: ClassVar[str] = "idle_members"


@dataclass(frozen=True, slots=True)
class MembersPerPartition(FlowLevel):
    """Level that adds up the squared number of members of each partition."""

    name: ClassVar[str] = "members_per_partition"


@dataclass(frozen=True, slots=True)
class Slots(FlowLevel):
    """Level that counts the (partition, member) pairs of the assignment."""

    name: ClassVar[str] = "slots"


@dataclass(frozen=True, slots=True)
class StatefulImbalance(FlowLevel):
    """Level that adds up the squared number of stateful partitions of each member."""

    name: ClassVar[str] = "stateful_sum_of_squares"


@dataclass(frozen=True, slots=True)
class MissingTagValues(FlowLevel):
    """Level that counts the tag values that the hosts of a partition's copies lack.

    For each partition and tag, it adds the greatest possible number of different values minus the
    number of values of the hosts with a copy, for the standbys with the most values.
    """

    name: ClassVar[str] = "missing_tag_values"


@dataclass(frozen=True, slots=True)
class StandbyMoves(FlowLevel):
    """Level that counts the standbys on hosts without the state of the partition.

    The standbys are those with the fewest `MissingTagValues` and, among them, the fewest moves.
    """

    name: ClassVar[str] = "standby_moves"


@dataclass(frozen=True, slots=True)
class Colocation:
    """Level that counts the additional members of partitions that should be colocated.

    For each set of topics and each number N, the value adds the number of members that have
    partitions N of these topics, minus 1.
    """

    topics: tuple[tuple[str, ...], ...]
    tolerance: Tolerance = EXACT
    name: ClassVar[str] = "colocation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", tuple(map(tuple, self.topics)))


FurtherLevel = CrossRack | TopicSpread | MembersUsed
Level = Imbalance | HostImbalance | Movement | Colocation | FurtherLevel | FlowLevel

FURTHER_LEVELS: Mapping[str, type[FurtherLevel]] = MappingProxyType(
    {level.name: level for level in (CrossRack, TopicSpread, MembersUsed)}
)
"""Levels that may follow imbalance and movement, by name."""
FLOW_LEVELS: Mapping[str, type[FlowLevel]] = MappingProxyType(
    {
        level.name: level
        for level in (
            *(IdleMembers, MembersPerPartition, Slots),
            *(StatefulImbalance, MissingTagValues, StandbyMoves),
        )
    }
)
"""Levels that only flows minimise, for groups with copies or state, by name."""

_LEVELS: tuple[Level, ...] = (
    *map(Imbalance, Measure),
    *map(HostImbalance, Measure),
    Movement(),
    Colocation(()),
    *(level() for level in (*FURTHER_LEVELS.values(), *FLOW_LEVELS.values())),
)
LEVELS: Mapping[str, Level] = MappingProxyType({level.name: level for level in _LEVELS})
"""All levels without tolerance, by name. `Colocation` also needs topics."""


def only_by_flows(level: FlowLevel) -> UsageError:
    """Create the error for a level that only network flows can minimise."""
    return UsageError(f"the level {level.name!r} needs a network flow; increase the work limit")


def default_levels(
    group: Group, *, measure: Measure | str | None = None, tolerance: Tolerance | None = None
) -> tuple[Level, ...]:
    """Return the default levels: imbalance, then movement.

    The default measure of imbalance is `default_measure`, and its tolerance `default_tolerance`.
    After the maximum load and the moves, the sum of squares is a preference.
    """
    measure = default_measure(group) if measure is None else Measure(measure)
    tolerance = default_tolerance(group, measure) if tolerance is None else tolerance
    return with_preference((Imbalance(measure, tolerance), Movement()))


def is_preference(level: Level) -> bool:
    """Return whether the level is a preference, for which no proof is required."""
    return isinstance(level, Imbalance) and level.is_preference


def with_preference(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Add the sum of squares as a preference if the levels are makespan and movement."""
    match levels:
        case (Imbalance(measure=Measure.MAKESPAN), Movement(cost=MovementCost.COUNT)):
            return (*levels, Imbalance(Measure.SUM_OF_SQUARES, is_preference=True))
    return tuple(levels)


def default_measure(group: Group) -> Measure:
    """Return the makespan if weights or speeds differ, else the sum of squares."""
    return Measure.MAKESPAN if group.uniform_weight is None else Measure.SUM_OF_SQUARES


def ordered_levels(
    group: Group,
    *,
    measure: Measure | str | None = None,
    tolerance: Tolerance | None = None,
    further: Sequence[Level] = (),
) -> tuple[Level, ...]:
    """Add the levels imbalance and movement if ``further`` does not contain them.

    If the further levels contain no imbalance of members, it comes first. If they contain no
    movement, it comes directly after this imbalance.
    """
    first, movement = default_levels(group, measure=measure, tolerance=tolerance)[:2]
    levels = list(further)
    if not any(isinstance(level, Imbalance) for level in levels):
        levels.insert(0, first)
    if not any(isinstance(level, Movement) for level in levels):
        at = next(index for index, level in enumerate(levels) if isinstance(level, Imbalance))
        levels.insert(at + 1, movement)
    return with_preference(levels) if not further else tuple(levels)


def default_tolerance(group: Group, measure: Measure | str | None = None) -> Tolerance:
    """Return the default tolerance of imbalance: 2% if weights differ, else 0."""
    is_strict = measure is not None and Measure(measure) is Measure.LEXIMAX
    return WEIGHTED_TOLERANCE if group.is_weighted and not is_strict else EXACT


def requested_levels(group: Group, levels: Iterable[Level | str] | str | None) -> tuple[Level, ...]:
    """Convert names to levels; None means the default levels."""
    if levels is None:
        return default_levels(group)
    named = {"imbalance": Imbalance(default_measure(group)), **LEVELS}
    del named[Colocation.name]
    given = (levels,) if isinstance(levels, str | Level) else tuple(levels)
    unknown = [one for one in given if not isinstance(one, Level) and one not in named]
    if unknown:
        raise UsageError(
            f"a level must be a Level such as Movement(), or one of {', '.join(named)}, "
            f"got {unknown[0]!r}"
        )
    return tuple(named[one] if isinstance(one, str) else one for one in given)


def has_arc_costs(group: Group, levels: Sequence[Level]) -> bool:
    """Return whether a flow with convex arc costs can minimise all levels of a group."""
    return bool(group.common_weight) and not any(
        level.tolerance or not are_arc_costs(level) for level in levels
    )


def are_arc_costs(level: Level) -> bool:
    """Return whether a flow with convex arc costs can minimise a level."""
    match level:
        case Imbalance(measure=measure) | HostImbalance(measure=measure):
            return measure is Measure.SUM_OF_SQUARES
        case Movement(cost=cost):
            return cost is MovementCost.COUNT
        case TopicSpread() | FlowLevel():
            return True
        case _:
            return False


def is_optimal_by_squares_and_moves(group: Group, levels: Sequence[Level]) -> bool:
    """Return whether minimising the sum of squares, then moves, minimises the levels.

    Strictly convex measures are minimal only at the least majorised loads. For the other measures,
    other minimum loads may need fewer moves.
    """
    if group.has_copies or not group.uniform_weight or any(level.tolerance for level in levels):
        return False
    match levels:
        case [Imbalance()]:
            return True
        case [
            Imbalance(measure=Measure.SUM_OF_SQUARES | Measure.LEXIMAX),
            Movement(cost=MovementCost()),
        ]:
            return True
        case _:
            return False
