"""Imbalance metrics of the loads of members or hosts.

Imbalance measures are functions of the loads and the speeds; smaller is better, and all except
`leximax` are integers. Members that subscribe to no topic with partitions are not
part of any load vector (see `participants`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from types import MappingProxyType
from typing import NoReturn

from kassay.reference.model.assignment import Assignment, cached_per_group
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, Topic, cached
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition

_MIN_ROUNDED = 100
"""Minimum load that `LoadUnits.shown` rounds to an integer."""


@dataclass(frozen=True)
class LoadUnits:
    """Units that have a load: the members of a group, or its hosts.

    The *relative load* of a load unit is its load divided by its speed, times the least common
    multiple of all speeds. It is an integer, and equals the load if all speeds are equal.

    Examples
    --------
    >>> units = LoadUnits(("a", "b"), (0, 1), (2, 3))
    >>> units.relative_loads([4, 6]), units.relative_loads([5, 5])
    ([12, 12], [15, 10])
    """

    names: tuple[str, ...]
    unit_of: tuple[int, ...]  # index of the load unit of each member
    speeds: tuple[int, ...]  # at least 1; only their ratios matter

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
        """Return the factor from load to relative load, per load unit."""
        multiple = lcm(*self.speeds)
        return tuple(multiple // speed for speed in self.speeds)

    def shown(self, relative_load: int, scale: Fraction | int = 1) -> int | float:
        """Convert a relative load to the unit of the fastest member or host.

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


class Measure(StrEnum):
    """Measure of imbalance. All measures except ``leximax`` are integers.

    For n loads l, ``sum_of_squares`` is the sum of l², ``makespan`` max(l), ``spread``
    max(l) - min(l), ``deviation`` the sum of abs(n l - sum(l)), ``balance_score`` the sum of the
    absolute differences of all pairs of loads, and ``leximax`` the loads in descending order. See
    `imbalance_of` for members with different speeds.
    """

    SUM_OF_SQUARES = "sum_of_squares"
    MAKESPAN = "makespan"
    SPREAD = "spread"
    DEVIATION = "deviation"
    BALANCE_SCORE = "balance_score"
    LEXIMAX = "leximax"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise UsageError(f"measure must be one of {', '.join(cls)}, got {value!r}")


@cached
def participants(group: Group) -> tuple[str, ...]:
    """Return the ids of the members that subscribe to a topic with partitions, in group order."""
    return tuple(group.members[index].id for index in group.participant_indices)


@cached
def member_units(group: Group) -> LoadUnits:
    """Return the participants of a group as load units, with their speeds."""
    members = [group.members[index] for index in group.participant_indices]
    names, speeds = (m.id for m in members), (m.speed for m in members)
    return LoadUnits(tuple(names), tuple(range(len(members))), tuple(speeds))


@cached
def host_units(group: Group) -> LoadUnits:
    """Return the hosts of the participants of a group as load units.

    The speed of a host is the sum of the speeds of its participants. A member without a host is
    a host of its own.
    """
    speeds: dict[tuple[str, bool], int] = {}
    keys = []
    for index in group.participant_indices:
        member = group.members[index]
        host = member.client.host
        key = (member.id, False) if host is None else (host, True)
        speeds[key] = speeds.get(key, 0) + member.speed
        keys.append(key)
    place = {key: unit for unit, key in enumerate(speeds)}
    names = tuple(name for name, _ in speeds)
    return LoadUnits(names, tuple(place[key] for key in keys), tuple(speeds.values()))


def loads(group: Group, assignment: Assignment) -> dict[str, int]:
    """Return the load of each participant: the weight or number of its partitions.

    With several windows, it is the peak over the windows, relative to their capacities.
    """
    return dict(zip(participants(group), load_vector(group, assignment), strict=True))


def relative_loads(group: Group, loads: Mapping[str, int]) -> dict[str, int]:
    """Convert the loads of participants to relative loads (see `LoadUnits`)."""
    units = member_units(group)
    factors = dict(zip(units.names, units.factors, strict=True))
    return {member: load * factors.get(member, 1) for member, load in loads.items()}


