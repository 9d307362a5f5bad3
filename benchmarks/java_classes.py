"""CPU times of Kafka's Java assignor classes in a warmed-up JVM.

``tests.conformance`` runs the classes. It needs a checkout of the project, a JDK and Maven.
"""

import importlib
import sys
from collections.abc import Iterator

from benchmarks.timing import Timing
from kassay.reference.model.group import Group

JAVA = "Java, warmed up"
_HEAP_MIB = 6144


def java_timings(
    benchmark: str, group: Group, assignor: str, *, repetitions: int = 5, limit: float = 120.0
) -> Iterator[Timing]:
    """Time Kafka's Java class of an assignor; print a message if Java cannot run it.

    The JVM is warmed up on the same group: at most 30 calls, none started after 5 seconds.
    Input is prepared outside the timed calls. The times are CPU times of the calling thread,
    without the garbage collector.

    Parameters
    ----------
    benchmark
        Name of the benchmark.
    group
        The rebalance.
    assignor
        ``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``, ``uniform`` or
        ``server-range``.
    repetitions
        Number of timed calls.
    limit
        Wall-clock seconds per call.
    """
    try:
        importlib.import_module("tests.conformance.jvm").driver(_HEAP_MIB)
        upstream = importlib.import_module("tests.conformance.upstream")
    except (ImportError, RuntimeError) as error:
        print(f"cannot time Kafka's Java classes: {error}", file=sys.stderr)
        return
    times = upstream.upstream_seconds(group, assignor, repetitions=repetitions, limit=limit)
    finished = None not in times
    yield Timing(
        benchmark=benchmark,
        case=str(group.id),
        implementation=JAVA,
        seconds=min(times) if finished else None,
        note="" if finished else f"above {limit:.0f} s",
    )
