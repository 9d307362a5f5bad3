"""Kafka's assignor classes, called with a `Group`.

`upstream_assign` returns the result, `upstream_seconds` the time. Both prepare the call like
Kafka (see ``Driver.java``), with a new assignor object per call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group
from tests.conformance.jvm import driver

Lists = dict[str, list[list[Any]]]
"""Partitions per member as [topic, partition] pairs, in the order of Kafka's list."""

CLIENT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
BROKER_ASSIGNORS = ("uniform", "server-range")
NAMES = CLIENT_ASSIGNORS + BROKER_ASSIGNORS


@dataclass(frozen=True, slots=True)
class UpstreamResult:
    """Result of Kafka's class.

    ``failed`` is the simple name of the exception's class, ``detail`` its message.
    ``terminated`` is False after the time limit.
    """

    lists: Lists | None = None
    failed: str | None = None
    detail: str | None = None
    terminated: bool = True


def upstream_assign(group: Group, name: str, *, limit: float = 30.0) -> UpstreamResult:
    """Run Kafka's class once.

    Parameters
    ----------
    name
        One of `NAMES`.
    limit
        Time limit in seconds, after which the result is non-termination.
    """
    text = driver().assign(_text(group), name, round(limit * 1000))
    result = json.loads(str(text))
    return UpstreamResult(
        lists=result.get("assignment"),
        failed=result.get("failed"),
        detail=result.get("detail"),
        terminated=result.get("terminated", True),
    )


def upstream_seconds(
    group: Group,
    name: str,
    *,
    repetitions: int = 1,
    warm_up: float = 5.0,
    limit: float = 120.0,
    heap_mib: int = 4096,
) -> tuple[float | None, ...]:
    """Measure calls of Kafka's class in CPU seconds, without preparation and garbage collector.

    Parameters
    ----------
    warm_up
        Seconds of untimed calls before the measurement, at most 30 calls.
    limit
        Time limit in seconds per call. A call that reaches it is None in the result and ends
        the measurement.
    heap_mib
        Heap limit in MiB, if this call starts the JVM.
    """
    nanos = driver(heap_mib).time(
        _text(group), name, repetitions, round(warm_up * 1000), round(limit * 1000)
    )
    return tuple(None if nano < 0 else nano / 1e9 for nano in nanos)


def _text(group: Group) -> str:
    return json.dumps(group_document(group))
