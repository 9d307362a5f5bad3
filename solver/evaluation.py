"""Evaluate placements, and check levels and constraints."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement
from math import comb
from typing import NamedTuple, SupportsIndex, assert_never

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import load_metrics
from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, cached
from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.reference.model.topic_partitions import Column, TopicPartition
from kassay.solver import constraints, objective
from kassay.solver.problem import Ints, Placement, Problem, Weights, build_problem, exact_integers


def level_value(  # noqa: PLR0911 - one return per level
    problem: Problem, level: objective.Level, placement: Placement
) -> int:
    """Return the value of a placement on one level of the objective."""
    match level:
        case objective.Imbalance() | objective.HostImbalance():
            units = load_units(problem, level)
            if problem.profiles is not None:
                return _imbalance_of_windows(problem, level.measure, placement, units)
            return imbalance_of(level.measure, units.loads(problem.loads(placement)), units)
        case objective.Movement():
            return moves_cost(problem, movement_costs(problem, level), placement)
        case objective.CrossRack():
            return int(np.count_nonzero(RackTable(problem).cross_rack(placement)))
        case objective.TopicSpread():
            keys = problem.topic.astype(np.int64) * max(problem.member_count, 1) + placement
            return _sum_of_squared_counts(keys[placement != NO_OWNER])
        case objective.MembersUsed():
            return len(set(placement.tolist()))
        case objective.Colocation():
            blocks = colocation_blocks(problem, level)
            return sum(len(set(placement[list(block)].tolist())) - 1 for block in blocks)
        case objective.FlowLevel():
            return _flow_level_value(problem, level, placement)
        case _:
            assert_never(level)


def _flow_level_value(problem: Problem, level: objective.FlowLevel, placement: Placement) -> int:
    placed = placement != NO_OWNER
    match level:
        case objective.IdleMembers():
            return problem.member_count - len(np.unique(placement[placed]))
        case objective.MembersPerPartition():
            width = int(problem.number.max(initial=0)) + 1
            keys = problem.topic.astype(np.int64) * width + problem.number
            return _sum_of_squared_counts(keys[placed])
        case objective.Slots():
            return int(np.count_nonzero(placed))
        case objective.StatefulImbalance():
            stateful = np.array([topic.is_stateful for topic in problem.group.topics], dtype=bool)
            return _sum_of_squared_counts(placement[placed & stateful[problem.topic]])
        case _ if problem.copies is None:
            return 0
        case _:
            costs = pair_costs(problem, level)[problem.copies.class_of, placement]
            return int(costs[placed].sum())


def pair_costs(problem: Problem, level: objective.FlowLevel) -> Ints:
    """Return the standby costs per class of partitions and member with the active task."""
    costs = standby_costs(problem.group)
    is_tags = isinstance(level, objective.MissingTagValues)
    return costs.missing_tag_values if is_tags else costs.moves


def _sum_of_squared_counts(keys: NDArray[np.int64]) -> int:
    return int((np.unique(keys, return_counts=True)[1].astype(np.int64) ** 2).sum())


def _imbalance_of_windows(
    problem: Problem, measure: Measure, placement: Placement, units: LoadUnits
) -> int:
    members = problem.load_profiles(placement)
    table = np.zeros((len(units.names), problem.window_count), dtype=members.dtype)
    np.add.at(table, list(units.unit_of), members)
    if measure is not Measure.MAKESPAN:
        return load_metrics.imbalance_of_windows(measure, table.T.tolist(), units)
    return imbalance_of(measure, table.max(axis=1, initial=0).tolist(), units)


def window_limits(problem: Problem, rule: constraints.Capacity) -> dict[int, int]:
    """Convert a capacity to one load limit per weight window."""
    if problem.profiles is None:
        return {0: rule.limit}
    factors = problem.group.window_factors
    windows = range(len(factors)) if rule.window is None else (rule.window,)
    return {window: rule.limit * factors[window] for window in windows}


def load_units(problem: Problem, level: objective.Level) -> LoadUnits:
    """Return the hosts for a `HostImbalance` level, or the members for other levels."""
    is_host = isinstance(level, objective.HostImbalance)
    return problem.host_units if is_host else problem.member_units


def imbalance_of(measure: Measure, loads: Sequence[int], units: LoadUnits | None = None) -> int:
    """Return the imbalance of loads as one integer, for any measure."""
    if measure is Measure.LEXIMAX:
        return leximax_rank(loads, units)
    if units is None:
        return load_metrics.MEASURES[measure](loads)
    return load_metrics.imbalance_of(measure, loads, units)


def movement_costs(problem: Problem, level: objective.Movement) -> Weights:
    """Return the cost of moving each partition."""
    if level.cost is objective.MovementCost.COUNT:
        return np.ones(problem.partition_count, dtype=np.int64)
    if level.cost is objective.MovementCost.WEIGHT:
        return problem.weight
    table = dict(level.cost)
    return exact_integers([table.get(tp, level.other) for tp in problem.partition_index])


def moves_cost(problem: Problem, costs: Weights, placement: Placement) -> int:
    """Return the total cost of the moves of a placement."""
    copies = problem.copies
    if copies is None:
        moved = (problem.owner != NO_OWNER) & (problem.owner != placement)
    else:
        is_held = copies.is_held[copies.class_of]
        moved = (
            is_held
            & (placement != NO_OWNER)
            & ~np.asarray(copies.holders[copies.class_of, placement])
        )
    return sum(costs[moved].tolist())


class RackTable:
    """Racks of the members, and racks of the replicas of each partition."""

    def __init__(self, problem: Problem) -> None:
        racks = [problem.group.members[index].rack for index in problem.members]
        names = {rack: index for index, rack in enumerate(dict.fromkeys(racks))}
        self.rack_of = np.array([names[rack] for rack in racks], dtype=np.int32)
        self.has_replica = np.ones((problem.partition_count, max(len(names), 1)), dtype=np.bool_)
        start = 0
        for index, topic in enumerate(problem.group.topics):
            if problem.consumer_set_of_topic[index] < 0:
                continue
            for number, replicas in enumerate(topic.racks or ()):
                if any(rack is not None for rack in replicas):
                    self.has_replica[start + number] = [
                        name is None or name in replicas for name in names
                    ]
            start += topic.partitions

    def cross_rack(self, placement: Placement) -> NDArray[np.bool_]:
        """Return which partitions have no replica in the rack of their member."""
        return ~self.has_replica[np.arange(len(placement)), self.rack_of[placement]]

    def is_cross_rack(self, partition: int, member: int) -> bool:
        """Return whether the rack of the member has no replica of the partition."""
        return not self.has_replica[partition, self.rack_of[member]]


def violated(
    problem: Problem, rules: Iterable[constraints.Constraint], placement: Placement
) -> Iterator[constraints.Constraint]:
    """Yield the constraints that a placement violates."""
    rules = tuple(rules)
    has_capacities = any(isinstance(rule, constraints.Capacity) for rule in rules)
    loads = problem.load_profiles(placement).T.tolist() if has_capacities else []
    for constraint in rules:
        if not _holds(problem, constraint, placement, loads):
            yield constraint


def _holds(
    problem: Problem,
    constraint: constraints.Constraint,
    placement: Placement,
    loads: list[list[int]],
) -> bool:
    member = problem.member_index.get(getattr(constraint, "member", None) or "", NO_OWNER)
    match constraint:
        case constraints.Capacity():
            limits = window_limits(problem, constraint).items()
            return all(
                _is_within(loads[window], limit, constraint, member) for window, limit in limits
            )
        case constraints.MaxPartitions():
            counts = np.bincount(placement, minlength=problem.member_count).tolist()
            return _is_within(counts, constraint.limit, constraint, member)
        case constraints.MaxMoves():
            return level_value(problem, objective.Movement(), placement) <= constraint.limit
        case _:
            return _partitions_hold(problem, constraint, member, placement)


def binding_constraints(
    problem: Problem, rules: Iterable[constraints.Constraint]
) -> tuple[constraints.Constraint, ...]:
    """Remove the constraints that every valid assignment of the problem meets."""
    return tuple(rule for rule in rules if not _is_void(problem, rule))


def _is_void(problem: Problem, constraint: constraints.Constraint) -> bool:
    match constraint:
        case constraints.Capacity():
            is_void = constraint.limit >= problem.total
        case constraints.MaxPartitions():
            is_void = constraint.limit >= problem.partition_count
        case constraints.MaxMoves():
            is_void = constraint.limit >= int(np.count_nonzero(problem.owner != NO_OWNER))
        case constraints.Pinned() | constraints.Forbidden():
            member = problem.member_index.get(constraint.member, NO_OWNER)
            partitions = topic_partitions(problem, constraint.topic, constraint.partition)
            sets = problem.consumer_set[partitions[:1]].tolist()
            consumers = [problem.consumer_sets[index].tolist() for index in sets]
            if isinstance(constraint, constraints.Pinned):
                is_void = consumers == [[member]]
            else:
                is_void = all(member not in each for each in consumers)
        case constraints.Colocated():
            is_void = not colocated_partitions(problem, constraint)
        case constraints.Separated():
            is_void = len(separated_partitions(problem, constraint)) <= 1
        case _:
            assert_never(constraint)
    return is_void


def _partitions_hold(
    problem: Problem, constraint: constraints.PartitionConstraint, member: int, placement: Placement
) -> bool:
    match constraint:
        case constraints.Pinned():
            partitions = topic_partitions(problem, constraint.topic, constraint.partition)
            return len(partitions) == 1 and bool(placement[partitions[0]] == member)
        case constraints.Forbidden():
            partitions = topic_partitions(problem, constraint.topic, constraint.partition)
            return not bool((placement[partitions] == member).any())
        case constraints.Colocated():
            sets = colocated_partitions(problem, constraint)
            return all(len(set(placement[list(partitions)].tolist())) == 1 for partitions in sets)
        case constraints.Separated():
            apart = np.array(separated_partitions(problem, constraint), dtype=np.int64)
            return len(set(placement[apart].tolist())) == len(apart)
        case _:
            assert_never(constraint)


def _is_within(
    column: Sequence[int],
    limit: int,
    constraint: constraints.Capacity | constraints.MaxPartitions,
    member: int,
) -> bool:
    if constraint.member is None:
        return all(amount <= limit for amount in column)
    return member == NO_OWNER or column[member] <= limit


def topic_partitions(problem: Problem, topic: str, number: int | None = None) -> Column:
    """Return the indices of all partitions of a topic, or only of partition ``number`` if given."""
    index = next(i for i, t in enumerate(problem.group.topics) if t.name == topic)
    partitions = np.flatnonzero(problem.topic == index).astype(np.int32)
    return partitions if number is None or not len(partitions) else partitions[number : number + 1]


def colocated_partitions(
    problem: Problem, constraint: constraints.Colocated
) -> list[tuple[int, ...]]:
    """Return the sets of partitions that a constraint assigns to one member each."""
    columns = [topic_partitions(problem, topic).tolist() for topic in constraint.topics]
    longest = max((len(column) for column in columns), default=0)
    sets = [
        tuple(column[number] for column in columns if number < len(column))
        for number in range(longest)
    ]
    return [partitions for partitions in sets if len(partitions) > 1]


def colocated_sets(
    problem: Problem, rules: Iterable[constraints.Constraint]
) -> list[tuple[int, ...]]:
    """Return disjoint sets of partitions that the constraints assign to one member each."""
    set_of = list(range(problem.partition_count))
    inside = {at: [at] for at in set_of}
    named = (
        colocated_partitions(problem, one)
        for one in rules
        if isinstance(one, constraints.Colocated)
    )
    for first, *others in chain.from_iterable(named):
        into = set_of[first]
        for other in {set_of[at] for at in others} - {into}:
            for at in inside[other]:
                set_of[at] = into
            inside[into] += inside.pop(other)
    return sorted(tuple(sorted(partitions)) for partitions in inside.values())


def colocation_blocks(problem: Problem, level: objective.Colocation) -> list[tuple[int, ...]]:
    """Return the sets of partitions that a colocation level assigns to few members."""
    rules = map(constraints.Colocated, level.topics)
    return [block for rule in rules for block in colocated_partitions(problem, rule)]


def check_levels(group: Group, levels: Iterable[objective.Level]) -> None:
    """Raise UsageError or InputError if a level is not defined for the group."""
    levels, known = tuple(levels), (Measure.MAKESPAN, Measure.SUM_OF_SQUARES)
    for measure in (getattr(level, "measure", Measure.MAKESPAN) for level in levels):
        if group.window_count > 1 and measure not in known:
            raise UsageError(
                f"weights with several values per partition require the measure makespan or "
                f"sum_of_squares, got {str(measure)!r}"
            )
    sets = (level.topics for level in levels if isinstance(level, objective.Colocation))
    check_constraints(group, map(constraints.Colocated, chain.from_iterable(sets)))


def separated_partitions(problem: Problem, constraint: constraints.Separated) -> list[int]:
    """Return the partitions with subscribers that a constraint assigns to different members."""
    indices = (problem.partition_index.get(TopicPartition(*tp)) for tp in constraint.partitions)
    return [partition for partition in indices if partition is not None]


def permitted_members(problem: Problem, rules: Sequence[constraints.Constraint]) -> list[list[int]]:
    """Return the members that may receive each partition under the constraints."""
    consumers = [members.tolist() for members in problem.consumer_sets]
    permitted: list[list[int]] = [consumers[index] for index in problem.consumer_set.tolist()]
    for rule in rules:
        if isinstance(rule, constraints.Pinned | constraints.Forbidden):
            named = members_named(problem, rule.member)
            is_kept = isinstance(rule, constraints.Pinned)
            # Most partitions of a topic share one list.
            known: dict[int, tuple[list[int], list[int]]] = {}
            for at in topic_partitions(problem, rule.topic, rule.partition).tolist():
                own = permitted[at]
                if id(own) not in known:
                    known[id(own)] = own, [one for one in own if (one in named) is is_kept]
                permitted[at] = known[id(own)][1]
    return permitted


def members_named(problem: Problem, name: str | None) -> Sequence[int]:
    """Return the member with a name, or all members if the name is None."""
    if name is None:
        return range(problem.member_count)
    return [problem.member_index[name]] if name in problem.member_index else []


class Room:
    """Maximum load and maximum number of partitions per member, from the constraints."""

    def __init__(self, problem: Problem, rules: Sequence[constraints.Constraint]) -> None:
        self.loads = [problem.total] * problem.member_count
        self.counts = [problem.partition_count] * problem.member_count
        for rule in rules:
            if isinstance(rule, constraints.Capacity | constraints.MaxPartitions):
                column = self.loads if isinstance(rule, constraints.Capacity) else self.counts
                for member in members_named(problem, rule.member):
                    column[member] = min(column[member], rule.limit)


def has_impossible_pin(problem: Problem, rules: Iterable[constraints.Constraint]) -> bool:
    """Return whether a constraint assigns a partition without subscribers to a member."""
    pins = (rule for rule in rules if isinstance(rule, constraints.Pinned))
    return any(not len(topic_partitions(problem, pin.topic, pin.partition)) for pin in pins)


def leximax_rank(loads: Sequence[int], units: LoadUnits | None = None) -> int:
    """Encode loads as one integer, so that integers compare like loads under leximax.

    Under leximax, loads in descending order compare lexicographically. The total load and the
    number of members must be equal. With ``units``, the relative loads are encoded.
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


