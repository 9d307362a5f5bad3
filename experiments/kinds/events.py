"""Run Streams applications until they are stable, and measure events of Streams and Connect.

A rebalance takes no time. Both functions accept ports and assignors of installed libraries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kassay.experiments.implementations.runner import (
    MAX_ROUNDS,
    DocumentRunResult,
    Ending,
    run_on_document,
)
from kassay.reference.assignors.streams.high_availability import AssignmentConfigs
from kassay.reference.documents.kind_documents import KindDocument

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
    active_moves
        Stateful tasks that end on another process than the one that they had at the event.
    restored_copies
        Active, standby and warm-up tasks that processes built from the changelog.
    application
        The document after the last rebalance, to which the next event applies.
    """

    ending: Ending
    rebalances: int
    probing_ms: int
    state_moves: int
    active_moves: int
    restored_copies: int
    application: KindDocument
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectEvent:
    """Cost of the steps of a Connect cluster.

    Parameters
    ----------
    rebalances
        Number of rebalances that start or stop something, or wait.
    stopped_task_ms, stopped_connector_ms
        Time in which a configured task or connector ran on no worker, summed, in milliseconds.
    started_tasks, revoked_tasks
        Tasks that workers started, and tasks that running workers gave up.
    affected_tasks
        Number of different tasks that workers started.
    is_stable
        Whether the last step ended without a waiting delay.
    """

    rebalances: int
    stopped_task_ms: int
    stopped_connector_ms: int
    started_tasks: int
    revoked_tasks: int
    affected_tasks: int
    is_stable: bool


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
        active_moves=_count_moves(last, _active_processes(document)),
        restored_copies=restored,
        application=last,
        detail=detail,
    )


def measure_cluster(answer: Mapping[str, Any]) -> ConnectEvent:
    """Measure the steps of a Connect cluster after the first one.

    Parameters
    ----------
    answer
        Answer of ``connect-incremental`` or ``kafka-connect[@VERSION]:incremental`` for a document
        of kind ``connect``, such as ``run_on_document(document, assignor).answer``.
    """
    states: Sequence[Mapping[str, Any]] = answer["steps"]
    last, before = states[-1], states[0]
    rounds = [one for state in states[1:] for one in state["rounds"]]

    def passed(key: str) -> int:
        return int(last[key] - before.get(key, 0))

    def tasks(key: str) -> list[str]:
        return [task for one in rounds for own in one[key].values() for task in own["tasks"]]

    started = tasks("assigned")
    return ConnectEvent(
        rebalances=sum(
            bool(one["assigned"] or one["revoked"] or one["delay_ms"]) for one in rounds
        ),
        stopped_task_ms=passed("task_downtime_ms"),
        stopped_connector_ms=passed("connector_downtime_ms"),
        started_tasks=len(started),
        revoked_tasks=len(tasks("revoked")),
        affected_tasks=len(set(started)),
        is_stable=last["stable"],
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


def ending_without_answer(result: DocumentRunResult) -> tuple[Ending, str]:
    """Return the ending of a run that has no valid answer, and its reason."""
    if result.livelock is not None:
        return Ending.NONTERMINATING, result.livelock
    if result.answer is not None:
        return Ending.INVALID, str(result.answer["error"])
    return Ending.FAILED, ": ".join(filter(None, (result.failed, result.reason)))


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
