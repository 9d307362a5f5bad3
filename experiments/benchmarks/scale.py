"""The proven optimum against Java's own sticky assignor, which proves nothing."""

import resource
import sys
import time
from collections.abc import Iterator

from experiments.benchmarks.cases import after_one_left, mixed_group
from experiments.benchmarks.timing import Timing
from experiments.benchmarks.upstream import UpstreamUnavailableError, java_seconds
from reference.group import Group
from solver import Solution, solve

_SIZES = ((100, 100, 10), (500, 500, 100), (1000, 500, 2000))
_LARGEST = (10_000, 1_000, 10)
_LIMIT = 120.0


def optimum(ours: str, java: str) -> Iterator[Timing]:
    """Time mixed subscriptions, fresh and after a member left, from group to proof."""
    for members, topics, partitions in _SIZES:
        fresh = mixed_group(members=members, topics=topics, partitions=partitions)
        _, solution = _solved(fresh)
        if solution.assignment is None:
            raise RuntimeError(f"nothing was found for {fresh.id!r}")
        for group in (fresh, after_one_left(fresh, solution.assignment)):
            yield _timing(group, ours)
            yield from _java(group, java)
    members, topics, partitions = _LARGEST
    yield _timing(mixed_group(members=members, topics=topics, partitions=partitions), ours)


def _timing(group: Group, contestant: str) -> Timing:
    seconds, solution = min((_solved(group) for _ in range(3)), key=lambda timed: timed[0])
    parts = ", ".join(f"{name} {value / seconds:.0%}" for name, value in solution.timings.items())
    return Timing(
        benchmark="optimum, mixed",
        case=str(group.id),
        contestant=contestant,
        seconds=seconds,
        note=f"{solution.status}, {solution.movement.value} moves; {parts}; peak {_peak()} MB",
    )


def _peak() -> int:
    """Return the most memory that this process has had resident, Java's not included, in MB."""
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(kibibytes * 1024 / 1e6)


def _solved(group: Group) -> tuple[float, Solution]:
    start = time.perf_counter()
    solution = solve(group)
    return time.perf_counter() - start, solution


def _java(group: Group, contestant: str) -> Iterator[Timing]:
    try:
        seconds = java_seconds(group, "sticky", repetitions=1, limit=_LIMIT)
    except UpstreamUnavailableError as error:
        sys.stderr.write(f"no times of Java: {error}\n")
        return
    yield Timing(
        benchmark="optimum, mixed",
        case=str(group.id),
        contestant=contestant,
        seconds=seconds,
        note="" if seconds is not None else f"not within {_LIMIT:.0f} s",
    )
