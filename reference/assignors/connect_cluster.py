"""Answers for documents of Connect clusters: a sequence of events with a simulated clock.

A rebalance takes no time. After a revocation and at the end of a delay, the workers rebalance
again. A step first waits, then applies its event, and ends with the first rebalance without
revocation, or without revocation and delay.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kassay.reference.assignors.connect import (
    ConnectorsAndTasks,
    IncrementalCooperativeAssignor,
    Task,
    assign_in_a_circle,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.java_collections import set_capacity, string_order, utf16_key
from kassay.reference.model.assignor_result import UpstreamError

DEFAULT_MAX_DELAY = 300_000
"""Default of ``scheduled.rebalance.max.delay.ms``."""
_MAX_REBALANCES = 1000


def assign_eagerly(document: KindDocument) -> dict[str, object]:
    """Return the state after each step with the eager assignor."""
    steps: Any = document.content["steps"]
    states = (assign_in_a_circle(step["workers"], step["connectors"]) for step in steps)
    return {"steps": [{"state": _documents(state)} for state in states]}


def assign_incrementally(document: KindDocument) -> dict[str, object]:
    """Return all rebalances, the state and the downtime of each step.

    Raise UpstreamError if a step has no worker.
    """
    maximum: Any = document.content.get("scheduled_rebalance_max_delay_ms", DEFAULT_MAX_DELAY)
    steps: Any = document.content["steps"]
    return {"steps": _Cluster(maximum).run(steps)}


class _Cluster:
    """Workers with their connectors and tasks, and a simulated clock."""

    def __init__(self, max_delay: int) -> None:
        self._max_delay = max_delay
        self._leader: IncrementalCooperativeAssignor | None = None
        self._now = 0
        self._delay = 0
        self._configured = ConnectorsAndTasks()
        self._workers: dict[str, ConnectorsAndTasks] = {}
        self._stopped = {"connector_downtime_ms": 0, "task_downtime_ms": 0}
        self._rounds: list[dict[str, object]] = []

    def run(self, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
        states: list[dict[str, object]] = []
        for step in steps:
            self._rounds = []
            self._advance(self._now + step.get("wait_ms", 0))
            leader = self._apply(step)
            self._rebalance(leader)
            while self._delay > 0 and step.get("until_stable", True):
                self._pass(self._delay)
                self._rebalance(leader)
            states.append(
                {
                    "at_ms": self._now,
                    "rounds": self._rounds,
                    "stable": self._delay == 0,
                    "state": _documents(self._workers),
                    **self._stopped,
                }
            )
        return states

    def _apply(self, step: Mapping[str, Any]) -> IncrementalCooperativeAssignor:
        self._configured = ConnectorsAndTasks.configured(step["connectors"])
        if self._leader is None or step.get("new_leader", False):
            self._leader = IncrementalCooperativeAssignor(self._max_delay)
        running = step.get("running", {})
        self._workers = {
            worker: _parse(running[worker])
            if worker in running
            else self._workers.get(worker, ConnectorsAndTasks())
            for worker in step["workers"]
        }
        return self._leader

    def _advance(self, until: int) -> None:
        """Advance the clock, and rebalance at the end of each earlier delay."""
        while self._leader is not None and self._delay > 0 and self._now + self._delay < until:
            self._pass(self._delay)
            self._rebalance(self._leader)
        self._delay = max(0, self._delay - (until - self._now))
        self._pass(until - self._now)

    def _pass(self, milliseconds: int) -> None:
        """Count the time in which configured connectors and tasks do not run."""
        self._now += milliseconds
        stopped = self._configured.without(*self._workers.values())
        self._stopped["connector_downtime_ms"] += milliseconds * len(stopped.connectors)
        self._stopped["task_downtime_ms"] += milliseconds * len(stopped.tasks)

    def _rebalance(self, leader: IncrementalCooperativeAssignor) -> None:
        """Rebalance until a rebalance revokes nothing."""
        for _ in range(_MAX_REBALANCES):
            if not self._rebalance_once(leader):
                return
        raise UpstreamError("IllegalStateException", "the workers rebalance without end")

    def _rebalance_once(self, leader: IncrementalCooperativeAssignor) -> bool:
        sent = {worker: _transmitted(own) for worker, own in self._workers.items()}
        result = leader.perform_task_assignment(self._configured, sent, now=self._now)
        self._delay = leader.delay
        received = {worker: _transmitted(own) for worker, own in result.assigned.items()}
        revoked = {worker: own for worker, own in result.revoked.items() if own}
        for worker, own in self._workers.items():
            # New entries precede kept ones.
            kept = own.without(result.revoked[worker])
            self._workers[worker] = received[worker].copy()
            self._workers[worker].add(kept)
        self._rounds.append(
            {
                "at_ms": self._now,
                "delay_ms": self._delay,
                "assigned": _documents({w: own for w, own in received.items() if own}),
                "revoked": _documents(revoked),
            }
        )
        return bool(revoked)


def _transmitted(own: ConnectorsAndTasks) -> ConnectorsAndTasks:
    """Return the entries after encoding and decoding, which groups the tasks by connector."""
    connectors = string_order(own.connectors, capacity=set_capacity(len(own.connectors)))
    numbers: dict[str, list[int]] = {connector: [] for connector in connectors}
    for connector, number in own.tasks:
        numbers.setdefault(connector, []).append(number)
    tasks = ((connector, number) for connector, listed in numbers.items() for number in listed)
    return ConnectorsAndTasks.of(connectors, tasks)


def _parse(running: Mapping[str, Iterable[str]]) -> ConnectorsAndTasks:
    tasks: list[Task] = []
    for text in running.get("tasks", ()):
        connector, _, number = text.rpartition("-")
        tasks.append((connector, int(number)))
    return ConnectorsAndTasks.of(running.get("connectors", ()), tasks)


def _documents(workers: Mapping[str, ConnectorsAndTasks]) -> dict[str, object]:
    return {worker: workers[worker].document() for worker in sorted(workers, key=utf16_key)}
