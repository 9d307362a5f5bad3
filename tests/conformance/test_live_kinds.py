"""Imports and forecasts of running share groups, Streams applications and Connect workers.

The imports are compared with the tasks that the processes report, and the forecasts with the tasks
after a worker has left, another one has joined, and a Streams process has joined or restarted.

The time without a worker of a Connect task is measured between two polls of its status. The
measured time is at least the forecast. It exceeds the forecast by at most the tolerance: a
heartbeat for each of the two rebalances, and the measured time that a worker takes to start.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kassay.experiments.kinds.connect_clusters import forecast_connect_cluster
from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.kinds.streams_forecast import (
    join_process,
    restart_process,
    run_application_until_stable,
)
from kassay.experiments.sources.kind_captures import read_connect_cluster
from kassay.reference.documents.kind_documents import KindDocument
from kassay.solver.limits import SearchLimits
from tests.conformance.connect_restarts import (
    DELAY,
    StoppedWorker,
    Tasks,
    by_worker,
    simulate_restart,
    task_ids,
)
from tests.conformance.kind_processes import StreamsApplication, running_streams
from tests.conformance.kind_site import (
    APPLICATION,
    MAX_DELAY,
    SHARE_GROUP,
    SHARED,
    STREAMS_GROUP,
    KindSite,
    await_stable,
    running_kinds,
    running_tasks,
    tasks_of,
    tasks_on_workers,
)

pytestmark = pytest.mark.kafka
_SECONDS = 120.0
_HEARTBEAT = 3.0
"""Default of Connect's ``heartbeat.interval.ms``, in seconds: a worker learns of a rebalance."""
_SHORT_SESSION = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "1000"}
"""A process that stops sends no request to leave the group."""


@pytest.fixture(scope="module")
def site() -> Iterator[KindSite]:
    with running_kinds() as running:
        yield running


def reported(applications: list[StreamsApplication]) -> set[frozenset[str]]:
    """Return the active tasks of each process, as the processes report them."""
    none: frozenset[str] = frozenset()
    return {none.union(*one.tasks().values()) for one in applications}


def imported(document: KindDocument) -> set[frozenset[str]]:
    """Return the active tasks of each process of a document of kind streams."""
    return {frozenset(one["active"]) for one in _processes(document)}


def test_a_share_group_has_the_subscriptions_of_its_consumers(site: KindSite) -> None:
    content: Any = site.document(SHARE_GROUP).content
    assert content["topics"] == {"lowrate": 6, "orders": 6}
    topics = sorted(member["topics"] for member in content["members"])
    assert topics == sorted(sorted(one) for one in SHARED.values())
    owned = {tuple(tp) for member in content["members"] for tp in member["owned"]}
    assert owned == {(topic, number) for topic in content["topics"] for number in range(6)}


def test_a_classic_application_has_the_tasks_of_its_processes(site: KindSite) -> None:
    document = site.document(APPLICATION)
    assert {one["threads"] for one in _processes(document)} == {2}
    assert imported(document) == reported(list(site.applications))
    content: Any = document.content
    # Threads that have not reported state yet do not show which subtopology has it.
    assert content["subtopologies"]["0"]["stateful"]


def test_a_streams_group_has_the_tasks_of_its_processes(site: KindSite) -> None:
    content: Any = site.document(STREAMS_GROUP).content
    processes: dict[str, set[str]] = {}
    for member in content["members"]:
        tasks = {f"{name}_{n}" for name, numbers in member["active"].items() for n in numbers}
        processes.setdefault(member["process"], set()).update(tasks)
    assert set(map(frozenset, processes.values())) == reported(list(site.streams_group))
    assert content["subtopologies"] == {
        "0": {"partitions": 6, "stateful": True},
        "1": {"partitions": 6, "stateful": False},
    }


def test_a_forecast_has_the_tasks_after_a_process_has_joined(site: KindSite) -> None:
    before = site.document(APPLICATION)
    folder = site.directory / "joined"
    folder.mkdir()
    with running_streams(site.bootstrap, APPLICATION, "classic", folder) as joined:
        applications = [*site.applications, joined]
        await_stable(partial(tasks_of, applications))
        after = site.document(APPLICATION)
        known = {one["id"] for one in _processes(before)}
        [new] = [one["id"] for one in _processes(after) if one["id"] not in known]
        event = run_application_until_stable(
            join_process(before, new, threads=2), "streams-high-availability"
        )
        assert imported(event.application) == imported(after) == reported(applications)


def test_a_forecast_has_the_tasks_after_a_process_has_restarted(site: KindSite) -> None:
    folder = site.directory / "restarted"
    folder.mkdir()
    start = partial(running_streams, site.bootstrap, APPLICATION, "classic", folder)
    with start(settings=_SHORT_SESSION) as first:
        await_stable(partial(_settled_tasks, site, [*site.applications, first]))
        before = site.document(APPLICATION)
        [own] = reported([first])
        [id] = [one["id"] for one in _processes(before) if frozenset(one["active"]) == own]
    with start(settings=_SHORT_SESSION) as again:
        applications = [*site.applications, again]
        await_stable(partial(_settled_tasks, site, applications))
        after = site.document(APPLICATION)
        event = run_application_until_stable(
            restart_process(before, id), "streams-high-availability"
        )
        assert id in {one["id"] for one in _processes(after)}
        assert imported(event.application) == imported(after) == reported(applications)
        assert event.state_moves == 0


