"""Stops and restarts of Kafka Connect workers: measured times, and the simulated restart."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.experiments.kinds.connect_clusters import EventCost, measure_cluster
from kassay.reference.documents.kind_documents import KindDocument
from tests.conformance.kind_site import CONNECTORS, MAX_DELAY, KindSite

Tasks = dict[str, dict[int, str]]
"""Worker of each task by connector."""
DELAY = "scheduled_rebalance_max_delay_ms"
_SECONDS = 120.0


@dataclass(frozen=True)
class StoppedWorker:
    """Worker of a Connect cluster that has stopped, with its tasks.

    The worker has stopped its tasks, and then left the group, between ``since`` and ``until``.
    """

    worker: str
    tasks: tuple[tuple[str, int], ...]
    since: float
    until: float

    @classmethod
    def stop_last_worker(cls, site: KindSite, before: Tasks) -> StoppedWorker:
        """Stop the worker that was started last."""
        address = site.connect.urls[-1].removeprefix("http://")
        tasks = tuple(one for one in task_ids() if before[one[0]][one[1]] == address)
        assert tasks
        process = site.connect.processes.pop()
        since = time.monotonic()
        process.terminate()
        process.wait(20)
        return cls(address, tasks, since, time.monotonic())

    def await_stopped_seconds(self, site: KindSite) -> list[tuple[float, float]]:
        """Wait until the tasks run again; return the bounds of the stopped time of each task."""
        idle = dict.fromkeys(self.tasks, self.until)
        bounds: dict[tuple[str, int], tuple[float, float]] = {}
        while len(bounds) < len(self.tasks):
            asked = time.monotonic()
            assert asked < self.until + MAX_DELAY / 1000 + _SECONDS
            with suppress(OSError):  # the worker answers no request during a rebalance
                found = {name: site.connect.workers(name) for name in CONNECTORS}
                for name, number in self.tasks:
                    if (name, number) in bounds:
                        continue
                    # The status of a stopped worker can be late.
                    if found[name].get(number, self.worker) == self.worker:
                        idle[name, number] = asked
                    else:
                        again = time.monotonic()
                        shortest = idle[name, number] - self.until
                        bounds[name, number] = (shortest, again - self.since)
            time.sleep(0.2)
        return [*bounds.values()]


def simulate_restart(
    document: KindDocument, before: Tasks, worker: str, downtime: int
) -> tuple[Mapping[str, Any], EventCost]:
    """Return the simulated state after the restart of a worker that is not the leader."""
    content: Any = document.content
    others = sorted({*by_worker(before)} - {worker})
    steps = [
        *content["steps"],
        _step(content, others, until_stable=False),
        _step(content, [*others, "restarted"], wait_ms=downtime),
    ]
    delayed = {**content, DELAY: MAX_DELAY, "steps": steps}
    restarted = replace(document, content=delayed)
    answer: Any = run_on_document(restarted, "connect-incremental").answer
    return answer["steps"][-1]["state"], measure_cluster(restarted, answer)


def _step(content: Any, workers: list[str], **keys: object) -> dict[str, object]:
    return {"workers": workers, "connectors": content["steps"][0]["connectors"], **keys}


def task_ids() -> list[tuple[str, int]]:
    return [(name, number) for name, count in CONNECTORS.items() for number in range(count)]


def by_worker(tasks: Tasks) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, workers in tasks.items():
        for number, worker in workers.items():
            found.setdefault(worker, []).append(f"{name}-{number}")
    return {worker: sorted(listed) for worker, listed in found.items()}
