"""Imports and forecasts of running share groups, Streams applications and Connect workers.

The imports are compared with the tasks that the processes report, and the forecasts with the tasks
after a worker has left, another one has joined, and a Streams process has joined or restarted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kassay.experiments.implementations.runner import run_on_document
from kassay.experiments.implementations.streams_and_connect_events import (
    run_application_until_stable,
)
from kassay.experiments.planning.families.connect_forecast import forecast_connect
from kassay.experiments.sources.families.connect_rest import read_connect_cluster
from kassay.reference.documents.application_events import join_process, restart_process
from kassay.reference.documents.family_documents import FamilyDocument
from tests.conformance.family_processes import StreamsApplication, running_streams
from tests.conformance.family_site import (
    APPLICATION,
    CONNECTORS,
    MAX_DELAY,
    SHARE_GROUP,
    SHARED,
    STREAMS_GROUP,
    FamilySite,
    await_stable,
    running_families,
    running_tasks,
    tasks_of,
)

pytestmark = pytest.mark.kafka
Tasks = dict[str, dict[int, str]]
"""Worker of each task by connector."""
_SECONDS = 120.0
_SHORT_SESSION = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "1000"}
"""A process that stops sends no request to leave the group."""


@pytest.fixture(scope="module")
def site() -> Iterator[FamilySite]:
    with running_families() as running:
        yield running


def reported(applications: list[StreamsApplication]) -> set[frozenset[str]]:
    """Return the active tasks of each process, as the processes report them."""
    none: frozenset[str] = frozenset()
    return {none.union(*one.tasks().values()) for one in applications}


def imported(document: FamilyDocument) -> set[frozenset[str]]:
    """Return the active tasks of each process of a document of kind streams."""
    return {frozenset(one["active"]) for one in _processes(document)}


def test_a_share_group_has_the_subscriptions_of_its_consumers(site: FamilySite) -> None:
    content: Any = site.document(SHARE_GROUP).content
    assert content["topics"] == {"lowrate": 6, "orders": 6}
    topics = sorted(member["topics"] for member in content["members"])
    assert topics == sorted(sorted(one) for one in SHARED.values())
    owned = {tuple(tp) for member in content["members"] for tp in member["owned"]}
    assert owned == {(topic, number) for topic in content["topics"] for number in range(6)}


def test_a_classic_application_has_the_tasks_of_its_processes(site: FamilySite) -> None:
    document = site.document(APPLICATION)
    assert {one["threads"] for one in _processes(document)} == {2}
    assert imported(document) == reported(list(site.applications))
    content: Any = document.content
    # Threads that have not reported state yet do not show which subtopology has it.
    assert content["subtopologies"]["0"]["stateful"]


def test_a_streams_group_has_the_tasks_of_its_processes(site: FamilySite) -> None:
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


def test_a_forecast_has_the_tasks_after_a_process_has_joined(site: FamilySite) -> None:
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


def test_a_forecast_has_the_tasks_after_a_process_has_restarted(site: FamilySite) -> None:
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


def test_a_forecast_has_the_task_starts_of_a_restart_of_a_connect_worker(site: FamilySite) -> None:
    document = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    content: Any = document.content
    before = running_tasks(site.connect)
    stopped = site.connect.processes.pop()
    stopped.terminate()
    stopped.wait(20)
    site.connect.processes.append(site.connect.start())
    after = _await(site, 3, without=_by_worker(before).keys())
    moved = sum(after[name][n] != before[name][n] for name, n in _task_ids())
    [left] = {*_by_worker(before)} - {*_by_worker(after)}
    others = sorted({*_by_worker(before)} - {left})
    steps = [
        *content["steps"],
        _step(content, others, until_stable=False),
        _step(content, [*others, "restarted"], wait_ms=MAX_DELAY // 2),
    ]
    expected = set()
    # The cluster waits only if the worker was not the leader.
    for was_leader in (False, True):
        steps[1]["new_leader"] = was_leader
        delayed = {**content, "scheduled_rebalance_max_delay_ms": MAX_DELAY, "steps": steps}
        answer: Any = run_on_document(
            replace(document, content=delayed), "connect-incremental"
        ).answer
        state = answer["steps"][-1]["state"]
        worker = {task: name for name, own in state.items() for task in own["tasks"]}
        expected.add(sum(worker[f"{name}-{n}"] != before[name][n] for name, n in _task_ids()))
        assert _loads(after) == sorted(len(own["tasks"]) for own in state.values())
    assert moved in expected


def test_forecasts_equal_the_rebalances_of_connect(site: FamilySite) -> None:
    document = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    content: Any = document.content
    running = content["steps"][0]["running"]
    before = running_tasks(site.connect)
    assert {w: sorted(one["tasks"]) for w, one in running.items()} == _by_worker(before)
    scale_out = forecast_connect(document, downtime_ms=0, pause_ms=1).settings[0].scale_out
    added = site.connect.start()
    joined = _await(site, 4)
    assert _loads(joined) == [1, 2, 2, 2]
    moved = sum(joined[name][n] != before[name][n] for name, n in _task_ids())
    assert moved == scale_out.task_starts
    four = read_connect_cluster(site.connect.url, timeout=20, id="connect")
    delayed = {**four.content, "scheduled_rebalance_max_delay_ms": MAX_DELAY}
    found = forecast_connect(replace(four, content=delayed), downtime_ms=60_000, pause_ms=1)
    [expected] = [one.loss for one in found.settings if one.delay_ms == MAX_DELAY]
    # The worker has joined last, so it is not the leader, and the cluster waits for it.
    start = time.monotonic()
    added.terminate()
    added.wait(20)
    _await(site, 3, seconds=0)
    assert expected.longest_stop_ms == MAX_DELAY <= 1000 * (time.monotonic() - start)
    assert _loads(_await(site, 3)) == [2, 2, 3]


def _settled_tasks(site: FamilySite, applications: list[StreamsApplication]) -> list[object]:
    """Return the tasks if the group has two threads per process; else, an empty list.

    A group that rebalances has no document.
    """
    document = site.imported()[APPLICATION].document
    threads = [] if document is None else [one["threads"] for one in _processes(document)]
    return [*tasks_of(applications)] if threads == [2] * len(applications) else []


def _processes(document: FamilyDocument) -> list[dict[str, Any]]:
    processes: Any = document.content["processes"]
    return list(processes)


def _step(content: Any, workers: list[str], **keys: object) -> dict[str, object]:
    return {"workers": workers, "connectors": content["steps"][0]["connectors"], **keys}


def _task_ids() -> list[tuple[str, int]]:
    return [(name, number) for name, count in CONNECTORS.items() for number in range(count)]


def _by_worker(tasks: Tasks) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, workers in tasks.items():
        for number, worker in workers.items():
            found.setdefault(worker, []).append(f"{name}-{number}")
    return {worker: sorted(listed) for worker, listed in found.items()}


def _loads(tasks: Tasks) -> list[int]:
    return sorted(map(len, _by_worker(tasks).values()))


def _await(
    site: FamilySite, workers: int, *, without: Collection[str] = (), seconds: float = 5.0
) -> Tasks:
    """Wait until all tasks run on a number of workers, and do not change for some seconds.

    The workers must not be ``without``: the status of a stopped worker can be late.
    """

    def state() -> Tasks:
        tasks = running_tasks(site.connect)
        found = _by_worker(tasks).keys()
        return tasks if len(found) == workers and found != without else {}

    await_stable(state, seconds, within=_SECONDS)
    return state()
