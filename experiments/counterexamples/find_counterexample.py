"""Find counterexamples: measure the shortcoming of an assignor, and shrink the group.

Results of assignors depend on names and order: they can differ for two groups that differ only in
names and order.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from itertools import permutations, product
from zlib import crc32

import numpy as np

from kassay.experiments.comparison.compare import LIMITS, CaseLimits, Comparer, solve_optimum
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.counterexamples.shrinking import shrink, smaller_groups
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.client_libraries import repetitions_of
from kassay.experiments.implementations.run_assignor import (
    DEPENDS_ON_THE_RUN,
    Ending,
    StableResult,
    run_until_stable,
)
from kassay.experiments.study.cases import Case
from kassay.experiments.study.families.finite_families import exhaustive_groups_up_to
from kassay.experiments.study.schemas import renaming_hash
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import NO_OWNER, Assignment, movement, ownership, rejoin
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.load_metrics import Measure, imbalance
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.solver.objective import Imbalance, Level, Movement, TopicSpread, default_measure
from kassay.solver.solution import Solution


def group_kind(group: Group) -> str:
    """Return a hash of a group that does not depend on names and order.

    It combines one `renaming_hash` per member, each with this member marked. Without marks, some
    different groups of 3 members and 4 partitions have equal hashes. Only the order of generations
    counts.
    """
    hashes = []
    for marked in range(len(group.members)):
        labels = (
            (index == marked, *_member_label(group, member))
            for index, member in enumerate(group.members)
        )
        colours = [crc32(repr(label).encode()) for label in labels]
        hashes.append(renaming_hash(group, colours=colours, rounds=len(colours)))
    return sha256(repr(sorted(map(str, hashes))).encode()).hexdigest()[:12]


def _member_label(group: Group, member: Member) -> tuple[object, ...]:
    generations = sorted({m.generation for m in group.members if len(m.owned)})
    return (
        generations.index(member.generation) if len(member.owned) else None,
        member.instance_id is not None,
        member.rack,
        member.capacity,
        member.protocol_version,
        member.sub_generation,
        member.user_data,
        sorted(number for _, number in member.streams),
    )


def renamed(group: Group, *, members: Sequence[int], topics: Sequence[Topic]) -> Group:
    """Rename members to c0, c1, ... and topics to t0, t1, ... in the given orders."""
    names = {topic.name: f"t{index}" for index, topic in enumerate(topics)}

    def new(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        return sorted((names.get(topic, topic), number) for topic, number in pairs)

    return Group(
        topics=tuple(replace(topic, name=names[topic.name], id=None) for topic in topics),
        members=tuple(
            replace(
                member,
                id=f"c{position}",
                subscription=tuple(sorted(names.get(one, one) for one in member.subscription)),
                owned=Partitions.of(new(member.owned)),
                streams=tuple(new(member.streams)),
            )
            for position, member in enumerate(group.members[index] for index in members)
        ),
    )


def namings(group: Group) -> Iterator[Group]:
    """Yield a group, and all copies with permuted names and partition numbers.

    The group must be small, without contested claims, weights and racks. Equal copies are
    yielded once.
    """
    yield group
    seen = {replace(group, id=None)}
    for members in permutations(range(len(group.members))):
        for topics in permutations(group.topics):
            for candidate in _numberings(renamed(group, members=members, topics=topics)):
                if candidate not in seen:
                    seen.add(candidate)
                    yield candidate


def _numberings(group: Group) -> Iterator[Group]:
    """Yield a copy of a group for every permutation of the partition numbers within topics."""
    owners: dict[TopicPartition, int] = {
        tp: index for index, member in enumerate(group.members) for tp in member.owned
    }
    owner_orders = []
    for topic in group.topics:
        tps = (TopicPartition(topic.name, number) for number in range(topic.partitions))
        owner_orders.append(sorted(set(permutations(owners.get(tp, -1) for tp in tps))))
    for columns in product(*owner_orders):
        owned: list[list[tuple[str, int]]] = [[] for _ in group.members]
        for topic, column in zip(group.topics, columns, strict=True):
            for number, owner in enumerate(column):
                if owner >= 0:
                    owned[owner].append((topic.name, number))
        members = tuple(
            replace(member, owned=Partitions.of(pairs))
            for member, pairs in zip(group.members, owned, strict=True)
        )
        yield replace(group, members=members)


MAX_ATTEMPTS = 4_000


class Shortcoming(StrEnum):
    """Kind of shortcoming of an assignor, such as imbalance or unnecessary moves."""

    IMBALANCE = "imbalance"
    MOVES = "moves"
    RATIO = "ratio"
    LIVELOCK = "livelock"
    FAILURE = "failure"


NEEDS_OPTIMUM = frozenset({Shortcoming.IMBALANCE, Shortcoming.MOVES, Shortcoming.RATIO})
LARGEST_FIRST = frozenset({Shortcoming.MOVES, Shortcoming.RATIO})
"""Shortcomings for which a search prefers the largest severity to the smallest group."""
_ENDINGS = {
    Shortcoming.LIVELOCK: frozenset({Ending.NONTERMINATING}),
    Shortcoming.FAILURE: frozenset({Ending.FAILED, Ending.INVALID}),
}


ORDERS: Mapping[str, Sequence[Level]] = {
    "optimum": (Imbalance(), Movement()),
    "spread-optimum": (TopicSpread(), Imbalance(), Movement()),
}
"""Levels of the optima that `CounterexampleOptions.worse_than` accepts, by name."""


class GroupEvent(StrEnum):
    """Event before the compared assignment: a join, a leave or a switch of the assignor.

    In a switch, the previous assignment is by `CounterexampleOptions.earlier_assignor` or, without
    it, by the assignor in ``worse_than``.
    """

    JOIN = "join"
    LEAVE = "leave"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterexampleOptions:
    """Options of a search for counterexamples."""

    assignor: str
    shortcoming: Shortcoming
    limits: CaseLimits = LIMITS
    attempts: int = MAX_ATTEMPTS  # groups to try while one group is shrunk
    worse_than: str | None = None  # another assignor, or one of `ORDERS`
    excess: int = 1  # minimum severity with `worse_than`
    event: GroupEvent | None = None
    earlier_assignor: str | None = None  # assignor of the answer before the event

    @property
    def is_largest_first(self) -> bool:
        """Return whether the search prefers groups with a large severity to small groups."""
        return self.worse_than is None and self.shortcoming in LARGEST_FIRST

    @property
    def levels(self) -> Sequence[Level] | None:
        """Return the levels of the optimum that ``worse_than`` names, or None."""
        return ORDERS.get(self.worse_than or "")

    @property
    def has_optimum(self) -> bool:
        """Return whether the search compares the assignor with an optimum."""
        is_other = self.worse_than is not None and self.worse_than not in ORDERS
        return self.shortcoming in NEEDS_OPTIMUM and not is_other


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Severity of an assignor's shortcoming on one group.

    ``severity`` is 0 if there is no shortcoming, or none is proven. ``imbalance``: imbalance
    above the minimum. ``moves``: unnecessary moves per partition. ``ratio``: maximum load divided
    by the minimum possible maximum load, minus 1. ``livelock`` and ``failure``: 1. With
    `CounterexampleOptions.worse_than`: imbalance above the other imbalance, or moves above the
    other moves with an equal imbalance.
    """

    severity: Fraction
    proven: bool
    result: StableResult


