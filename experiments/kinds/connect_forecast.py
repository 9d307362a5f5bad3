"""Forecast restarts, a scale-out and a loss of workers of a Connect cluster, per delay setting.

The clock is simulated with the port of Kafka's incremental assignor: a rebalance takes no time,
and only the wait for ``scheduled.rebalance.max.delay.ms`` stops a task.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from kassay.experiments.kinds.events import measure_cluster
from kassay.reference.assignors.connect.simulated_cluster import (
    DEFAULT_MAX_DELAY,
    assign_eagerly,
    assign_incrementally,
)
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    parse_kind_document,
)
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.errors import InputError

DELAY = "scheduled.rebalance.max.delay.ms"
_MARGIN = 10_000
"""Milliseconds by which a delay exceeds the time of a restart."""
_END = 2  # multiples of the delay after which all waits have ended


@dataclass(frozen=True, slots=True)
class EventCost:
    """Cost of an event: rebalances, task starts, and time in which tasks have no worker.

    ``stopped_ms`` is the sum over the tasks, ``stopped_ms_per_task`` the sum divided by the number
    of started tasks, rounded up, and ``longest_stop_ms`` the maximum of a task.
    """

    rebalances: int
    task_starts: int
    stopped_ms: int
    stopped_ms_per_task: int
    longest_stop_ms: int


@dataclass(frozen=True, slots=True)
class DelayForecast:
    """Costs of the events with one setting of the delay.

    ``restart`` is the worker with the highest cost, ``rolling_restart`` a restart of one worker
    after the other, ``scale_out`` a new worker, ``loss`` a worker that does not come back; None if
    it is the only worker.
    """

    delay_ms: int
    restart: EventCost
    rolling_restart: EventCost
    scale_out: EventCost
    loss: EventCost | None

    def record(self) -> dict[str, object]:
        """Return the forecast as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConnectForecast:
    """Forecasts per setting, the current setting, and the recommended one in one sentence."""

    current_ms: int
    settings: tuple[DelayForecast, ...]
    recommendation: str


def forecast_connect(
    document: KindDocument,
    *,
    downtime_ms: int,
    pause_ms: int,
    delays_ms: Sequence[int] | None = None,
) -> ConnectForecast:
    """Forecast the events from the last step of a document of kind connect.

    Parameters
    ----------
    downtime_ms, pause_ms
        Time from the stop of a worker to its return, and from its return to the stop of the next
        worker.
    delays_ms
        Settings to compare with the current one. By default 0, and 10 s below and above
        ``downtime_ms``; the last one is recommended unless the current setting is as good.

    Raises
    ------
    InputError
        If the cluster has no worker or no task, or uses the eager protocol.
    """
    start = _Start.of(document)
    current: Any = document.content.get("scheduled_rebalance_max_delay_ms", DEFAULT_MAX_DELAY)
    compared = delays_ms or (0, max(0, downtime_ms - _MARGIN), downtime_ms + _MARGIN)
    delays = sorted({*compared, current})
    found = tuple(_forecast(start, delay, downtime_ms, pause_ms) for delay in delays)
    by_delay = {one.delay_ms: one for one in found}
    candidates = compared if delays_ms else compared[-1:]
    best = min((by_delay[delay] for delay in candidates), key=_restart_cost)
    sentence = _recommendation(by_delay[current], best, downtime_ms)
    return ConnectForecast(current, found, sentence)


def last_step(document: KindDocument) -> Mapping[str, Any]:
    """Return the last step of a Connect cluster. Raise InputError if it has no worker."""
    steps: Any = document.content["steps"]
    if not steps or not steps[-1]["workers"]:
        raise InputError(f"cluster {document.id!r}: the last step has no worker")
    last: Mapping[str, Any] = steps[-1]
    return last


def state_after_events(document: KindDocument) -> Mapping[str, Any]:
    """Return the connectors and tasks per worker after the last step of a cluster.

    They are those of the port that belongs to the protocol of the document.

    Raises
    ------
    InputError
        If the assignor fails, such as for a step without workers.
    """
    is_eager = document.content.get("protocol") == "eager"
    try:
        answer: Any = (assign_eagerly if is_eager else assign_incrementally)(document)
    except UpstreamError as error:
        raise InputError(f"cluster {document.id!r}: the assignor fails: {error}") from None
    state: Mapping[str, Any] = answer["steps"][-1]["state"]
    return state


@dataclass(frozen=True, slots=True)
class _Start:
    """Connectors, and the connectors and tasks of each worker, before the event."""

    connectors: Mapping[str, int]
    running: Mapping[str, Mapping[str, Sequence[str]]]

    @classmethod
    def of(cls, document: KindDocument) -> "_Start":
        content: Any = document.content
        where = f"cluster {document.id!r}"
        if content.get("protocol", "sessioned") == "eager":
            raise InputError(f"{where}: protocol: the eager protocol has no delay to forecast")
        connectors = last_step(document)["connectors"]
        if not sum(connectors.values()):
            raise InputError(
                f"{where}: the last step has no task; add a connector with tasks to its connectors"
            )
        return cls(connectors, state_after_events(document))

    def step(self, workers: Sequence[str], wait_ms: int = 0, **keys: object) -> dict[str, object]:
        return {"workers": workers, "connectors": self.connectors, "wait_ms": wait_ms, **keys}


