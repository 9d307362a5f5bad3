"""Our ports of Kafka's assignors against Java's own classes and other Python ports."""

import sys
from collections.abc import Iterator

from benchmarks import python_clients as rivals
from benchmarks.java_classes import UpstreamUnavailableError, java_seconds
from benchmarks.timed_groups import after_one_left, equal_group, mixed_group
from benchmarks.timing import Timing, best_seconds
from kassay.reference.assignors import assign
from kassay.reference.model.group import Group

OURS = "kassay"
JAVA = "Java, warmed"
_MIXED_SIZES = ((50, 50, 20), (200, 200, 20))


def mixed_sticky() -> Iterator[Timing]:
    """Time sticky on mixed subscriptions, one member leaving, by all who have it."""
    for members, topics, partitions in _MIXED_SIZES:
        fresh = mixed_group(members=members, topics=topics, partitions=partitions)
        group = after_one_left(fresh, assign(fresh, "sticky"))
        yield from _ours_and_java("sticky, mixed", group, "sticky")
        for name, prepare in rivals.RIVALS.items():
            call = prepare(group)
            loads = sorted(call().values())
            yield Timing(
                benchmark="sticky, mixed",
                case=str(group.id),
                contestant=name,
                seconds=best_seconds(call),
                note=f"loads {loads[0]} to {loads[-1]}",
            )


def a_million() -> Iterator[Timing]:
    """Time a million partitions, equal subscriptions: fresh, and after a member left."""
    fresh = equal_group(members=2000, topics=500, partitions=2000)
    for assignor in ("sticky", "cooperative-sticky", "uniform"):
        yield from _ours_and_java(f"{assignor}, a million", fresh, assignor, repetitions=3)
    left = after_one_left(fresh, assign(fresh, "sticky"))
    for assignor in ("sticky", "cooperative-sticky"):
        yield from _ours_and_java(f"{assignor}, a million", left, assignor, repetitions=3)


def _ours_and_java(
    benchmark: str, group: Group, assignor: str, *, repetitions: int = 5
) -> Iterator[Timing]:
    loads = sorted(assign(group, assignor).loads().values())
    seconds = best_seconds(lambda: assign(group, assignor), repetitions=repetitions)
    note = f"loads {loads[0]} to {loads[-1]}"
    case = str(group.id)
    yield Timing(benchmark=benchmark, case=case, contestant=OURS, seconds=seconds, note=note)
    try:
        real = java_seconds(group, assignor, repetitions=repetitions)
    except UpstreamUnavailableError as error:
        sys.stderr.write(f"no times of Java: {error}\n")
        return
    yield Timing(benchmark=benchmark, case=case, contestant=JAVA, seconds=real)