def group_constraints(group: Group) -> tuple[constraints.Constraint, ...]:
    """Return the capacities of the members as constraints."""
    found = []
    for member in group.members:
        limits = member.capacity
        pairs = enumerate(limits) if isinstance(limits, tuple) else [(None, limits)]
        found += [constraints.Capacity(n, member.id, at) for at, n in pairs if n is not None]
    return tuple(found)


def check_constraints(
    group: Group, rules: Iterable[constraints.Constraint]
) -> tuple[constraints.Constraint, ...]:
    """Check that the group has the members, topics and partitions of the constraints.

    Raise InputError for an unknown name or a negative limit, UsageError for other objects.
    """
    if isinstance(rules, constraints.Constraint):
        raise UsageError(f"constraints must be a list such as [MaxMoves(3)], got {rules!r}")
    rules = tuple(rules)
    for constraint in rules:
        if not isinstance(constraint, constraints.Constraint):
            raise UsageError(
                f"a constraint must be a Constraint such as MaxMoves(3), got {constraint!r}"
            )
    if not rules:
        return rules
    members = group.member_table()
    counts = {topic.name: topic.partitions for topic in group.topics}
    for constraint in rules:
        for error in _errors(constraint, members, counts, group.window_count):
            raise InputError(f"constraint {constraint!r}: {error}")
    return rules


