"""Events of Streams applications, and the rebalances until the assignment is stable.

An event is a change of the document. A rebalance takes no time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kassay.experiments.implementations.runner import (
    MAX_ROUNDS,
    DocumentRunResult,
    Ending,
    run_on_document,
)
from kassay.experiments.kinds.group_kind import ending_without_answer
from kassay.reference.assignors.streams import AssignmentConfigs
from kassay.reference.documents.kind_documents import KindDocument, parse_task
from kassay.reference.model.errors import InputError

Assign = Callable[[KindDocument], Mapping[str, object]]
_DEFAULTS = {**asdict(AssignmentConfigs()), "probing_rebalance_interval_ms": 600_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsEvent:
    """Cost of an event of a Streams application until the assignment is stable.

    Parameters
    ----------
    ending
        `Ending.OK` if the assignment is stable.
    rebalances
        Number of rebalances, the first one included. The additional rebalance that hands over a
        task from one process to another is not counted.
    probing_ms
        Time from the event to the last rebalance, in milliseconds.
    state_moves
        Stateful tasks that end on a process without caught-up state at the event, although
        another process had it.
    restored_copies
        Active, standby and warm-up tasks that processes built from the changelog.
    application
        The document after the last rebalance, to which the next event applies.
    """

    ending: Ending
    rebalances: int
    probing_ms: int
    state_moves: int
    restored_copies: int
    application: KindDocument
    detail: str | None = None


def join_process(
    document: KindDocument, id: str, *, threads: int, tags: Mapping[str, str] | None = None
) -> KindDocument:
    """Add a process without state. ``id`` is a UUID."""
    process = {"id": id, "threads": threads, **({"tags": dict(tags)} if tags else {})}
    return _with_processes(document, [*_processes(document), process])


def leave_process(document: KindDocument, id: str) -> KindDocument:
    """Remove a process and its state."""
    left = _process(document, id)
    return _with_processes(document, [one for one in _processes(document) if one is not left])


def restart_process(document: KindDocument, id: str) -> KindDocument:
    """Restart a process that keeps its id and its state, within the session timeout.

    Its stateful active tasks become local state without a lag. Its standby tasks keep their lag.
    """
    content: Any = document.content
    restarted = _process(document, id)
    active = [
        task
        for task in restarted.get("active", ())
        if content["subtopologies"][str(parse_task(task).subtopology)]["stateful"]
    ]
    lags = {task: restarted.get("lags", {}).get(task, 0) for task in active}
    changed = {
        **restarted,
        "active": [],
        "standby": [*active, *restarted.get("standby", ())],
        "lags": {**restarted.get("lags", {}), **lags},
    }
    return _with_processes(
        document, [changed if one is restarted else one for one in _processes(document)]
    )


def run_application_until_stable(
    document: KindDocument, assignor: str | Assign, *, warmup_ms: int | None = None
) -> StreamsEvent:
    """Run an assignor and its probing rebalances, until it requests no follow-up rebalance.

    Parameters
    ----------
    document
        A document of kind ``streams``: the application at the rebalance that follows an event.
        ``config.probing_rebalance_interval_ms`` is the time between two rebalances.
    assignor
        ``streams-high-availability`` or ``kafka-streams[@VERSION]:ASSIGNOR``, or a function that
        returns the answer for a document.
    warmup_ms
        Time after which a process has restored the state of an assigned task. By default, the
        state is complete at the next rebalance. The lag does not change before that. A process
        loses the state of a task that it is not assigned.

    Examples
    --------
    >>> from kassay.reference.documents.kind_documents import Kind, parse_kind_document
    >>> ids = [f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2)]
    >>> app = {
    ...     "kind": "streams",
    ...     "subtopologies": {
    ...         "0": {"partitions": 4, "stateful": True, "end_offsets": [50_000] * 4}
    ...     },
    ...     "processes": [
    ...         {"id": ids[0], "threads": 2, "active": ["0_0", "0_1", "0_2", "0_3"]},
    ...         {"id": ids[1], "threads": 2},
    ...     ],
    ... }
    >>> event = run_application_until_stable(
    ...     parse_kind_document(app, kind=Kind.STREAMS), "streams-high-availability"
    ... )
    >>> event.rebalances, event.probing_ms, event.state_moves
    (2, 600000, 2)
    """
    application = _Application(document, warmup_ms)
    now, rounds, restored = 0, 0, 0
    ending = Ending.NONTERMINATING
    detail: str | None = f"no stable assignment after {MAX_ROUNDS} rebalances"
    for rounds in range(1, MAX_ROUNDS + 1):
        before = application.document()
        result = _run(before, assignor)
        answer: Any = result.answer
        if answer is None or answer.get("error", "NONE") != "NONE":
            ending, detail = ending_without_answer(result)
            break
        restored += application.apply(answer["processes"], now)
        if not answer.get("followup_rebalance", False):
            ending, detail = Ending.OK, None
            break
        now += application.interval_ms
        application.finish_restoring(now)
        if not application.restores and application.document() == before:
            detail = f"rebalance {rounds} requests another one and changes nothing"
            break
    application.finish_restoring(None)
    last = application.document()
    return StreamsEvent(
        ending=ending,
        rebalances=rounds,
        probing_ms=now,
        state_moves=_count_moves(last, caught_up_processes(document)),
        restored_copies=restored,
        application=last,
        detail=detail,
    )


def caught_up_processes(document: KindDocument) -> dict[str, list[str]]:
    """Return the processes with caught-up state, per stateful task of a Streams application.

    A process has it if the task is active there, or if its lag is acceptable.
    """
    content: Any = document.content
    acceptable = setting(document, "acceptable_recovery_lag")
    found: dict[str, list[str]] = {}
    for task, end in _stateful_tasks(content):
        found[task] = []
        for process in content["processes"]:
            lag = process.get("lags", {}).get(task)
            if lag is None:
                lag = 0 if task in process.get("active", ()) else end
            if lag <= acceptable:
                found[task].append(process["id"])
    return found


def setting(document: KindDocument, key: str) -> int:
    """Return a setting of a Streams application, or its default if it is missing or null."""
    config: Any = document.content.get("config", {})
    value = config.get(key)
    return int(_DEFAULTS[key] if value is None else value)


def _active_processes(document: KindDocument) -> dict[str, list[str]]:
    """Return the processes with the active task, per stateful task."""
    content: Any = document.content
    return {
        task: [one["id"] for one in content["processes"] if task in one.get("active", ())]
        for task, _ in _stateful_tasks(content)
    }


def _stateful_tasks(content: Any) -> Iterator[tuple[str, int]]:
    """Yield the stateful tasks with their end offsets."""
    for name, fields in content["subtopologies"].items():
        if fields["stateful"]:
            ends = fields.get("end_offsets", [0] * fields["partitions"])
            yield from ((f"{name}_{number}", end) for number, end in enumerate(ends))


def _count_moves(last: KindDocument, holders: Mapping[str, list[str]]) -> int:
    """Count the tasks that end on none of their holders, although they had one."""
    ends = _active_processes(last)
    return sum(
        bool(held) and not any(process in held for process in ends[task])
        for task, held in holders.items()
    )


def _run(document: KindDocument, assignor: str | Assign) -> DocumentRunResult:
    if isinstance(assignor, str):
        return run_on_document(document, assignor)
    return DocumentRunResult(answer=assignor(document))


class _Application:
    """Tasks of the processes of a Streams application, and the state that they restore."""

    def __init__(self, document: KindDocument, warmup_ms: int | None) -> None:
        content: Any = document.content
        self.interval_ms = setting(document, "probing_rebalance_interval_ms")
        self.restores: dict[tuple[str, str], int] = {}
        self._document = document
        self._warmup_ms = warmup_ms
        self._processes: dict[str, dict[str, Any]] = {
            process["id"]: dict(process) for process in content["processes"]
        }

    def document(self) -> KindDocument:
        """Return the document of the present state."""
        processes = [dict(process) for process in self._processes.values()]
        return replace(self._document, content={**self._document.content, "processes": processes})

    def apply(self, answer: Mapping[str, Any], now: int) -> int:
        """Start and stop the tasks of an answer; return the number of copies to restore."""
        present = self.document()
        content: Any = present.content
        ends, holders = dict(_stateful_tasks(content)), caught_up_processes(present)
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
        """Complete the copies that have had enough time; all of them if ``now`` is None."""
        for (id, task), since in list(self.restores.items()):
            if now is None or self._warmup_ms is None or now - since >= self._warmup_ms:
                process = self._processes[id]
                lags = {other: lag for other, lag in process["lags"].items() if other != task}
                if task in process["standby"]:
                    lags[task] = 0
                process["lags"] = lags
                del self.restores[id, task]


def _processes(document: KindDocument) -> list[dict[str, Any]]:
    processes: Any = document.content["processes"]
    return list(processes)


def _process(document: KindDocument, id: str) -> dict[str, Any]:
    processes = _processes(document)
    found = next((process for process in processes if process["id"] == id), None)
    if found is None:
        known = ", ".join(process["id"] for process in processes) or "none"
        raise InputError(f"process {id} is not in the document; its processes: {known}")
    return found


def _with_processes(document: KindDocument, processes: list[dict[str, Any]]) -> KindDocument:
    return replace(document, content={**document.content, "processes": processes})
