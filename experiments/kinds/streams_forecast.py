"""Simulate and forecast events of Streams groups and Kafka Streams applications.

An event is a change of the document. Forecasts simulate the time: a rebalance takes no time, and a
process restores the state of a task within 60 s. All assignors except the port of the high
availability assignor need Java.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from kassay.experiments.implementations import assignor_names, client_libraries, run_assignor
from kassay.experiments.kinds import group_kind
from kassay.experiments.kinds.streams_comparison import (
    caught_up_processes,
    compare_streams,
    setting,
    stateful_tasks,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.errors import InputError, UsageError
from kassay.solver.limits import SearchLimits

Assign = Callable[[KindDocument], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsEvent:
    """Cost of one event of a Streams application, until its assignment is stable."""

    ending: run_assignor.Ending
    rebalances: int  # with the first one, without the one that hands over a task
    probing_ms: int  # from the event to the last rebalance
    state_moves: int  # stateful tasks that end without state, although a process had it
    restored_copies: int  # tasks of all roles that processes built from the changelog
    application: KindDocument  # after the last rebalance; the next event applies to it
    detail: str | None = None


def join_process(document: KindDocument, id: str, *, threads: int) -> KindDocument:
    """Add a process without state to a document. ``id`` is a UUID."""
    processes = [*document.content["processes"], {"id": id, "threads": threads}]
    return replace(document, content={**document.content, "processes": processes})


def leave_process(document: KindDocument, id: str) -> KindDocument:
    """Remove a process and its state from a document."""
    return _replace_process(document, id)


def restart_process(document: KindDocument, id: str) -> KindDocument:
    """Restart a process in a document. The process keeps its id and its state.

    Its stateful active tasks become local state without lag. Its standby tasks keep their lag.
    """
    stateful = dict(stateful_tasks(document.content))
    processes = document.content["processes"]
    process: Any = next((one for one in processes if one["id"] == id), {})
    active = [task for task in process.get("active", ()) if task in stateful]
    lags = process.get("lags", {})
    restarted = {
        **process,
        "active": [],
        "standby": [*active, *process.get("standby", ())],
        "lags": {**lags, **{task: lags.get(task, 0) for task in active}},
    }
    return _replace_process(document, id, restarted)


def _replace_process(document: KindDocument, id: str, *new: Mapping[str, Any]) -> KindDocument:
    content = document.content
    ids = [one["id"] for one in content["processes"]]
    if id not in ids:
        known = ", ".join(ids) or "none"
        raise InputError(f"the document has no process {id}; choose from {known}")
    at = ids.index(id)
    processes = [*content["processes"][:at], *new, *content["processes"][at + 1 :]]
    return replace(document, content={**content, "processes": processes})


def run_application_until_stable(
    document: KindDocument, assignor: str | Assign, *, warmup_ms: int | None = None
) -> StreamsEvent:
    """Run an assignor until it requests no further rebalance.

    ``assignor`` is a name, or a function that returns the answer for a document. A process
    restores the state of an assigned task in ``warmup_ms``, by default until the next rebalance.
    It loses the state of a task that is not assigned to it.
    """
    application = _Application(document, warmup_ms)
    now, rounds, restored = 0, 0, 0
    ending = run_assignor.Ending.NONTERMINATING
    detail: str | None = f"no stable assignment after {run_assignor.MAX_ROUNDS} rebalances"
    for rounds in range(1, run_assignor.MAX_ROUNDS + 1):
        before = application.document()
        if isinstance(assignor, str):
            result = run_assignor.run_on_document(before, assignor)
        else:
            result = run_assignor.DocumentRunResult(answer=assignor(before))
        answer: Any = result.answer
        if answer is None or answer.get("error", "NONE") != "NONE":
            ending, detail = group_kind.ending_without_answer(result)
            break
        restored += application.apply(answer["processes"], now)
        if not answer.get("followup_rebalance", False):
            ending, detail = run_assignor.Ending.OK, None
            break
        now += application.interval_ms
        application.finish_restoring(now)
        if not application.restores and application.document() == before:
            detail = f"rebalance {rounds} requests another one and changes nothing"
            break
    application.finish_restoring(None)
    last = application.document()
    active = {
        task: one["id"] for one in last.content["processes"] for task in one.get("active", ())
    }
    holders = caught_up_processes(document)
    return StreamsEvent(
        ending=ending,
        rebalances=rounds,
        probing_ms=now,
        # A task that no process had with its state moves nothing.
        state_moves=sum(active.get(task) not in held for task, held in holders.items() if held),
        restored_copies=restored,
        application=last,
        detail=detail,
    )


class _Application:
    """Simulated Streams application, with its tasks and the state that it restores."""

    def __init__(self, document: KindDocument, warmup_ms: int | None) -> None:
        self.interval_ms = setting(document, "probing_rebalance_interval_ms")
        self.restores: dict[tuple[str, str], int] = {}
        self._document = document
        self._warmup_ms = warmup_ms
        self._processes: dict[str, dict[str, Any]] = {
            process["id"]: dict(process) for process in document.content["processes"]
        }

    def document(self) -> KindDocument:
        processes = [dict(process) for process in self._processes.values()]
        return replace(self._document, content={**self._document.content, "processes": processes})

    def apply(self, answer: Mapping[str, Any], now: int) -> int:
        """Start and stop tasks as in an answer, and return the number of tasks to restore."""
        present = self.document()
        ends, holders = dict(stateful_tasks(present.content)), caught_up_processes(present)
        pending: dict[tuple[str, str], int] = {}
        for id, process in self._processes.items():
            lags = {task: 0 for task in answer[id]["standby"] if task in ends}
            for task in [*answer[id]["active"], *answer[id]["standby"]]:
                if task in ends and id not in holders[task]:
                    pending[id, task] = self.restores.get((id, task), now)
                    lags[task] = process.get("lags", {}).get(task, ends[task])
            process.update(answer[id], lags=lags)
        started = sum(copy not in self.restores for copy in pending)
        self.restores = pending
        return started

    def finish_restoring(self, now: int | None) -> None:
        """End the restorations that are complete at time ``now``, or all if ``now`` is None."""
        for (id, task), since in list(self.restores.items()):
            if now is None or self._warmup_ms is None or now - since >= self._warmup_ms:
                process = self._processes[id]
                lags = {other: lag for other, lag in process["lags"].items() if other != task}
                if task in process["standby"]:
                    lags[task] = 0
                process["lags"] = lags
                del self.restores[id, task]


def compare_stable_application(
    document: KindDocument, event: StreamsEvent, limits: SearchLimits
) -> group_kind.KindComparison:
    """Compare the stable assignment after an event with the optimum.

    The minimum of the measure ``probing_ms`` follows from the fewest state moves and the maximum
    number of warm-ups: each warm-up of a moved task lasts until the next probing rebalance.
    """
    compared, moves = _compare_event(document, event, limits)
    interval = setting(event.application, "probing_rebalance_interval_ms")
    warmups = setting(event.application, "max_warmup_replicas")
    least = None if moves is None else moves.bound
    if least is not None:
        least = -(-least // warmups) * interval if warmups else None
    probing = group_kind.KindMeasure("probing_ms", event.probing_ms, least, least)
    return replace(compared, measures=(*compared.measures, probing), step=event.rebalances)


def _compare_event(
    document: KindDocument, event: StreamsEvent, limits: SearchLimits
) -> tuple[group_kind.KindComparison, group_kind.KindMeasure | None]:
    processes = event.application.content["processes"]
    answer = {"processes": {one["id"]: one for one in processes}}
    [compared] = compare_streams(document, answer, limits)
    return compared, {one.name: one for one in compared.measures}.get("state_moves")


HIGH_AVAILABILITY = "streams-high-availability"
_NEW_PROCESS = "ffffffff-ffff-4fff-bfff-fffffffffff0"
STANDBYS = "num_standby_replicas"
SETTINGS = ("max_warmup_replicas", "probing_rebalance_interval_ms", STANDBYS)
"""Settings of Kafka Streams that change the costs of events."""
KEYS = {name.replace("_", "."): name for name in SETTINGS}
_MINIMUM = {"max.warmup.replicas": 1, "probing.rebalance.interval.ms": 60_000}
"""Lowest accepted values of settings; 0 for settings that are not listed."""
CLASS = "task.assignor.class"
_CLASSES = {
    "HighAvailabilityTaskAssignor": HIGH_AVAILABILITY,
    "StickyTaskAssignor": "kafka-streams:sticky",
    "LegacyStickyTaskAssignor": "kafka-streams:legacy-sticky",
    "FallbackPriorTaskAssignor": "kafka-streams:fallback-prior",
}
_SHORT_INTERVAL_MS = 60_000
RESTORE_MS = 60_000
"""Simulated time in ms to restore the state of a task."""


def forecast_application(
    document: KindDocument, request: group_kind.ForecastRequest
) -> group_kind.KindForecast:
    """Forecast a restart, a new process and a lost process of a Streams application.

    For each change, the events start from the stable assignment under this change. The restart and
    the loss are of the process with the highest cost. By default, one change of each of `SETTINGS`
    and the assignors of the request are compared with the current settings, which come first.
    Raise `InputError` if the application has no process or no task with state. Raise `UsageError`
    if a setting or an assignor is not one of Kafka Streams.
    """
    content = document.content
    stateful = sum(
        one["partitions"] for one in content["subtopologies"].values() if one["stateful"]
    )
    if not content["processes"] or not stateful:
        raise InputError(
            f"group {document.id!r}: the application has no process or no task with state; "
            "a forecast requires them"
        )
    for name in request.assignors:
        if assignor_names.kind_of_assignor(name) is not Kind.STREAMS:
            raise UsageError(f"--assignor must be an assignor of Kafka Streams, got {name!r}")
    current = {name: setting(document, name) for name in SETTINGS}
    if request.changes is not None:
        changes = [*_requested_changes(request.changes)]
    else:
        values = (stateful, _SHORT_INTERVAL_MS, current[STANDBYS] + 1)
        pairs = zip(SETTINGS, values, strict=True)
        changes = [
            *((HIGH_AVAILABILITY, {key: value}) for key, value in pairs if current[key] != value),
            *((name, {}) for name in request.assignors),
        ]
    found = [
        _forecast(document, assignor, {**current, **settings}, request.limits)
        for assignor, settings in ((HIGH_AVAILABILITY, {}), *changes)
    ]
    now = found[0]
    # A setting with more standby tasks needs more memory and disks, and is no candidate.
    standbys = now["settings"][STANDBYS]
    best = min(
        (one for one in found if one["settings"][STANDBYS] == standbys),
        key=lambda one: tuple(map(sum, zip(*map(_size, one["events"].values()), strict=True))),
    )
    requested = () if request.changes is None else found[1:]
    sentence = group_kind.render_sentence(Kind.STREAMS, now=now, best=best, requested=requested)
    return group_kind.KindForecast({"settings": found}, sentence)


def _requested_changes(
    values: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield an assignor and settings for each combination of requested values."""
    for combination in product(*values.values()):
        chosen = dict(zip(values, combination, strict=True))
        assignor = _assignor(chosen.pop(CLASS, HIGH_AVAILABILITY))
        numbers = {
            KEYS[key]: group_kind.integer_setting(key, text, minimum=_MINIMUM.get(key, 0))
            for key, text in chosen.items()
        }
        yield assignor, numbers