def measure_shortfall(
    group: Group,
    options: CounterexampleOptions,
    *,
    optimum: Solution | None = None,
    repeats: bool = False,
) -> Shortfall:
    """Measure the severity of an assignor's shortcoming on a group.

    A library's assignor with varying results runs several times, and the largest severity counts.
    With ``repeats``, a custom assignor runs a second time.
    """
    repetitions = repetitions_of(options.assignor)
    if repetitions > 1 and optimum is None and options.has_optimum:
        optimum = solve_optimum(group, levels=options.levels, limits=options.limits)
    runs = (_measure_run(group, options, optimum, repeats) for _ in range(repetitions))
    return max(runs, key=lambda run: (run.severity, not run.proven))


def _measure_run(
    group: Group, options: CounterexampleOptions, optimum: Solution | None, repeats: bool
) -> Shortfall:
    shortcoming = options.shortcoming
    if repeats:
        result = run_repeatable(group, options.assignor)
    else:
        result = run_until_stable(group, options.assignor, repeats=False)
    severity: Fraction | None = Fraction(0)
    if shortcoming in _ENDINGS:
        severity = Fraction(result.ending in _ENDINGS[shortcoming])
    elif result.ending is Ending.OK and options.worse_than is not None:
        severity = _excess(group, options, result, optimum)
    elif result.ending is Ending.OK:
        comparer = Comparer(
            group,
            optimum or solve_optimum(group, limits=options.limits),
            limits=options.limits,
            start=result.assignment,
        )
        comparison = comparer.compare(
            options.assignor, result, with_moves=shortcoming is Shortcoming.MOVES
        )
        severity = _severity(group, comparison, shortcoming)
    return Shortfall(severity=severity or Fraction(0), proven=severity is not None, result=result)


