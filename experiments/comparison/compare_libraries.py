"""Compare the assignments of client libraries with those of ports and of other releases."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kassay.experiments.comparison.compare import LIMITS, CaseLimits, compare, solve_optimum
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.implementations.client_libraries import (
    Library,
    repetitions_of,
    split_alias,
    version_key,
)
from kassay.experiments.implementations.run_assignor import Ending, StableResult, run_until_stable
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.assignment import Assignment, movement, ownership
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import leximax, load_vector


class Agreement(StrEnum):
    """Kind of agreement between the results of two assignors.

    Only assignors with the same result in each run can be ``identical``. ``same loads`` means that
    the sorted loads of the members are equal.
    """

    # The worst kind of agreement is last.
    IDENTICAL = "identical"
    SAME_LOADS = "same loads"
    OTHER_LOADS = "other loads"
    INCOMPARABLE = "incomparable"  # the reference has no assignment
    INVALID = "invalid"
    FAILED = "failed"
    NONTERMINATING = "nonterminating"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAgreement:
    """Comparison of an assignor with a reference assignor and the optimum, on one group.

    The values are the worst ones of several runs. None means that the optimum is not proven, or
    that a run gave no valid assignment.
    """

    group: Group
    agreement: Agreement
    least_imbalance: bool | None
    unnecessary_moves: int | None
    distinct_assignments: int
    distinct_loads: int

    @property
    def kinds(self) -> list[str]:
        """Return the names of the agreement and of the shortcomings that the comparison found."""
        kinds = [str(self.agreement)]
        kinds += ["imbalance"] if self.least_imbalance is False else []
        return kinds + (["unnecessary moves"] if self.unnecessary_moves else [])


def compare_with_reference(
    group: Group,
    assignors: Iterable[str],
    *,
    repetitions: int | None = None,
    limits: CaseLimits = LIMITS,
) -> Iterator[GroupAgreement]:
    """Compare assignors of libraries with their ports on one group.

    The port runs once. Each assignor runs ``repetitions`` times; by default once, or five times if
    its results vary. If ``limits`` stop the search, no further assignor runs.
    """
    optimum = solve_optimum(group, limits=limits)
    known: dict[str, StableResult] = {}
    for assignor in assignors:
        if limits.is_stopped:
            break
        other = reference_of(assignor)
        if other not in known:
            known[other] = run_until_stable(group, other)
        number = repetitions or repetitions_of(assignor)
        results = [run_until_stable(group, assignor) for _ in range(number)]
        comparisons = [
            compare(group, assignor, optimum=optimum, result=result, limits=limits)
            for result in results
        ]
        is_repeatable, port = repetitions_of(assignor) == 1, known[other]
        kinds = [agreement_of(group, one, port, is_repeatable=is_repeatable) for one in results]
        yield _group_agreement(group, results, kinds, comparisons)


def reference_of(assignor: str) -> str:
    """Return the name of the port with the same name as an assignor, or else ``range``."""
    name = split_alias(assignor)[1].rpartition(":")[2]
    return name if name in ASSIGNORS else "range"


def agreement_of(
    group: Group, result: StableResult, other: StableResult, *, is_repeatable: bool = True
) -> Agreement:
    """Determine the kind of agreement between two results for the same group."""
    match result.ending:
        case Ending.INVALID:
            return Agreement.INVALID
        case Ending.NONTERMINATING:
            return Agreement.NONTERMINATING
        case Ending.FAILED | Ending.ERROR:
            is_crash = "(signal SIG" in (result.detail or "")
            return Agreement.CRASHED if is_crash else Agreement.FAILED
    if result.assignment is None or other.assignment is None:
        return Agreement.INCOMPARABLE
    if is_repeatable and _sets(result.assignment) == _sets(other.assignment):
        return Agreement.IDENTICAL
    same = sorted_loads(group, result.assignment) == sorted_loads(group, other.assignment)
    return Agreement.SAME_LOADS if same else Agreement.OTHER_LOADS


def sorted_loads(group: Group, assignment: Assignment) -> tuple[int, ...]:
    """Return the loads of the members in descending order."""
    return tuple(leximax(load_vector(group, assignment)))


def _sets(assignment: Assignment) -> Mapping[str, frozenset[tuple[str, int]]]:
    return {
        member: frozenset((topic, number) for topic, number in partitions)
        for member, partitions in assignment.items()
        if len(partitions)
    }


def _group_agreement(
    group: Group, runs: list[StableResult], kinds: list[Agreement], comparisons: list[Comparison]
) -> GroupAgreement:
    imbalance = [one.least_imbalance for one in comparisons]
    moves = [one.unnecessary_moves for one in comparisons]
    assigned = [run.assignment for run in runs if run.assignment is not None]
    return GroupAgreement(
        group=group,
        agreement=max(kinds, key=list(Agreement).index),
        least_imbalance=None if None in imbalance else all(imbalance),
        unnecessary_moves=None if None in moves else max(m for m in moves if m is not None),
        distinct_assignments=len({frozenset(_sets(one).items()) for one in assigned}),
        distinct_loads=len({sorted_loads(group, one) for one in assigned}),
    )


@dataclass(slots=True)
class AgreementCounts:
    """Number of groups by kind of agreement, for one assignor.

    ``varying_assignments`` and ``varying_loads`` count the groups on which the results of several
    runs differ.
    """

    assignor: str
    agreements: Counter[Agreement] = field(default_factory=Counter)
    smallest: dict[str, Group] = field(default_factory=dict)
    with_owners: int = 0
    least_imbalance: int = 0
    unnecessary_moves: int = 0
    varying_assignments: int = 0
    varying_loads: int = 0

    def add(self, one: GroupAgreement) -> None:
        """Add the comparison on one group to the counts."""
        owned = bool(ownership(one.group).owned_count)
        self.agreements[one.agreement] += 1
        self.with_owners += owned
        self.least_imbalance += one.least_imbalance is True
        self.unnecessary_moves += owned and bool(one.unnecessary_moves)
        self.varying_assignments += one.distinct_assignments > 1
        self.varying_loads += one.distinct_loads > 1
        for kind in one.kinds:
            known = self.smallest.get(kind)
            if known is None or _size(one.group) < _size(known):
                self.smallest[kind] = one.group


def add_agreements(
    counts: Mapping[str, AgreementCounts], groups: Iterable[Group], *, limits: CaseLimits = LIMITS
) -> None:
    """Compare assignors on many groups, and add the results to their counts.

    If ``limits`` stop the search, the current group is not counted.
    """
    for group in groups:
        compared = list(compare_with_reference(group, counts, limits=limits))
        if limits.is_stopped:
            break
        for each, one in zip(counts.values(), compared, strict=True):
            each.add(one)


def _size(group: Group) -> tuple[int, int, int]:
    return len(group.members) + group.partition_count, len(group.members), len(group.topics)


def run_releases(
    group: Group, library: Library, assignor: str, versions: Iterable[str], *, seconds: float
) -> Iterator[dict[str, object]]:
    """Run an assignor of several releases of a library on a group, the oldest release first.

    Yield a JSON record per release, with the result of the first run and the agreement with the
    previous release. If the results differ, the record has the known upstream changes.

    If the results of the assignor vary, each release runs several times. Then two releases differ
    only if they have no result in common (the same sorted loads, or the same kind of failure).
    """
    previous: tuple[str, list[StableResult]] | None = None
    for version in sorted(versions, key=version_key):
        name = f"{library.name}@{version}@{seconds:g}s:{assignor}"
        results = [run_until_stable(group, name) for _ in range(repetitions_of(name))]
        entry: dict[str, object] = {"version": version, "runs": len(results)}
        entry |= {"ending": str(results[0].ending), "detail": results[0].detail}
        assignment = results[0].assignment
        if assignment is not None:
            entry["loads"] = list(sorted_loads(group, assignment))
            entry["movement"] = movement(group, assignment)
        if previous is not None:
            change = _change(group, results, previous[1])
            entry["change"] = str(change)
            if change is not Agreement.IDENTICAL:
                known = library.changes_between(previous[0], version, assignor)
                entry["known_changes"] = list(known)
        yield {key: value for key, value in entry.items() if value is not None}
        previous = version, results


def _change(
    group: Group, results: Sequence[StableResult], previous: Sequence[StableResult]
) -> Agreement:
    """Determine the kind of agreement between the runs of two releases."""
    is_varying = len(results) > 1
    if is_varying and not _outcomes(group, results).isdisjoint(_outcomes(group, previous)):
        return Agreement.IDENTICAL
    result, other = results[0], previous[0]
    if result.assignment is None and result.ending is other.ending:
        return Agreement.IDENTICAL
    return agreement_of(group, result, other, is_repeatable=not is_varying)


def _outcomes(group: Group, results: Sequence[StableResult]) -> frozenset[tuple[int, ...] | Ending]:
    return frozenset(
        run.ending if run.assignment is None else sorted_loads(group, run.assignment)
        for run in results
    )
