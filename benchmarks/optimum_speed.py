"""CPU time until the optimum is proven, compared with Kafka's sticky assignor in Java."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.java_classes import java_timings
from benchmarks.memory import peak_memory
from benchmarks.timed_groups import after_one_left, mixed_group
from benchmarks.timing import Timing, run_alone
from kassay import Solution, solve
from kassay.reference.model.group import Group

_BENCHMARK = "optimum, mixed"


class GroupSize(NamedTuple):
    """Size of a group: number of members, topics, and partitions per topic."""

    members: int
    topics: int
    partitions: int


_SIZES = (GroupSize(100, 100, 10), GroupSize(500, 500, 100), GroupSize(1000, 500, 2000))
_LARGEST = GroupSize(10_000, 1_000, 10)


def optimum() -> Iterator[Timing]:
    """Time the solver on groups with mixed subscriptions, before and after a member leaves.

    Each group is solved in a process of its own, so that its peak memory is known.
    """
    for size in _SIZES:
        for one_left in (False, True):
            yield run_alone(_timing, size, one_left)
            group = _group(size, one_left=one_left)
            yield from java_timings(_BENCHMARK, group, "sticky", repetitions=1)
    yield run_alone(_timing, _LARGEST, False)


def _group(size: GroupSize, *, one_left: bool) -> Group:
    fresh = mixed_group(**size._asdict())
    if not one_left:
        return fresh
    assignment = solve(fresh).assignment
    if assignment is None:
        raise RuntimeError(f"the solver found no assignment of group {fresh.id!r}")
    return after_one_left(fresh, assignment)


def _timing(size: GroupSize, one_left: bool) -> Timing:
    group = _group(size, one_left=one_left)
    seconds, solution = min((_solve(group) for _ in range(3)), key=lambda timed: timed[0])
    stages = ", ".join(f"{name} {value / seconds:.0%}" for name, value in solution.timings.items())
    moves = solution.movement.value
    return Timing(
        benchmark=_BENCHMARK,
        case=str(group.id),
        seconds=seconds,
        note=f"{solution.status}, {moves} moves; {stages}; peak {peak_memory()} MB",
    )


def _solve(group: Group) -> tuple[float, Solution]:
    start = time.process_time()
    solution = solve(group)
    return time.process_time() - start, solution
