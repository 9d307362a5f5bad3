"""The proven optimum against Java's own sticky assignor, which proves nothing."""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.java_classes import UpstreamUnavailableError, java_seconds
from benchmarks.timed_groups import after_one_left, mixed_group
from benchmarks.timing import Timing, alone
from kassay.reference.model.group import Group
from kassay.solver import Solution, solve

GroupShape = tuple[int, int, int]
"""Members, topics, partitions of each."""

_SIZES: tuple[GroupShape, ...] = ((100, 100, 10), (500, 500, 100), (1000, 500, 2000))
_LARGEST: GroupShape = (10_000, 1_000, 10)
_LIMIT = 120.0
_STATUS = Path("/proc/self/status")
"""Where Linux tells of a process; without it, as on macOS, getrusage counts in bytes."""


def optimum(ours: str, java: str) -> Iterator[Timing]:
    """Time mixed subscriptions, fresh and after a member left, from group to proof.

    Each group is made and solved in a process of its own, whose memory is then told of it alone.
    """
    for size in _SIZES:
        for one_left in (False, True):
            yield alone(_timing, size, one_left, ours)
            yield from _java(_group(size, one_left=one_left), java)
    yield alone(_timing, _LARGEST, False, ours)


def _group(size: GroupShape, *, one_left: bool) -> Group:
    members, topics, partitions = size
    fresh = mixed_group(members=members, topics=topics, partitions=partitions)
    if not one_left:
        return fresh
    _, solution = _solved(fresh)
    if solution.assignment is None:
        raise RuntimeError(f"nothing was found for {fresh.id!r}")
    return after_one_left(fresh, solution.assignment)


def _timing(size: GroupShape, one_left: bool, contestant: str) -> Timing:
    group = _group(size, one_left=one_left)
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
    """Return the most memory that this process has had resident, in MB."""
    if not _STATUS.exists():
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
    # By the kernel's book: getrusage begins with what the parent had when it made this process.
    peak = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return round(int(peak.split()[1]) * 1024 / 1e6)


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