def _errors(
    constraint: constraints.Constraint,
    members: Mapping[str, object],
    counts: Mapping[str, int],
    windows: int,
) -> Iterable[str]:
    member = getattr(constraint, "member", None)
    if member is not None and member not in members:
        yield f"no member {member!r} in the group"
    yield from _limit_errors(constraint, windows)
    topics: list[tuple[str, int | None]] = []
    match constraint:
        case constraints.Pinned() | constraints.Forbidden():
            topics = [(constraint.topic, constraint.partition)]
        case constraints.Colocated():
            topics = [(topic, None) for topic in constraint.topics]
        case constraints.Separated():
            topics = [(tp.topic, tp.partition) for tp in constraint.partitions]
        case constraints.Capacity() | constraints.MaxPartitions() | constraints.MaxMoves():
            pass
        case _:
            assert_never(constraint)
    if isinstance(constraint, constraints.Pinned) and not _is_integer(constraint.partition):
        yield f"the partition number {constraint.partition!r} is not an integer"
    for topic, number in topics:
        yield from _topic_errors(topic, number, counts)


def _limit_errors(constraint: constraints.Constraint, windows: int) -> Iterable[str]:
    limit = getattr(constraint, "limit", 0)
    if not _is_integer(limit):
        yield f"the limit {limit!r} is not an integer"
    elif limit < 0:
        yield f"the limit must be at least 0, got {limit}"
    window = getattr(constraint, "window", None)
    if window is not None and not (_is_integer(window) and 0 <= window < windows):
        yield f"no window {window!r} in the group; windows are numbered from 0 to {windows - 1}"


