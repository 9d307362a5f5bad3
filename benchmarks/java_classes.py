"""Times of Kafka's own assignor classes in a warmed JVM.

The classes are driven by ``tests.conformance``, so this works in a checkout of the project
that has a JDK and Maven, and says so where it does not.
"""

import importlib
from typing import Any

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group

HEAP_MIB = 6144


class UpstreamUnavailableError(RuntimeError):
    """The real classes cannot be driven here."""


def java_seconds(
    group: Group, assignor: str, *, repetitions: int = 5, limit: float = 120.0
) -> float | None:
    """Best time of the real class on a group, its inputs prepared beforehand and untimed.

    The JVM is warmed on the same group first: by up to 30 calls, none begun after 5 seconds.

    Parameters
    ----------
    group
        The rebalance.
    assignor
        ``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``, ``uniform`` or
        ``server-range``.
    repetitions
        Calls that are timed.
    limit
        Wall-clock seconds after which a call is stopped.

    Returns
    -------
    float or None
        Seconds, or None where a call reached the limit.

    Raises
    ------
    UpstreamUnavailableError
        If there is no checkout, JDK or Maven to drive the classes with.
    """
    times = _upstream().upstream_seconds(group, assignor, repetitions=repetitions, limit=limit)
    return None if None in times else min(times)


def java_assign(group: Group, assignor: str, *, limit: float = 120.0) -> Assignment | None:
    """Return what the real class assigns, or None where it throws or never returns.

    Raises
    ------
    UpstreamUnavailableError
        If there is no checkout, JDK or Maven to drive the classes with.
    """
    upstream = _upstream()
    answer = upstream.upstream_assign(group, assignor, limit=limit)
    return None if answer.lists is None else Assignment(answer.lists)


def _upstream() -> Any:
    try:
        importlib.import_module("tests.conformance.jvm").driver(HEAP_MIB)
        return importlib.import_module("tests.conformance.upstream")
    except (ImportError, RuntimeError) as error:
        raise UpstreamUnavailableError(f"cannot drive Kafka's classes: {error}") from error