def _excess(
    group: Group, options: CounterexampleOptions, result: StableResult, optimum: Solution | None
) -> Fraction | None:
    """Return the severity relative to the compared assignment, or None if this is not proven."""
    imbalance, moves = _values(group, result.assignment)
    is_about_moves = options.shortcoming is Shortcoming.MOVES
    if is_about_moves and moves - _necessary_moves(group, options) < options.excess:
        return Fraction(0)
    if optimum is not None:
        # It can be that of another naming of the group: its values are the same.
        if any(level.gap for level in optimum.levels):
            return None
        least, fewest = optimum.imbalance.value, optimum.movement.value
    else:
        other = reference_assignment(group, options)
        if other is None:
            return None if options.has_optimum else Fraction(0)
        least, fewest = _values(group, other)
    found = imbalance - least
    if is_about_moves:
        found = moves - fewest if imbalance == least else 0
    return Fraction(found if found >= options.excess else 0)


def _necessary_moves(group: Group, options: CounterexampleOptions) -> int:
    """Return a lower bound on the moves of the optimum, computed without a search.

    If a topic is divided evenly, each subscriber has a base number of partitions, or one more.
    """
    if options.levels is None or not isinstance(options.levels[0], TopicSpread):
        return 0
    subscribers, moves = group.subscribers(), 0
    for topic, owners in ownership(group).owners.items():
        if subscribers.get(topic):
            base, extras = divmod(len(owners), len(subscribers[topic]))
            above = np.maximum(np.bincount(owners[owners != NO_OWNER]) - base, 0)
            moves += int(above.sum()) - min(extras, int(np.count_nonzero(above)))
    return moves


def _values(group: Group, assignment: Assignment | None) -> tuple[int, int]:
    found = assignment or Assignment({})
    return imbalance(group, found, measure=default_measure(group)), movement(group, found)


def reference_assignment(group: Group, options: CounterexampleOptions) -> Assignment | None:
    """Return the result of the other assignor or, without one, the proven optimum, or None."""
    if not options.has_optimum and options.worse_than is not None:
        return run_until_stable(group, options.worse_than).assignment
    best = solve_optimum(group, levels=options.levels, limits=options.limits)
    return best.assignment if all(level.gap == 0 for level in best.levels) else None


def after_event(group: Group, options: CounterexampleOptions) -> Group | None:
    """Return the group after the event, or None if there is no previous assignment.

    The members own the assignment of the group before the event.
    """
    if options.event is None:
        return group
    last, is_leave = len(group.members) - 1, options.event is GroupEvent.LEAVE
    joins = options.event is GroupEvent.JOIN
    before = replace(group, members=group.members[:last]) if joins else group
    other = options.worse_than if options.event is GroupEvent.SWITCH else None
    name = options.earlier_assignor or other or options.assignor
    past = run_until_stable(before, name, repeats=name != options.assignor).assignment
    if past is None or not last:
        return None
    members = rejoin(before, past).members
    newcomer = replace(group.members[last], owned=Partitions.of(()), generation=NO_GENERATION)
    return replace(group, members=members[:last] if is_leave else (*members, newcomer)[: last + 1])


def _severity(group: Group, comparison: Comparison, shortcoming: Shortcoming) -> Fraction | None:
    match shortcoming:
        case Shortcoming.IMBALANCE:
            gap = comparison.imbalance_gap
            return None if gap is None else Fraction(gap)
        case Shortcoming.MOVES:
            moves = comparison.unnecessary_moves
            return None if moves is None else Fraction(moves, max(1, group.partition_count))
        case _:
            makespan = comparison.imbalance[Measure.MAKESPAN]
            if makespan.value is None or makespan.optimum is None:
                return None
            return Fraction(makespan.value, makespan.optimum or 1) - 1


EXHAUSTIVE = "small-worlds"


def exhaustive_cases(*, members: int, partitions: int, assignor: str) -> Iterator[Case]:
    """Yield one case per group with up to ``members`` members and ``partitions`` partitions."""
    for seed, group in enumerate(exhaustive_groups_up_to(members=members, partitions=partitions)):
        document = json.dumps(group_document(group), separators=(",", ":"))
        yield Case(family=EXHAUSTIVE, seed=seed, assignors=(assignor,), document=document)


class NondeterministicAssignorError(UsageError):
    """Error: two runs of an assignor on the same group return different assignments."""