def _topic_errors(topic: str, number: int | None, counts: Mapping[str, int]) -> Iterable[str]:
    if topic not in counts:
        yield f"no topic {topic!r} in the group"
    elif number is not None and not _is_integer(number):
        yield f"the partition number {number!r} is not an integer"
    elif number is not None and not 0 <= number < counts[topic]:
        yield f"topic {topic!r} has no partition {number}"


def _is_integer(value: object) -> bool:
    return isinstance(value, SupportsIndex)


def mean_load(total: int, limits: NDArray[np.int64]) -> int:
    """Return the minimum makespan of a divisible load, for members with load limits."""
    return bisect_left(
        range(total), True, key=lambda load: int(np.minimum(limits, load).sum()) >= total
    )


def check_arc_costs(
    group: Group, levels: Sequence[objective.Level], rules: Iterable[constraints.Constraint]
) -> None:
    """Raise UsageError if the group needs a flow, but a level or constraint excludes flows."""
    names = [level.name for level in levels if isinstance(level, objective.FlowLevel)]
    if not (group.has_copies or names):
        return
    cause = (
        f"the level {names[0]}" if names else "a group with stateful topics or copies of partitions"
    )
    if not group.common_weight:
        raise UsageError(f"{cause} requires equal weights; remove weights from the group")
    for level in levels:
        if level.tolerance:
            raise UsageError(f"{cause} supports no tolerance; set {level.name} to tolerance 0")
        if not objective.are_arc_costs(level):
            raise UsageError(
                f"{cause} can be combined only with sum_of_squares, host_sum_of_squares, movement "
                f"(without costs), topic_spread, {', '.join(objective.FLOW_LEVELS)}; "
                f"got {level.name}"
            )
    in_network = group_constraints(group) if group.has_copies else ()
    if rest := [rule for rule in rules if rule not in in_network]:
        permitted = "except" if group.has_copies else "and no"
        raise UsageError(f"{cause} supports no constraints {permitted} capacities, got {rest[0]!r}")