def _assignor(name: str) -> str:
    """Return the complete name of a task assignor, or raise UsageError."""
    name = _CLASSES.get(name.rpartition(".")[2], name)
    if name == HIGH_AVAILABILITY:
        return name
    if not client_libraries.is_library_assignor(name):
        raise UsageError(f"--set: {CLASS} must be one of {', '.join(_CLASSES)}, got {name!r}")
    return str(client_libraries.parse_library_assignor(name))


def _forecast(
    document: KindDocument, assignor: str, settings: Mapping[str, int], limits: SearchLimits
) -> group_kind.Record:
    config = {**document.content.get("config", {}), **settings}
    start = run_application_until_stable(
        replace(document, content={**document.content, "config": config}), assignor
    )
    if start.ending is not run_assignor.Ending.OK:
        raise InputError(f"group {document.id!r}: {assignor} fails: {start.detail}")
    processes = start.application.content["processes"]
    threads = max(one["threads"] for one in processes)
    events = {
        "restart": [restart_process(start.application, one["id"]) for one in processes],
        "join": [join_process(start.application, _NEW_PROCESS, threads=threads)],
        "leave": [
            leave_process(start.application, one["id"]) for one in processes if len(processes) > 1
        ],
    }
    costs = {
        name: max((_cost(one, assignor, limits) for one in each), key=_size)
        for name, each in events.items()
        if each
    }
    return {"assignor": assignor, "settings": settings, "events": costs}