def run_repeatable(group: Group, assignor: str) -> StableResult:
    """Run an assignor, a custom one twice, and raise an error if its two results differ.

    Shrinking requires that each run on a group returns the same assignment.
    """
    result = run_until_stable(group, assignor)
    if result.detail == DEPENDS_ON_THE_RUN:
        raise NondeterministicAssignorError(
            f"assignor {shown_name(assignor)!r} is not deterministic: two runs return different "
            f"assignments of the group {group.id!r}; give it a fixed random seed, because a hunt "
            "needs equal results for equal groups"
        )
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSearch:
    """Result of the search for a counterexample in one case."""

    case: str
    error: str | None = None
    is_deterministic: bool = True  # False if two runs on one group gave different assignments
    proven: bool = True  # under every naming
    namings: int = 0  # number tried: all in `EXHAUSTIVE` cases, else 1
    short: int = 0  # number of namings with the shortcoming
    # The largest severity, as a fraction; the next columns are None without shortcoming.
    severity: str | None = None
    smallest: str | None = None  # the group after shrinking, as JSON
    kind: str | None = None  # see `group_kind`
    smallest_severity: str | None = None


def find_counterexample(case: Case, options: CounterexampleOptions) -> CaseSearch:
    """Run an assignor on a case, and shrink the group if it is a counterexample.

    A failure becomes part of the result, because one group must not end a search.
    """
    try:
        return _search(case, options)
    except NondeterministicAssignorError as error:
        return CaseSearch(case=case.name, error=str(error), is_deterministic=False, proven=False)
    except Exception as error:  # noqa: BLE001 - a failure on one group becomes a row
        return CaseSearch(case=case.name, error=f"{type(error).__name__}: {error}", proven=False)


def _search(case: Case, options: CounterexampleOptions) -> CaseSearch:
    group = case.build()
    optimum = None  # of all namings
    if options.has_optimum and options.event is None:
        optimum = solve_optimum(group, levels=options.levels, limits=options.limits)
    candidates = namings(group) if case.family == EXHAUSTIVE else (group,)
    short: list[tuple[Fraction, Group]] = []
    proven, tried = True, 0
    for tried, candidate in enumerate(candidates, start=1):
        after = after_event(candidate, options)
        if after is None:
            continue
        shortfall = measure_shortfall(after, options, optimum=optimum, repeats=tried == 1)
        proven &= shortfall.proven
        if shortfall.severity > 0:
            short.append((shortfall.severity, candidate))
    if not short:
        return CaseSearch(case=case.name, proven=proven, namings=tried)
    severity, worst = max(short, key=lambda pair: pair[0])
    base, reached = shrink_group(worst, options, severity)
    smallest = after_event(base, options) or base
    return CaseSearch(
        case=case.name,
        proven=proven,
        namings=tried,
        short=len(short),
        severity=str(severity),
        smallest=json.dumps(group_document(smallest), ensure_ascii=False, separators=(",", ":")),
        kind=group_kind(smallest),
        smallest_severity=str(reached),
    )


def shrink_group(
    group: Group, options: CounterexampleOptions, severity: Fraction
) -> tuple[Group, Fraction]:
    """Shrink a counterexample, and return the smallest group found with its severity.

    With `CounterexampleOptions.is_largest_first`, the severity must not decrease. All smaller
    groups pass `is_valid_input`. With an event, the groups are those before the event.
    """

    def reached(smaller: Group, *, repeats: bool = False) -> Fraction:
        after = after_event(smaller, options)
        if after is None:
            return Fraction(0)
        return measure_shortfall(after, options, repeats=repeats).severity

    def falls_short(smaller: Group) -> bool:
        if not is_valid_input(smaller, original=group):
            return False
        return reached(smaller) >= severity if options.is_largest_first else reached(smaller) > 0

    smallest = shrink(group, falls_short, smaller_groups, attempts=options.attempts)
    return smallest, reached(smallest, repeats=True)


def is_valid_input(group: Group, *, original: Group) -> bool:
    """Return whether a shrunk group is a valid input of an assignor.

    At least one member must subscribe to a topic. The group must not have more members without
    topics, or more invalid claims and unknown topics, than the original.
    """
    idle, allowed = (
        sum(not member.subscription for member in one.members) for one in (group, original)
    )
    return (
        idle < len(group.members)
        and idle <= allowed
        and _dangling_references(group) <= _dangling_references(original)
    )


def _dangling_references(group: Group) -> int:
    """Count the invalid claims and unknown topics in a group."""
    topics = group.topic_table()
    owned = ownership(group)
    return (
        sum(topic not in topics for member in group.members for topic in member.subscription)
        + sum(tp.topic not in topics for member in group.members for tp in member.owned)
        + len(owned.stale)
        + len(owned.contested)
    )