Tags = tuple[tuple[str, str], ...]

_MAX_CHOICES = 200_000
"""Maximum number of sets of standbys that are compared, which takes a few seconds."""


class HostType(NamedTuple):
    """Properties of a host that determine the cost of a standby on the host."""

    tags: Tags
    is_holder: bool


@dataclass(frozen=True)
class StandbyCosts:
    """Costs of the best standbys of each task, by the member with the active task.

    Standbys have no limit per host, so the best standbys of a task depend only on the host of its
    active task. Their costs are therefore costs of (partition, member) pairs.
    """

    missing_tag_values: Ints
    moves: Ints


@cached
def standby_costs(group: Group) -> StandbyCosts:
    """Compute the costs of the best standbys of each task."""
    problem = build_problem(group)
    copies = problem.copies
    shape = (0 if copies is None else len(copies.topic), problem.member_count)
    missing, moves = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    costs = StandbyCosts(missing, moves)
    if copies is None:
        return costs
    units = problem.host_units
    host_of = np.array(units.unit_of, dtype=np.int64)
    tags: list[Tags] = [()] * len(units.names)
    for host, index in zip(units.unit_of, problem.members, strict=True):
        tags[host] = tuple(sorted(group.members[index].tags))
    known: dict[tuple[tuple[HostType, ...], int], dict[HostType, tuple[int, int]]] = {}
    choices = 0
    for row, topic in enumerate(copies.topic.tolist()):
        if not group.topics[topic].is_stateful:
            continue
        holds = np.zeros(len(units.names), dtype=np.bool_)
        holds[host_of[copies.holders[row]]] = True
        hosts = [*map(HostType, tags, holds.tolist())]
        standbys = group.topics[topic].standbys
        key = tuple(sorted(hosts)), standbys
        if key not in known:
            types = dict.fromkeys(key[0])
            count = min(standbys, len(hosts) - 1)
            choices += len(types) * comb(len(types) + count - 1, count)
            if any(tags) and choices > _MAX_CHOICES:
                raise UsageError(
                    f"topics.{group.topics[topic].name}.standbys: {standbys} standbys can be "
                    f"placed on {len(types)} kinds of hosts in too many ways; remove tags with "
                    "many values"
                )
            known[key] = {active: best_standbys(hosts, active, standbys) for active in types}
        best = known[key]
        pairs = np.array([best[host] for host in hosts], dtype=np.int64).reshape(-1, 2)
        missing[row], moves[row] = pairs[host_of].T
    return costs