@cached_per_group
def load_vector(group: Group, assignment: Assignment) -> tuple[int, ...]:
    """Return the loads of the participants, in group order."""
    topics = group.topic_table()
    if group.window_count > 1:
        return tuple(unit_loads(group, assignment, member_units(group)))
    lists = [assignment.get(member, NO_PARTITIONS) for member in participants(group)]
    if all(topic.weights is None for topic in group.topics):
        return tuple(map(len, lists))
    return tuple(_weight_of(partitions, topics) for partitions in lists)


def unit_loads(group: Group, assignment: Assignment, units: LoadUnits) -> list[int]:
    """Return the load of each member or host: its maximum over all windows."""
    return [max(loads) for loads in zip(*_windows(group, assignment, units), strict=True)]


def _windows(group: Group, assignment: Assignment, units: LoadUnits) -> Iterator[list[int]]:
    """Yield the loads of members or hosts per window, relative to the capacity of the window."""
    if group.window_count == 1:
        yield units.loads(load_vector(group, assignment))
        return
    table = load_profiles(group, assignment)
    for window, factor in enumerate(group.window_factors):
        yield units.loads([loads[window] * factor for loads in table])


def sum_of_squares(loads: Iterable[int]) -> int:
    """Return the sum of squared loads. It ranks assignments like the variance.

    With equal weights, its minimum minimises every other imbalance measure (Harvey, Ladner,
    Lovasz, Tamir. "Semi-matchings for bipartite graphs and load balancing". Journal of
    Algorithms 59(1), 2006).
    """
    return sum(load * load for load in loads)


def makespan(loads: Iterable[int]) -> int:
    """Return the maximum load, or 0 for an empty list."""
    return max(loads, default=0)


def spread(loads: Sequence[int]) -> int:
    """Return the maximum load minus the minimum load, or 0 for an empty list."""
    return max(loads) - min(loads) if loads else 0


def deviation(loads: Sequence[int]) -> int:
    """Return the sum of absolute differences to the mean load, times the number of members.

    The factor makes it an integer: the sum over members of ``|n * load - total|``.
    """
    total = sum(loads)
    return sum(abs(len(loads) * load - total) for load in loads)


def balance_score(loads: Sequence[int]) -> int:
    """Return the sum of ``|load_i - load_j|`` over all pairs of loads."""
    ascending = sorted(loads)
    last = len(ascending) - 1
    return sum(load * (2 * rank - last) for rank, load in enumerate(ascending))


def leximax(loads: Iterable[int]) -> tuple[int, ...]:
    """Return the loads in descending order. Lexicographically smaller vectors are better."""
    return tuple(sorted(loads, reverse=True))


MEASURES: dict[Measure, Callable[[Sequence[int]], int]] = {
    Measure.SUM_OF_SQUARES: sum_of_squares,
    Measure.MAKESPAN: makespan,
    Measure.SPREAD: spread,
    Measure.DEVIATION: deviation,
    Measure.BALANCE_SCORE: balance_score,
}


def imbalance_of(measure: Measure, loads: Sequence[int], units: LoadUnits) -> int:
    """Return the imbalance of the loads of members or hosts, by one of the `MEASURES`.

    With different speeds, the sum of squares adds the products of load and relative load, and
    the deviation compares each load with the share of its speed: both have their minimum at
    loads in proportion to the speeds. All other measures use the relative loads.

    Examples
    --------
    >>> units = LoadUnits(("a", "b"), (0, 1), (1, 2))
    >>> [imbalance_of(measure, [2, 4], units) for measure in MEASURES]
    [24, 4, 0, 0, 0]
    >>> [imbalance_of(measure, [3, 3], units) for measure in MEASURES]
    [27, 6, 3, 6, 3]
    """
    if units.has_equal_speeds:
        return MEASURES[measure](loads)
    relative = units.relative_loads(loads)
    if measure is Measure.SUM_OF_SQUARES:
        return sum(load * scaled for load, scaled in zip(loads, relative, strict=True))
    if measure is Measure.DEVIATION:
        speed, total = sum(units.speeds), sum(loads)
        pairs = zip(loads, units.speeds, strict=True)
        return sum(abs(speed * load - own * total) for load, own in pairs)
    return MEASURES[measure](relative)


