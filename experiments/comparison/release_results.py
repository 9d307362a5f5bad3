"""Results of consecutive releases of a client library on one group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.comparison.library_agreement import Agreement, agreement_of, sorted_loads
from kassay.experiments.implementations.library_catalogue import (
    Library,
    repetitions_of,
    version_key,
)
from kassay.experiments.implementations.runner import Ending, StableResult, run_until_stable
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """Result of one release on a group.

    Parameters
    ----------
    result
        Result of the first run.
    runs
        Number of runs: several if the results of the assignor vary.
    change
        Agreement with the previous release, None for the first one.
    known
        Upstream changes between both releases.
    """

    version: str
    result: StableResult
    runs: int
    change: Agreement | None
    known: tuple[str, ...]

    @property
    def is_difference(self) -> bool:
        """Return whether the result differs from that of the previous release."""
        return self.change not in (None, Agreement.IDENTICAL)


def run_releases(
    group: Group, library: Library, assignor: str, versions: Iterable[str], *, seconds: float
) -> Iterator[ReleaseResult]:
    """Run an assignor of several releases of a library on a group, the oldest release first.

    If the results of the assignor vary, each release runs several times. Two releases then differ
    only if no loads of the one are loads of the other.
    """
    previous: tuple[str, list[StableResult]] | None = None
    for version in sorted(versions, key=version_key):
        name = f"{library.name}@{version}@{seconds:g}s:{assignor}"
        results = [run_until_stable(group, name) for _ in range(repetitions_of(name))]
        change: Agreement | None = None
        known: tuple[str, ...] = ()
        if previous is not None:
            change = _change(group, results, previous[1])
            known = library.changes_between(previous[0], version, assignor)
        yield ReleaseResult(
            version=version, result=results[0], runs=len(results), change=change, known=known
        )
        previous = version, results


def _change(
    group: Group, results: Sequence[StableResult], previous: Sequence[StableResult]
) -> Agreement:
    """Return the agreement of the runs of a release with those of the previous release."""
    is_varying = len(results) > 1
    if is_varying and not _outcomes(group, results).isdisjoint(_outcomes(group, previous)):
        return Agreement.IDENTICAL
    result, other = results[0], previous[0]
    if result.assignment is None and result.ending is other.ending:
        return Agreement.IDENTICAL
    return agreement_of(group, result, other, is_repeatable=not is_varying)


def _outcomes(group: Group, results: Sequence[StableResult]) -> frozenset[tuple[int, ...] | Ending]:
    """Return the sorted loads of the runs, and the endings of the runs without assignment."""
    return frozenset(
        run.ending if run.assignment is None else sorted_loads(group, run.assignment)
        for run in results
    )