def best_standbys(hosts: Sequence[HostType], active: HostType, standbys: int) -> tuple[int, int]:
    """Return the fewest missing tag values of standbys and, at this number, the fewest moves.

    ``hosts`` are the types of all hosts, and ``active`` is that of the host with the active task.
    """
    free = Counter(hosts)
    free[active] -= 1
    count = min(standbys, len(hosts) - 1)
    possible = possible_tag_values((host.tags for host in hosts), count + 1)
    if not possible:
        held = sum(free[host] for host in free if host.is_holder)
        return 0, max(0, count - held)
    return min(
        (
            missing_tag_values((active.tags, *(host.tags for host in chosen)), possible),
            sum(not host.is_holder for host in chosen),
        )
        for chosen in combinations_with_replacement(free, count)
        if all(number <= free[host] for host, number in Counter(chosen).items())
    )


def possible_tag_values(hosts: Iterable[Tags], copies: int) -> dict[str, int]:
    """Return the maximum number of distinct values of each tag over a number of hosts."""
    values = Counter(key for key, _ in dict.fromkeys(tag for tags in hosts for tag in tags))
    return {key: min(copies, number) for key, number in values.items()}


def missing_tag_values(copies: Iterable[Tags], possible: Mapping[str, int]) -> int:
    """Return the total number of tag values that no host with a copy has."""
    found = Counter(key for key, _ in dict.fromkeys(tag for tags in copies for tag in tags))
    return sum(max(0, number - found[key]) for key, number in possible.items())