def imbalance_of_windows(
    measure: Measure, windows: Iterable[Sequence[int]], units: LoadUnits
) -> int:
    """Return the imbalance of the loads of members or hosts in several windows.

    The makespan and the spread are the maximum over the windows, other measures are the sum.
    """
    values = (imbalance_of(measure, loads, units) for loads in windows)
    return max(values, default=0) if measure in _GREATEST else sum(values)


_GREATEST = (Measure.MAKESPAN, Measure.SPREAD)

RELATIVE_MEASURES = frozenset(Measure) - {Measure.DEVIATION, Measure.LEXIMAX}
"""Measures in the unit of relative loads, which contain the common multiple of the speeds."""


def shown(name: str, value: int, group: Group | None) -> int | float:
    """Convert the value of a level to the unit of the loads, for display."""
    measure = name.removeprefix("host_")
    if group is None or measure not in RELATIVE_MEASURES:
        return value
    units = member_units(group) if measure == name else host_units(group)
    return units.shown(value)


def imbalance(
    group: Group, assignment: Assignment, *, measure: Measure = Measure.SUM_OF_SQUARES
) -> int:
    """Return the imbalance of a valid assignment (see `violations`) by one of the `MEASURES`."""
    if (measure := Measure(measure)) not in MEASURES:
        raise UsageError(f"measure must be one of {', '.join(MEASURES)}, got {str(measure)!r}")
    units = member_units(group)
    return imbalance_of_windows(measure, _windows(group, assignment, units), units)


@cached_per_group
def measures(group: Group, assignment: Assignment) -> Mapping[Measure, int]:
    """Return the imbalance of an assignment by each of the `MEASURES`."""
    return MappingProxyType({name: imbalance(group, assignment, measure=name) for name in MEASURES})


@cached_per_group
def load_profiles(group: Group, assignment: Assignment) -> tuple[tuple[int, ...], ...]:
    """Return the loads of each participant, one per window, in group order."""
    topics, count, found = group.topic_table(), group.window_count, []
    for member in participants(group):
        rows = [(0,) * count]
        for name, number in assignment.get(member, NO_PARTITIONS):
            topic = topics.get(name)
            profiles = None if topic is None or number < 0 else topic.profiles
            rows += (profiles or ())[number : number + 1] or [(1,) * count]
        found.append(tuple(map(sum, zip(*rows, strict=True))))
    return tuple(found)


def _weight_of(partitions: Partitions, topics: Mapping[str, Topic]) -> int:
    tables = [topics.get(name) for name in partitions.topics]
    if all(topic is None or topic.weights is None for topic in tables):
        return len(partitions)
    total = 0
    pairs = zip(partitions.codes.tolist(), partitions.numbers.tolist(), strict=True)
    for code, number in pairs:
        topic = tables[code]
        # A partition that does not exist counts 1; violations() reports it.
        inside = topic is not None and 0 <= number < topic.partitions
        total += topic.weight(number) if topic is not None and inside else 1
    return total


def has_racks(group: Group) -> bool:
    """Return whether at least one member and one replica have a known rack."""
    return any(member.rack is not None for member in group.members) and bool(replica_racks(group))


def replica_racks(group: Group) -> dict[TopicPartition, frozenset[str]]:
    """Return the known racks of the replicas of each partition."""
    return {
        TopicPartition(topic.name, number): frozenset(known)
        for topic in group.topics
        for number, racks in enumerate(topic.racks or ())
        if (known := [rack for rack in racks if rack is not None])
    }


def off_rack(group: Group, assignment: Assignment) -> int:
    """Count the assigned partitions that have no replica in the rack of their member.

    Members without a rack, and partitions without a known rack, do not count. Kafka Streams'
    traffic cost is a multiple of this count.
    """
    known = replica_racks(group)
    if not known:
        return 0
    return sum(
        member.rack not in known[tp]
        for member in group.members
        if member.rack is not None and member.id in assignment
        for tp in assignment[member.id]
        if tp in known
    )
