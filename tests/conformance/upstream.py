"""Kafka's own assignor classes, called with a `Group`.

`upstream_assign` answers what the real class does; `upstream_seconds` how long it takes.
Both prepare the call as Kafka would (see ``Driver.java``), with a new assignor object each
time, so that nothing is carried from one call to the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group
from tests.conformance.jvm import driver

Lists = dict[str, list[list[Any]]]
"""Each member's partitions as [topic, partition] pairs, in the order of the real list."""

CLIENT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
BROKER_ASSIGNORS = ("uniform", "server-range")
NAMES = CLIENT_ASSIGNORS + BROKER_ASSIGNORS


@dataclass(frozen=True, slots=True)
class Upstream:
    """What the real class did.

    Parameters
    ----------
    lists
        Its assignment, every member of the group with a list; None if there is none.
    failed
        Simple name of the exception's class, if it threw.
    detail
        The exception's message.
    terminated
        False if it did not return within the limit.
    """

    lists: Lists | None = None
    failed: str | None = None
    detail: str | None = None
    terminated: bool = True

    @property
    def kind(self) -> Literal["assigned", "failed", "endless"]:
        """Which of the three it is."""
        if not self.terminated:
            return "endless"
        return "assigned" if self.failed is None else "failed"


def upstream_assign(
    group: Group, name: str, *, limit: float = 30.0, user_data: Mapping[str, str] | None = None
) -> Upstream:
    """Run the real class once.

    Parameters
    ----------
    group
        The rebalance.
    name
        One of `NAMES`.
    limit
        Seconds until it counts as not terminating and is stopped.
    user_data
        By member, user data in base64 to send instead of what follows from the group.
    """
    text = driver().assign(_text(group, user_data or {}), name, round(limit * 1000))
    answer = json.loads(str(text))
    return Upstream(
        lists=answer.get("assignment"),
        failed=answer.get("failed"),
        detail=answer.get("detail"),
        terminated=answer.get("terminated", True),
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
    """Time several calls of the real class, each on inputs prepared anew and untimed.

    Parameters
    ----------
    group
        The rebalance.
    name
        One of `NAMES`.
    repetitions
        Number of calls that are timed.
    warm_up
        Seconds of untimed calls before them, 30 at most, so that the JVM has compiled
        what it runs often.
    limit
        Seconds until a call is stopped; it and those after it are then not timed.
    heap_mib
        Heap of the JVM in MiB, if this is the first use of it.

    Returns
    -------
    tuple
        Seconds of each call, and None for a call that reached the limit, the last one.
    """
    nanos = driver(heap_mib).time(
        _text(group), name, repetitions, round(warm_up * 1000), round(limit * 1000)
    )
    return tuple(None if nano < 0 else nano / 1e9 for nano in nanos)


def _text(group: Group, user_data: Mapping[str, str] = MappingProxyType({})) -> str:
    document: dict[str, Any] = group_document(group)
    for member in document["members"]:
        if member["id"] in user_data:
            member["raw_user_data"] = user_data[member["id"]]
    return json.dumps(document)