def test_a_forecast_has_the_stopped_time_of_a_connect_worker_that_is_back_in_time(
    site: KindSite,
) -> None:
    document = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    before = _await(site, 3)
    stop = StoppedWorker.stop_last_worker(site, before)
    started = time.monotonic()
    site.connect.processes.append(site.connect.start())
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(site.connect.await_answer)
        stopped_seconds = stop.await_stopped_seconds(site)
        answered = answer.result()
    after = _await(site, 3, without=by_worker(before).keys())
    downtime = round(1000 * (answered - stop.since))
    longest_ms = _forecast(document, downtime)["restart"]["longest_stop_ms"]
    tolerance = 2 * _HEARTBEAT + answered - started
    for shortest, longest in stopped_seconds:
        assert shortest - tolerance <= longest_ms / 1000 <= longest
    state, event = simulate_restart(document, before, stop.worker, downtime)
    assert event.stopped_ms == len(stop.tasks) * longest_ms
    assert _loads(after) == sorted(len(own["tasks"]) for own in state.values())
    # All of these numbers are equal unless the worker needs more time than the delay to start.
    assert len(stop.tasks) <= _changed(before, after) <= event.task_starts


def test_forecasts_equal_the_rebalances_of_connect(site: KindSite) -> None:
    document = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    content: Any = document.content
    running = content["steps"][0]["running"]
    before = running_tasks(site.connect)
    assert {w: sorted(one["tasks"]) for w, one in running.items()} == by_worker(before)
    scale_out = _forecast(document, 0)["scale_out"]
    started = time.monotonic()
    site.connect.processes.append(site.connect.start())
    tolerance = 2 * _HEARTBEAT + site.connect.await_answer() - started
    joined = _await(site, 4)
    assert _loads(joined) == [1, 2, 2, 2]
    assert _changed(before, joined) == scale_out["task_starts"]
    four = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    stop = StoppedWorker.stop_last_worker(site, joined)
    # The worker comes back after the delay, when its tasks run on other workers.
    stopped_seconds = stop.await_stopped_seconds(site)
    without = _await(site, 3)
    assert _loads(without) == [2, 2, 3]
    site.connect.processes.append(site.connect.start())
    downtime = round(1000 * (site.connect.await_answer() - stop.since))
    expected = _forecast(four, downtime)
    stopped_ms = expected["restart"]["longest_stop_ms"]
    assert expected["loss"]["longest_stop_ms"] == stopped_ms
    for shortest, longest in stopped_seconds:
        assert shortest - tolerance <= stopped_ms / 1000 <= longest
    after = _await(site, 4, without=by_worker(joined).keys())
    state, event = simulate_restart(four, joined, stop.worker, downtime)
    assert _loads(after) == sorted(len(own["tasks"]) for own in state.values())
    assert len(stop.tasks) + _changed(without, after) == event.task_starts


def _forecast(document: KindDocument, downtime: int) -> Mapping[str, Any]:
    """Return the forecast of events with the delay of the cluster."""
    delayed = replace(document, content={**document.content, DELAY: MAX_DELAY})
    request = ForecastRequest(
        limits=SearchLimits(),
        downtime_ms=downtime,
        pause_ms=1,
        changes={"scheduled.rebalance.max.delay.ms": [str(MAX_DELAY)]},
    )
    found: Mapping[str, Any] = forecast_connect_cluster(delayed, request).record["settings"][0]
    return found


def _settled_tasks(site: KindSite, applications: list[StreamsApplication]) -> list[object]:
    """Return the tasks if the group has two threads per process; else, an empty list.

    A group that rebalances has no document.
    """
    document = site.imported()[APPLICATION].document
    threads = [] if document is None else [one["threads"] for one in _processes(document)]
    return [*tasks_of(applications)] if threads == [2] * len(applications) else []


def _processes(document: KindDocument) -> list[dict[str, Any]]:
    processes: Any = document.content["processes"]
    return list(processes)


def _changed(before: Tasks, after: Tasks) -> int:
    """Return the number of tasks on another worker."""
    return sum(after[name][n] != before[name][n] for name, n in task_ids())


def _loads(tasks: Tasks) -> list[int]:
    return sorted(map(len, by_worker(tasks).values()))


def _await(
    site: KindSite, workers: int, *, without: Collection[str] = (), seconds: float = 5.0
) -> Tasks:
    """Wait until all tasks run on a number of workers, and do not change for some seconds.

    The workers must not be ``without``: the status of a stopped worker can be late.
    """

    def state() -> Tasks:
        tasks = tasks_on_workers(site.connect, workers)
        return tasks if by_worker(tasks).keys() != without else {}

    await_stable(state, seconds, within=_SECONDS)
    return state()