def _forecast(start: _Start, delay: int, downtime: int, pause: int) -> DelayForecast:
    workers = list(start.running)
    alone_ms = downtime if len(workers) == 1 else 0
    restarts = [
        _cost(start, delay, _restart(start, workers, worker, downtime, 0), alone_ms)
        for worker in workers
    ]
    rolling: list[dict[str, object]] = []
    present = workers
    for worker in workers:
        rolling += _restart(start, present, worker, downtime, pause if rolling else 0)
        present = [_renamed(one) if one == worker else one for one in present]
    losses = [
        _cost(start, delay, [start.step([one for one in workers if one != worker])])
        for worker in workers[: len(workers) if len(workers) > 1 else 0]
    ]
    return DelayForecast(
        delay,
        max(restarts, key=lambda cost: (cost.stopped_ms_per_task, cost.stopped_ms)),
        _cost(start, delay, rolling, alone_ms),
        _cost(start, delay, [start.step([*workers, "new-worker"])]),
        max(losses, key=lambda cost: cost.stopped_ms, default=None),
    )


def _restart(
    start: _Start, workers: list[str], worker: str, downtime: int, wait: int
) -> list[dict[str, object]]:
    """Return the steps in which a worker leaves and comes back under another member id."""
    others = [one for one in workers if one != worker]
    back = [_renamed(one) if one == worker else one for one in workers]
    if not others:
        # A cluster of one worker has no leader during the restart, so its tasks only wait for it.
        return [start.step(back, wait + downtime, new_leader=True)]
    return [
        start.step(others, wait, until_stable=False),
        start.step(back, downtime, until_stable=False),
    ]


def _renamed(worker: str) -> str:
    return f"{worker} (restarted)"


def _cost(
    start: _Start, delay: int, steps: Sequence[dict[str, object]], alone_ms: int = 0
) -> EventCost:
    """Run the steps from the start, and add up the rebalances, starts and stopped times.

    ``alone_ms`` is the time in which the cluster has no worker, so that all tasks are stopped.
    """
    first = start.step(list(start.running), running=start.running)
    final = {**steps[-1], "wait_ms": _END * delay}
    sequence = [first, *steps, final]
    content = {
        "kind": "connect",
        "scheduled_rebalance_max_delay_ms": delay,
        "steps": sequence,
    }
    document = parse_kind_document(content, kind=Kind.CONNECT, where="forecast")
    answer: Any = assign_incrementally(document)
    event = measure_cluster(answer)
    return EventCost(
        event.rebalances,
        event.started_tasks,
        event.stopped_task_ms + alone_ms * sum(start.connectors.values()),
        -(-event.stopped_task_ms // max(1, event.affected_tasks)) + alone_ms,
        max(_stopped_times(sequence, answer["steps"]).values(), default=0) + alone_ms,
    )


def _stopped_times(
    steps: Sequence[Mapping[str, Any]], states: Sequence[Mapping[str, Any]]
) -> Counter[str]:
    """Return the milliseconds for which each task stops after the first step."""
    worker_of = {task: w for w, own in states[0]["state"].items() for task in own["tasks"]}
    since: dict[str, int] = {}
    times: Counter[str] = Counter()
    for step, (before, state) in zip(steps[1:], pairwise(states), strict=True):
        event = before["at_ms"] + step["wait_ms"]
        for one in state["rounds"]:
            # Rebalances before the event end earlier delays.
            lost = [t for t, w in worker_of.items() if w not in step["workers"]]
            stopped = lost if one["at_ms"] >= event else []
            stopped += [task for own in one["revoked"].values() for task in own["tasks"]]
            for task in stopped:
                worker_of.pop(task, None)
                since.setdefault(task, one["at_ms"])
            for worker, own in one["assigned"].items():
                for task in own["tasks"]:
                    worker_of[task] = worker
                    times[task] += one["at_ms"] - since.pop(task, one["at_ms"])
    return times


def _restart_cost(forecast: DelayForecast) -> tuple[int, int]:
    return forecast.restart.task_starts, forecast.restart.stopped_ms_per_task


def _recommendation(current: DelayForecast, best: DelayForecast, downtime: int) -> str:
    now, then = current.restart, best.restart
    restart = f"a restart of {_seconds(downtime)}"
    if _restart_cost(current) <= _restart_cost(best):
        return (
            f"Keep {DELAY} at {_seconds(current.delay_ms)}: {restart} stops each task {_stop(now)}."
        )
    if now.task_starts > then.task_starts:
        return (
            f"For fewer task starts, set {DELAY} to {_seconds(best.delay_ms)}: {restart} "
            f"starts {then.task_starts} tasks instead of {now.task_starts}, "
            f"and stops each of them {_stop(then)} instead of {_stop(now)}."
        )
    return (
        f"Set {DELAY} to {_seconds(best.delay_ms)}: {restart} stops each "
        f"task {_stop(then)} instead of {_stop(now)}."
    )


def _stop(cost: EventCost) -> str:
    """Return the mean stopped time per task; it is marked as mean if the tasks differ."""
    differs = cost.longest_stop_ms != cost.stopped_ms_per_task
    return _seconds(cost.stopped_ms_per_task) + (" on average" if differs else "")


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
