"""Find a counterexample: measure an assignor's shortcoming on a group, and shrink the group."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kassay.experiments.comparison.compare import Comparer
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.comparison.optimum import LIMITS, CaseLimits, solve_optimum
from kassay.experiments.counterexamples.namings import group_kind, namings
from kassay.experiments.counterexamples.shrinking import shrink
from kassay.experiments.implementations.library_catalogue import is_custom_assignor, repetitions_of
from kassay.experiments.implementations.runner import Ending, StableResult, run, run_until_stable
from kassay.experiments.study.cases import Case
from kassay.experiments.study.families.fixed_groups import exhaustive_groups_up_to
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import ownership
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.solution import Solution

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterexampleOptions:
    """Options of a search for counterexamples."""

    assignor: str
    shortcoming: Shortcoming
    limits: CaseLimits = LIMITS
    attempts: int = MAX_ATTEMPTS  # groups to try while one group is shrunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Severity of a shortcoming of an assignor on one group.

    ``severity`` is 0 if there is no shortcoming, or none is proven. ``imbalance``: imbalance
    above the minimum. ``moves``: unnecessary moves per partition. ``ratio``: maximum load divided
    by the minimum possible maximum load, minus 1. ``livelock`` and ``failure``: 1.
    """

    severity: Fraction
    proven: bool
    result: StableResult


def measure_shortfall(
    group: Group, options: CounterexampleOptions, *, optimum: Solution | None = None
) -> Shortfall:
    """Measure the severity of an assignor's shortcoming on a group.

    An assignor of a library with results that vary between runs runs several times; the largest
    severity counts.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> options = CounterexampleOptions(assignor="sticky", shortcoming=Shortcoming.RATIO)
    >>> measure_shortfall(NAMED_GROUPS["A"].group, options).severity
    Fraction(1, 1)
    """
    repetitions = repetitions_of(options.assignor)
    if repetitions > 1 and optimum is None and options.shortcoming in NEEDS_OPTIMUM:
        optimum = solve_optimum(group, limits=options.limits)
    runs = (_measure_run(group, options, optimum) for _ in range(repetitions))
    return max(runs, key=lambda run: (run.severity, not run.proven))


def _measure_run(
    group: Group, options: CounterexampleOptions, optimum: Solution | None
) -> Shortfall:
    shortcoming = options.shortcoming
    result = run_until_stable(group, options.assignor)
    severity: Fraction | None = Fraction(0)
    if shortcoming in _ENDINGS:
        severity = Fraction(result.ending in _ENDINGS[shortcoming])
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
    """Yield one case for each group with at most the given members and partitions."""
    for seed, group in enumerate(exhaustive_groups_up_to(members=members, partitions=partitions)):
        document = json.dumps(group_document(group), separators=(",", ":"))
        yield Case(family=EXHAUSTIVE, seed=seed, assignors=(assignor,), document=document)


class NondeterministicAssignorError(UsageError):
    """Error: two runs of an assignor on one group return different assignments.

    Shrinking requires that every run returns the same assignment.
    """

    def __init__(self, assignor: str, case: str) -> None:
        super().__init__(
            f"assignor {assignor!r} is not deterministic: two runs return different assignments of "
            f"the group {case!r} or of a group shrunk from it; give it a fixed random seed, "
            "because a hunt needs equal results for equal groups"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSearch:
    """Result of searching one case for a counterexample. Each field is a table column."""

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


def check_deterministic(assignor: str, case: str, *groups: Group) -> None:
    """Raise an error if two runs of a custom assignor on the same group differ.

    Assignors of libraries are not checked: some return different assignments by design, and are
    compared by loads and moves only.
    """
    for group in groups if is_custom_assignor(assignor) else ():
        if run(group, assignor).assignment != run(group, assignor).assignment:
            raise NondeterministicAssignorError(assignor, case)


def find_counterexample(case: Case, options: CounterexampleOptions) -> CaseSearch:
    """Run an assignor on the group of a case, and shrink the group if it is a counterexample.

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
    check_deterministic(options.assignor, case.name, group)
    optimum = None  # of all namings
    if options.shortcoming in NEEDS_OPTIMUM:
        optimum = solve_optimum(group, limits=options.limits)
    candidates = namings(group) if case.family == EXHAUSTIVE else (group,)
    short: list[tuple[Fraction, Group]] = []
    proven, tried = True, 0
    for tried, candidate in enumerate(candidates, start=1):  # noqa: B007
        shortfall = measure_shortfall(candidate, options, optimum=optimum)
        proven &= shortfall.proven
        if shortfall.severity > 0:
            short.append((shortfall.severity, candidate))
    if not short:
        return CaseSearch(case=case.name, proven=proven, namings=tried)
    severity, worst = max(short, key=lambda pair: pair[0])
    check_deterministic(options.assignor, case.name, worst)
    smallest, reached = shrink_group(worst, options, severity)
    check_deterministic(options.assignor, case.name, smallest)
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
    """Shrink a counterexample. Return the smallest group found and its severity.

    For `LARGEST_FIRST`, the severity must not decrease. The smaller groups are valid inputs, see
    `is_valid_input`.
    """
    keep_severity = options.shortcoming in LARGEST_FIRST

    def falls_short(smaller: Group) -> bool:
        if not is_valid_input(smaller, original=group):
            return False
        reached = measure_shortfall(smaller, options).severity
        return reached >= severity if keep_severity else reached > 0

    smallest = shrink(group, falls_short, attempts=options.attempts)
    return smallest, measure_shortfall(smallest, options).severity


def is_valid_input(group: Group, *, original: Group) -> bool:
    """Return whether a shrunk group is a valid input, if ``original`` is one.

    At least one member subscribes to a topic. The group has no more members without topics, and
    no more invalid claims and references than the original.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from kassay.reference import Member, Topic
    >>> one, idle = Member(id="a", subscription=("t",)), Member(id="b", subscription=())
    >>> group = Group(topics=(Topic(name="t", partitions=1),), members=(one, idle))
    >>> smaller = [replace(group, members=(member,)) for member in group.members]
    >>> [is_valid_input(one, original=group) for one in smaller]
    [True, False]
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
    """Count the invalid claims in a group, and the references to topics that do not exist."""
    topics = group.topic_table()
    owned = ownership(group)
    return (
        sum(topic not in topics for member in group.members for topic in member.subscription)
        + sum(tp.topic not in topics for member in group.members for tp in member.owned)
        + len(owned.stale)
        + len(owned.contested)
    )
