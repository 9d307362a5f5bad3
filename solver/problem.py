"""Represent a group as the arrays of an optimisation problem.

`Arithmetic` lists the integers that each method represents exactly. All modules compute the
greatest magnitude of their numbers, sums and products in Python integers, from the coefficients,
before they build an array or a model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import accumulate, chain, pairwise
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import (
    NO_OWNER,
    Assignment,
    assignee_column,
    copy_limits,
    ownership,
    violations,
)
from kassay.reference.model.errors import InputError, InternalError, UsageError
from kassay.reference.model.group import Group, Topic, cached, topic_starts
from kassay.reference.model.load_metrics import LoadUnits, host_units, member_units
from kassay.reference.model.topic_partitions import (
    NO_PARTITIONS,
    Column,
    Partitions,
    TopicPartition,
)

Weights = NDArray[Any]  # int64, or Python integers where int64 could overflow

UNREACHABLE = 2**62
"""Integer above all magnitudes in range. Its sum with one of them fits into 64 bits."""


class Arithmetic(Enum):
    """Kinds of arithmetic, and the smallest magnitude that each kind cannot represent."""

    INT64 = 2**60
    """Arrays of NumPy: a few numbers in range can be added without overflow."""
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
    """Convert non-negative integers to int64, or to Python integers if sums may overflow."""
    return np.array(values, dtype=_dtype(sum(values)))


def integer_text(value: int) -> str:
    """Return an integer as text, or as a power of 2 if it has too many digits for Python."""
    return f"{value:,}" if value.bit_length() < _TEXT_BITS else f"about 2**{value.bit_length()}"


def exact_column(column: Weights, most: int) -> Weights:
    """Convert a column to int64, or to Python integers if ``most`` exceeds 64 bits.

    ``most`` is an upper bound of the results that are computed from the column.
    """
    return column.astype(_dtype(most))


def _dtype(most: int) -> type:
    return np.int64 if Arithmetic.INT64.represents(most) else object


@dataclass(frozen=True, slots=True)
class WeightScale:
    """Division of non-negative integers by a unit, rounded down.

    The sum of the remainders, ``rest``, is exact: a sum of any of the integers is at least the
    unit times the sum of their quotients, and exceeds it by at most ``rest``.

    Examples
    --------
    >>> WeightScale(10, rest=7).quotient(32)
    3
    """

    unit: int = 1
    rest: int = 0

    @property
    def is_exact(self) -> bool:
        """Return whether the division has no remainders."""
        return self.rest == 0

    def quotient(self, value: int, *, rounds_up: bool = False) -> int:
        """Divide a value by the unit. Round down, or up with ``rounds_up``."""
        return -(-value // self.unit) if rounds_up else value // self.unit


def scale_to_fit(values: Sequence[int], fits: Callable[[int], bool]) -> WeightScale:
    """Return the scale with the smallest unit for which a computation is in range.

    The unit is the greatest common divisor of the values, times a power of 2. ``fits`` returns
    whether the computation is in range if the integers are divided by a unit. ``fits`` must be true
    for units above the total.

    Examples
    --------
    >>> scale_to_fit([60, 90], lambda unit: 150 // unit < 10)
    WeightScale(unit=30, rest=0)
    >>> scale_to_fit([61, 90], lambda unit: 151 // unit < 10)
    WeightScale(unit=16, rest=23)
    """
    unit, total = gcd(*values) or 1, sum(values)
    while unit <= total and not fits(unit):
        unit *= 2
    return WeightScale(unit, total - unit * sum(value // unit for value in values))


Ints = NDArray[np.int64]
Placement = Column  # the member of every partition


_MAX_TERMS = 20_000
"""Maximum number of partitions times members and windows of a small model."""


@dataclass(frozen=True)
class Problem:
    """Arrays of the partitions to assign and of the members that may receive them.

    Partitions are those of topics with subscribers: topics in the order of the group, then by
    number. Members are those that consume a topic, in the order of the group. A partition that
    several members may receive occurs once per possible member; these copies get different
    members, and optional copies may remain without a member.
    """

    group: Group
    members: tuple[int, ...]  # index in group.members
    topic: Column  # index in group.topics, per partition
    number: Column  # in its topic, per partition
    weight: Weights  # load, per partition
    owner: Column  # member or NO_OWNER, per partition
    consumer_sets: tuple[Column, ...]  # distinct, each in ascending order
    consumer_set_of_topic: Column  # -1 for topics without partitions to assign
    copies: "Copies | None" = None  # None if each partition has one member
    permitted: Column | None = None  # set of consumers per partition, if it is not that of a topic
    profiles: Weights | None = None  # `load_table`, if there are several windows
    peaks: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def partition_count(self) -> int:
        """Return the number of partitions to assign."""
        return len(self.topic)

    @property
    def member_count(self) -> int:
        """Return the number of members that consume a topic."""
        return len(self.members)

    @cached_property
    def consumer_set(self) -> Column:
        """Return the index in ``consumer_sets`` of the consumers of each partition."""
        if self.permitted is not None:
            return self.permitted
        return self.consumer_set_of_topic[self.topic] if self.partition_count else self.topic

    @cached_property
    def may_consume(self) -> NDArray[np.bool_]:
        """Return a Boolean table of the sets of consumers (rows) and their members (columns)."""
        table = np.zeros((len(self.consumer_sets), self.member_count), dtype=np.bool_)
        for index, consumers in enumerate(self.consumer_sets):
            table[index, consumers] = True
        return table

    @cached_property
    def total(self) -> int:
        """Return the total load of all partitions."""
        return sum(self.weight.tolist())

    @property
    def has_big_loads(self) -> bool:
        """Return whether loads are Python integers, because they may exceed 64 bits."""
        weights = self.weight if self.profiles is None else self.profiles
        return weights.dtype == object

    @property
    def load_table(self) -> Weights:
        """Return the load per partition (row) and window (column), relative to capacities."""
        return self.weight[:, None] if self.profiles is None else self.profiles

    @property
    def window_count(self) -> int:
        """Return the number of weight windows."""
        return int(self.load_table.shape[1])

    @property
    def has_few_terms(self) -> bool:
        """Return whether a CP-SAT model with all weight windows is small."""
        return self.load_table.size * self.member_count <= _MAX_TERMS

    @cached_property
    def greatest_total(self) -> int:
        """Return the maximum total load of all partitions in any weight window."""
        return max(map(sum, self.load_table.T.tolist()), default=0)

    def merged_windows(self, windows: Sequence[int]) -> "Problem":
        """Return the problem with the sum of some weight windows as its only weight.

        In each assignment, a load of a member is at most its peak times the number of windows.
        """
        weights = self.load_table[:, list(windows)].tolist()
        return replace(self, weight=exact_integers([*map(sum, weights)]), profiles=None)

    @cached_property
    def weight_codes(self) -> Ints:
        """Return integers that are equal for partitions with equal weights."""
        if self.profiles is None:
            codes = np.unique(self.weight, return_inverse=True)[1]
        else:
            rows: dict[tuple[int, ...], int] = {}
            codes = np.array([rows.setdefault(tuple(r), len(rows)) for r in self.profiles.tolist()])
        return codes.reshape(-1).astype(np.int64)

    def load_profiles(self, placement: Placement) -> Weights:
        """Return the load of every member (row) in every weight window (column)."""
        if self.profiles is None:
            return np.array(self.loads(placement), dtype=self.weight.dtype)[:, None]
        loads = np.zeros((self.member_count, self.window_count), dtype=self.profiles.dtype)
        np.add.at(loads, placement, self.profiles)
        return loads

    @cached_property
    def owned_weight_sums(self) -> tuple[tuple[int, ...], ...]:
        """Return the total weights of the 0, 1, 2, … heaviest owned partitions per member."""
        owned = positions_by_value(self.owner, self.member_count)
        weights = (sorted(self.weight[partitions].tolist(), reverse=True) for partitions in owned)
        return tuple(tuple(accumulate(each, initial=0)) for each in weights)

    @cached_property
    def weight_unit(self) -> int:
        """Return the greatest common divisor of all weights, or 1 if all weights are zero."""
        return int(np.gcd.reduce(self.load_table.reshape(-1))) or 1 if self.partition_count else 1

    @property
    def member_units(self) -> LoadUnits:
        """Return the members with their speeds."""
        return member_units(self.group)

    @property
    def host_units(self) -> LoadUnits:
        """Return the hosts of the members with their speeds."""
        return host_units(self.group)

    @cached_property
    def member_index(self) -> dict[str, int]:
        """Return the index of each member by id."""
        members = self.group.members
        return {members[index].id: member for member, index in enumerate(self.members)}

    def member_id(self, member: int) -> str:
        """Return the id of a member of the problem."""
        return self.group.members[self.members[member]].id

    @cached_property
    def partition_index(self) -> dict[TopicPartition, int]:
        """Return the index of each partition by topic name and partition number."""
        names = [topic.name for topic in self.group.topics]
        pairs = zip(self.topic.tolist(), self.number.tolist(), strict=True)
        return {
            TopicPartition(names[topic], number): at for at, (topic, number) in enumerate(pairs)
        }

    def loads(self, placement: Placement) -> list[int]:
        """Return the load of every member in a placement."""
        loads = np.zeros(self.member_count, dtype=self.weight.dtype)
        placed = slice(None) if self.copies is None else placement != NO_OWNER
        np.add.at(loads, placement[placed], self.weight[placed])
        return [*map(int, loads.tolist())]

    def to_assignment(self, placement: Placement) -> Assignment:
        """Convert a placement to an assignment. Members without partitions get empty lists."""
        names = tuple(topic.name for topic in self.group.topics)
        lists = dict.fromkeys((member.id for member in self.group.members), NO_PARTITIONS)
        order = np.argsort(placement, kind="stable")
        ends = np.searchsorted(placement[order], np.arange(self.member_count + 1)).tolist()
        # The first part contains the partitions without a member.
        _, *parts = Partitions(names, self.topic[order], self.number[order]).split(ends)
        lists.update(zip(self.member_index, parts, strict=True))
        return Assignment(lists)

    def to_placement(self, assignment: Assignment) -> Placement | None:
        """Convert an assignment to a placement; return None for an invalid assignment."""
        if self.copies is not None:
            return self._placement_of_copies(assignment)
        is_placed = np.repeat(self.consumer_set_of_topic >= 0, topic_starts(self.group).counts)
        assigned = assignee_column(self.group, assignment)[is_placed]
        placement = _member_numbers(self.group, self.members)[assigned]
        valid = (placement != NO_OWNER) & self.may_consume[self.consumer_set, placement]
        return placement if valid.all() else None

    def _placement_of_copies(self, assignment: Assignment) -> Placement | None:
        if any(violations(self.group, assignment)):
            return None
        placement = np.full(self.partition_count, NO_OWNER, dtype=np.int32)
        following: dict[TopicPartition, int] = {}
        last = self.partition_index
        for member, partitions in assignment.items():
            for topic, number in partitions:
                # The index contains the last copy; the others precede it.
                tp = TopicPartition(topic, number)
                copy = following.get(tp, last[tp])
                placement[copy] = self.member_index[member]
                following[tp] = copy - 1
        return placement

    def valid_placement(self, assignment: Assignment) -> Placement:
        """Convert an assignment to a placement; raise UsageError for an invalid assignment."""
        for violation in violations(self.group, assignment):
            raise UsageError(f"the assignment is not valid: {violation}")
        placement = self.to_placement(assignment)
        if placement is None:
            raise InternalError(
                "internal error: unassigned partition; report a bug with this group document"
            )
        return placement


@dataclass(frozen=True)
class Copies:
    """Classes of partitions that several members can receive.

    A class contains the partitions of one topic with equal numbers of copies and equal holders.
    """

    topic: Ints  # index in group.topics, per class
    least: Ints  # minimum number of members, per class
    most: Ints  # maximum number of members, per class
    partitions: Ints  # number, per class
    class_of: Ints  # class of the partition, per copy
    holders: NDArray[np.bool_]  # classes and members: who receives a copy without a move

    @cached_property
    def is_held(self) -> NDArray[np.bool_]:
        """Return which classes have partitions that a member holds."""
        return np.asarray(self.holders.any(axis=1))


def _copies(problem: Problem) -> Problem:
    """Convert a problem with one entry per partition to a problem with one entry per copy."""
    group, width = problem.group, problem.member_count
    is_placed = np.repeat(problem.consumer_set_of_topic >= 0, topic_starts(group).counts)
    sizes = np.array([len(each) for each in problem.consumer_sets], dtype=np.int64)
    least, most = (limit[is_placed] for limit in copy_limits(group))
    subscribers = sizes[problem.consumer_set] if len(sizes) else least
    if (least > subscribers).any():
        at = int(np.flatnonzero(least > subscribers)[0])
        name = f"{group.topics[problem.topic[at]].name}-{problem.number[at]}"
        raise InputError(
            f"{name} needs {least[at]} members, but has {subscribers[at]} subscribers; add members"
        )
    most = np.minimum(most, subscribers)
    holders = np.zeros((problem.partition_count, width), dtype=np.bool_)
    owned = np.flatnonzero(problem.owner != NO_OWNER)
    holders[owned, problem.owner[owned]] = True
    for id, member in problem.member_index.items():
        held = [problem.partition_index.get(tp) for tp in group.member_table()[id].holds]
        holders[[at for at in held if at is not None], member] = True
    holders &= problem.may_consume[problem.consumer_set]
    table = np.column_stack([problem.topic, least, most, holders])
    _, first, class_of = np.unique(table, axis=0, return_index=True, return_inverse=True)
    class_of = class_of.reshape(-1)
    rows = np.repeat(np.arange(problem.partition_count), most)
    return replace(
        problem,
        topic=problem.topic[rows],
        number=problem.number[rows],
        weight=problem.weight[rows],
        owner=np.full(len(rows), NO_OWNER, dtype=np.int32),
        copies=Copies(
            topic=problem.topic[first].astype(np.int64),
            least=least[first],
            most=most[first],
            partitions=np.bincount(class_of, minlength=len(first)).astype(np.int64),
            class_of=class_of[rows].astype(np.int64),
            holders=holders[first],
        ),
    )


@cached
def build_problem(group: Group) -> Problem:
    """Convert a group to the arrays of an optimisation problem. The group caches the result."""
    members = group.participant_indices
    member_of = _member_numbers(group, members)
    subscribers = group.subscribers()
    sets: dict[tuple[int, ...], int] = {}
    consumer_set_of_topic = np.full(len(group.topics), -1, dtype=np.int32)
    placed = [index for index, topic in enumerate(group.topics) if subscribers.get(topic.name, ())]
    for index in placed:
        consumers = subscribers[group.topics[index].name]
        consumer_set_of_topic[index] = sets.setdefault(consumers, len(sets))
    topics = [group.topics[index] for index in placed]
    counts = [topic.partitions for topic in topics]
    is_placed = np.repeat(consumer_set_of_topic >= 0, topic_starts(group).counts)
    first = np.cumsum([0, *counts], dtype=np.int64)
    ends = np.cumsum([0, *map(len, sets)]).tolist()
    indices = np.fromiter(chain.from_iterable(sets), dtype=np.int32, count=ends[-1])
    all_consumers = member_of[indices]
    number = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    problem = Problem(
        group=group,
        members=members,
        topic=np.repeat(np.array(placed, dtype=np.int32), counts),
        number=number.astype(np.int32),
        weight=_weights(topics),
        profiles=_profiles(group, topics) if group.window_count > 1 else None,
        owner=member_of[ownership(group).column[is_placed]],
        consumer_sets=tuple(all_consumers[start:stop] for start, stop in pairwise(ends)),
        consumer_set_of_topic=consumer_set_of_topic,
    )
    if group.has_copies:
        problem = _copies(problem)
    for column in (problem.topic, problem.number, problem.weight, problem.owner):
        column.setflags(write=False)
    return problem


def _member_numbers(group: Group, members: Sequence[int]) -> Column:
    """Return the index of each group member in the problem, or `NO_OWNER`."""
    numbers = np.full(len(group.members) + 1, NO_OWNER, dtype=np.int32)
    numbers[list(members)] = np.arange(len(members), dtype=np.int32)
    return numbers


def _weights(topics: list[Topic]) -> Weights:
    if all(topic.weights is None for topic in topics):
        return np.ones(sum(topic.partitions for topic in topics), dtype=np.int64)
    if Arithmetic.INT64.represents(sum(topic.total_weight for topic in topics)):
        columns = [
            np.ones(topic.partitions, dtype=np.int64)
            if topic.weights is None
            else np.array(topic.weights, dtype=np.int64)
            for topic in topics
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *columns])
    return np.array([topic.weight(p) for topic in topics for p in range(topic.partitions)], object)


def _profiles(group: Group, topics: Sequence[Topic]) -> Weights:
    """Return the load per partition and weight window, relative to window capacities.

    In every window, a partition of a topic without weights has the load 1.
    """
    factors, ones = group.window_factors, (1,) * group.window_count
    rows = [row for topic in topics for row in topic.profiles or (ones,) * topic.partitions]
    greatest = sum(map(sum, rows)) * max(factors)
    table: Weights = np.array(rows, dtype=_dtype(greatest)).reshape(-1, len(ones))
    profiles: Weights = table * np.array(factors, dtype=table.dtype)
    profiles.setflags(write=False)
    return profiles


def connected_components(
    problem: Problem, units: LoadUnits | None = None
) -> list[tuple[list[int], NDArray[np.intp]]]:
    """Divide members and partitions into connected components of the subscription graph."""
    count = problem.member_count if units is None else len(units.names)
    if any(len(consumers) == problem.member_count for consumers in problem.consumer_sets):
        return [([*range(count)], np.arange(problem.partition_count))]
    if not problem.consumer_sets:
        return []
    nodes = np.concatenate(problem.consumer_sets)
    if units is not None:
        nodes = np.array(units.unit_of)[nodes]
    sizes = [len(consumers) for consumers in problem.consumer_sets]
    starts = np.cumsum([0, *sizes[:-1]])
    # The label of a node is the first node of its component.
    label, following = np.arange(0), np.arange(count)
    while not np.array_equal(label, following):
        label = following
        of_set = np.minimum.reduceat(label[nodes], starts)
        following = label.copy()
        np.minimum.at(following, nodes, np.repeat(of_set, sizes))
        following = following[following]
    labels, part = np.unique(label, return_inverse=True)
    part_of_set = np.searchsorted(labels, of_set)
    inside = positions_by_value(part, len(labels))
    partitions = positions_by_value(part_of_set[problem.consumer_set], len(labels))
    return [(own.tolist(), placed) for own, placed in zip(inside, partitions, strict=True)]


def first_partitions(problem: Problem) -> dict[str, int]:
    """Return the index of the first partition of each topic."""
    names = [topic.name for topic in problem.group.topics]
    first = np.flatnonzero(problem.number == 0)
    pairs = zip(problem.topic[first].tolist(), first.tolist(), strict=True)
    return {names[topic]: at for topic, at in pairs}


def positions_by_value(column: NDArray[np.integer], count: int) -> list[NDArray[np.intp]]:
    """Return the ascending positions of each value from 0 to ``count - 1`` in a column."""
    order = np.argsort(column, kind="stable")
    starts = np.searchsorted(column[order], np.arange(count + 1))
    return [order[starts[at] : starts[at + 1]] for at in range(count)]
