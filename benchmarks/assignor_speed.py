"""Speed of kassay's ports of assignors, compared with Kafka's Java classes and other ports."""

import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.java_classes import java_timings
from benchmarks.python_clients import PYTHON_CLIENTS
from benchmarks.timed_groups import after_one_left, equal_group, mixed_group
from benchmarks.timing import Timing, best_seconds
from kassay.reference.assignors import assign
from kassay.reference.model.group import Group

_MIXED_SIZES = ((50, 50, 20), (200, 200, 20))
_MILLION = (2000, 500, 2000)
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")
_BUDGET = 120.0
"""Wall-clock seconds after which no further call of kassay starts, per case."""


def mixed_sticky() -> Iterator[Timing]:
    """Time the sticky assignors on a group with mixed subscriptions, after a member left."""
    benchmark = "sticky, mixed"
    for members, topics, partitions in _MIXED_SIZES:
        fresh = mixed_group(members=members, topics=topics, partitions=partitions)
        group = after_one_left(fresh, assign(fresh, "sticky"))
        yield from _kassay_and_java(benchmark, group, "sticky")
        for name, prepare in PYTHON_CLIENTS.items():
            try:
                call = prepare(group)
            except ImportError as error:
                print(f"cannot time {name}: {error}", file=sys.stderr)
                continue
            yield Timing(
                benchmark=benchmark,
                case=str(group.id),
                implementation=name,
                seconds=best_seconds(call),
                note=_load_range(call()),
            )


def million_partitions() -> Iterator[Timing]:
    """Time assignors on a million partitions with equal subscriptions."""
    members, topics, partitions = _MILLION
    fresh = equal_group(members=members, topics=topics, partitions=partitions)
    left = after_one_left(fresh, assign(fresh, "sticky"))
    for group in (fresh, left):
        for assignor in _ASSIGNORS:
            yield from _kassay_and_java(f"{assignor}, a million", group, assignor, repetitions=3)


def _kassay_and_java(
    benchmark: str, group: Group, assignor: str, *, repetitions: int = 5
) -> Iterator[Timing]:
    copies = [replace(group) for _ in range(repetitions)]  # without cached values
    seconds = best_seconds(
        lambda: assign(copies.pop(), assignor), repetitions=repetitions, budget=_BUDGET
    )
    yield Timing(
        benchmark=benchmark,
        case=str(group.id),
        seconds=seconds,
        note=_load_range(assign(group, assignor).counts()),
    )
    yield from java_timings(benchmark, group, assignor, repetitions=repetitions)


def _load_range(loads: dict[str, int]) -> str:
    return f"loads {min(loads.values())} to {max(loads.values())}"