def _cost(document: KindDocument, assignor: str, limits: SearchLimits) -> group_kind.Record:
    event = run_application_until_stable(document, assignor, warmup_ms=RESTORE_MS)
    _, moves = _compare_event(document, event, limits)
    return {
        "rebalances": event.rebalances,
        "probing_minutes": event.probing_ms / 60_000,
        "state_moves": event.state_moves,
        "fewest_moves": None if moves is None or moves.minimum != moves.bound else moves.minimum,
        "restored_copies": event.restored_copies,
        "failed": event.detail,
    }


def _size(cost: group_kind.Record) -> tuple[float, ...]:
    return cost["state_moves"], cost["probing_minutes"], cost["restored_copies"]


def event_rows(record: group_kind.Record) -> Iterator[Sequence[object]]:
    """Yield the table rows of a forecast: one per group of settings and event."""
    base = record["settings"][0]
    for one in record["settings"]:
        changed = [f"{k} {v}" for k, v in one["settings"].items() if base["settings"][k] != v]
        if not changed or one["assignor"] != base["assignor"]:
            changed.insert(0, one["assignor"])
        label = ", ".join(changed)
        for event, cost in one["events"].items():
            fewest = "–" if cost["fewest_moves"] is None else cost["fewest_moves"]
            yield (
                *(label, event, cost["rebalances"], cost["restored_copies"], "", ""),
                *(f"{cost['probing_minutes']:g}", cost["state_moves"], fewest),
            )
            label = ""
