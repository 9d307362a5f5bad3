"""Compare stable states of Connect clusters with the optimum, and forecast events.

Each stable state is converted to two groups, with workers as members. In the first, tasks are
partitions, and connectors topics. In the second, connectors are the partitions of one topic.

Forecasts simulate the time, with the port of Kafka's incremental assignor. A rebalance takes no
time; only the wait for ``scheduled.rebalance.max.delay.ms`` stops a task.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, pairwise
from random import Random
from typing import Any
from urllib.parse import quote

from kassay.experiments.kinds import group_kind
from kassay.reference.assignors.connect import (
    DEFAULT_MAX_DELAY,
    assign_eagerly,
    assign_incrementally,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.reference.model.assignment import Assignment, rejoin, violations
from kassay.reference.model.errors import InputError, UpstreamError
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve

_BALANCE_LEVELS = ("sum_of_squares", "movement")
_TASK_LEVELS = ("sum_of_squares", "topic_spread", "movement")
DELAY = "scheduled.rebalance.max.delay.ms"
_MARGIN = 10_000
"""Time in ms by which a recommended delay exceeds the time of a restart."""
_DELAY_KEY = "scheduled_rebalance_max_delay_ms"
_LOADS = {"task_sum_of_squares", "connector_sum_of_squares"}
_SAMPLES = 20
"""Number of simulated runs per action, which differ in the workers' random ids."""
_MAX_CANDIDATES = 8
"""Maximum number of connectors that kassay stops in simulations, the most uneven first."""
_END = 2  # multiples of the delay after which all waits have ended


def compare_connect_cluster(
    document: KindDocument, answer: group_kind.Answer, limits: SearchLimits
) -> list[group_kind.KindComparison]:
    """Compare each stable state of a Connect cluster with the optimum."""
    found: list[group_kind.KindComparison] = []
    previous, stopped = [Assignment({}), Assignment({})], 0
    for number, (step, state) in enumerate(
        zip(document.content["steps"], answer["steps"], strict=True)
    ):
        if not state.get("stable", True) or not step["workers"]:
            continue
        connectors = step["connectors"]
        topics = (
            tuple(Topic(name, count) for name, count in connectors.items()),
            tuple(Topic(name, 1) for name in connectors),
        )
        tasks = {worker: group_kind.tasks_of(own) for worker, own in state["state"].items()}
        single = {w: [(name, 0) for name in own["connectors"]] for w, own in state["state"].items()}
        placed = [Assignment(tasks), Assignment(single)]
        both = [
            _compare_state(list(step["workers"]), *parts, limits)
            for parts in zip(topics, placed, previous, strict=True)
        ]
        measures = [
            replace(one, name=f"{kind}_{one.name}")
            for kind, comparison in zip(("task", "connector"), both, strict=True)
            for one in comparison.measures
        ]
        if "task_downtime_ms" in state:
            # A rebalance takes no time in the simulation, so no task has to stop.
            wait = state["task_downtime_ms"] - stopped
            measures.append(group_kind.KindMeasure("task_stopped_ms", wait, 0, 0))
            stopped = state["task_downtime_ms"]
        unnecessary = chain.from_iterable(one.unnecessary for one in both)
        invalid = chain.from_iterable(one.invalid for one in both)
        found.append(
            group_kind.KindComparison(tuple(measures), tuple(unnecessary), number, tuple(invalid))
        )
        previous = placed
    return found


def _compare_state(
    workers: list[str],
    topics: tuple[Topic, ...],
    answer: Assignment,
    before: Assignment,
    limits: SearchLimits,
) -> group_kind.KindComparison:
    names = tuple(topic.name for topic in topics)
    bare = Group(topics, tuple(Member(worker, names) for worker in workers))
    group = rejoin(bare, {worker: before[worker] for worker in workers if worker in before})
    invalid = tuple(violations(group, answer))
    if invalid:
        return group_kind.KindComparison((), invalid=invalid)
    best = solve(group, levels=_TASK_LEVELS, limits=limits)
    chosen = {level.name: level.value for level in best.levels}
    fewest = solve(group, levels=_BALANCE_LEVELS, limits=limits)
    measures, unnecessary = group_kind.compare_balance(group, answer, fewest, chosen)
    if any(topic.partitions > 1 for topic in topics):
        measures.insert(1, group_kind.measure_level(group, answer, best, "topic_spread", chosen))
    return group_kind.KindComparison(tuple(measures), unnecessary)


@dataclass(frozen=True, slots=True)
class EventCost:
    """Rebalances, task starts and stopped time after events of a Connect cluster.

    ``stopped_ms`` is the sum over the tasks of the time without a worker, ``stopped_ms_per_task``
    its mean over the started tasks, rounded up.
    """

    rebalances: int
    task_starts: int
    stopped_ms: int
    stopped_ms_per_task: int
    longest_stop_ms: int


def measure_cluster(document: KindDocument, answer: group_kind.Answer) -> EventCost:
    """Measure the cost of the steps of a Connect cluster, without the first step.

    ``answer`` is by ``connect-incremental`` or ``kafka-connect[@VERSION]:incremental``.
    """
    states: Sequence[Mapping[str, Any]] = answer["steps"]
    rounds = [one for state in states[1:] for one in state["rounds"]]
    started = [task for one in rounds for own in one["assigned"].values() for task in own["tasks"]]
    stopped = states[-1]["task_downtime_ms"] - states[0].get("task_downtime_ms", 0)
    return EventCost(
        sum(bool(one["assigned"] or one["revoked"] or one["delay_ms"]) for one in rounds),
        len(started),
        stopped,
        -(-stopped // max(1, len(set(started)))),
        max(_stopped_times(document.content["steps"], states).values(), default=0),
    )


def _stopped_times(
    steps: Sequence[Mapping[str, Any]], states: Sequence[Mapping[str, Any]]
) -> Counter[str]:
    """Return for how many ms each task is stopped, from the end of the first step on."""
    worker_of = {task: w for w, own in states[0]["state"].items() for task in own["tasks"]}
    since: dict[str, int] = {}
    times: Counter[str] = Counter()
    for step, (before, state) in zip(steps[1:], pairwise(states), strict=True):
        event = before["at_ms"] + step.get("wait_ms", 0)
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


def _answer_measures(
    document: KindDocument, answer: group_kind.Answer
) -> list[group_kind.KindMeasure]:
    """Return a measure: the number of tasks that workers start after the first step."""
    if "rounds" not in answer["steps"][-1]:  # the eager protocol
        return []
    starts = measure_cluster(document, answer).task_starts
    return [group_kind.KindMeasure("task_starts", starts, None, None)]


def last_step(document: KindDocument) -> Mapping[str, Any]:
    """Return the last step of a Connect cluster, or raise InputError if it has no worker."""
    steps = document.content["steps"]
    if not steps or not steps[-1]["workers"]:
        raise InputError(f"cluster {document.id!r}: the last step has no worker; add one to it")
    last: Mapping[str, Any] = steps[-1]
    return last


def state_after_events(document: KindDocument) -> group_kind.Answer:
    """Simulate a Connect cluster, and return the connectors and tasks of each worker.

    Raise InputError if the assignor of the cluster's protocol fails.
    """
    is_eager = document.content.get("protocol") == "eager"
    try:
        answer: Any = (assign_eagerly if is_eager else assign_incrementally)(document)
    except UpstreamError as error:
        raise InputError(f"cluster {document.id!r}: Kafka's assignor fails: {error}") from None
    state: Mapping[str, Any] = answer["steps"][-1]["state"]
    return state


def _current_state(document: KindDocument) -> group_kind.CurrentState:
    last = last_step(document)
    running = last.get("running")
    if running is None:
        running = state_after_events(document)
    state: Any = {
        worker: {"connectors": [], "tasks": [], **running.get(worker, {})}
        for worker in last["workers"]
    }
    content = {**document.content, "steps": [{**last, "running": state}]}
    return group_kind.CurrentState(
        replace(document, content=content), {"steps": [{"state": state}]}
    )


def forecast_connect_cluster(
    document: KindDocument, request: group_kind.ForecastRequest
) -> group_kind.KindForecast:
    """Forecast events of a Connect cluster with several rebalance delays.

    By default, the compared delays are 0, and 10 s below and above the duration of a restart. The
    last of these is recommended, unless the current setting is as good.
    Raise `InputError` if the cluster has no worker or no task, or uses the eager protocol. Raise
    `UsageError` if a delay is not an integer of at least 0.
    """
    start = _Start.of(document)
    current = document.content.get(_DELAY_KEY, DEFAULT_MAX_DELAY)
    downtime = request.downtime_ms
    compared = [0, max(0, downtime - _MARGIN), downtime + _MARGIN]
    candidates = compared[-1:]
    if request.changes is not None:
        compared = candidates = [
            group_kind.integer_setting(DELAY, one) for one in request.changes[DELAY]
        ]
    delays = sorted({*compared, current})
    found = [_forecast(start, delay, downtime, request.pause_ms) for delay in delays]
    by_delay = {one["delay_ms"]: one for one in found}
    best = min((by_delay[delay] for delay in candidates), key=_restart_cost)
    sentence = group_kind.render_sentence(
        Kind.CONNECT,
        setting=DELAY,
        current=by_delay[current],
        best=best,
        downtime=downtime,
        is_kept=_restart_cost(by_delay[current]) <= _restart_cost(best),
    )
    return group_kind.KindForecast({"current_delay_ms": current, "settings": found}, sentence)


@dataclass(frozen=True, slots=True)
class _Start:
    """Connect cluster before an event: tasks per connector, and content of each worker."""

    connectors: Mapping[str, int]
    running: Mapping[str, Mapping[str, Sequence[str]]]

    @classmethod
    def of(cls, document: KindDocument) -> "_Start":
        where = f"cluster {document.id!r}"
        if document.content.get("protocol", "sessioned") == "eager":
            raise InputError(
                f"{where}: kassay cannot forecast protocol 'eager', which has no rebalance delay"
            )
        connectors = last_step(document)["connectors"]
        if not sum(connectors.values()):
            raise InputError(f"{where}: the last step has no task; add a connector with tasks")
        return cls(connectors, state_after_events(document))

    def step(self, workers: Sequence[str], wait_ms: int = 0, **keys: object) -> dict[str, object]:
        return {"workers": workers, "connectors": self.connectors, "wait_ms": wait_ms, **keys}


def _forecast(start: _Start, delay: int, downtime: int, pause: int) -> group_kind.Record:
    """Simulate all events with one rebalance delay, and return their costs as JSON.

    The restart and the loss are of the worker with the highest cost. With a single worker, there is
    no loss.
    """
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
    return {
        "delay_ms": delay,
        "restart": max(
            restarts, key=lambda cost: (cost["stopped_ms_per_task"], cost["stopped_ms"])
        ),
        "rolling_restart": _cost(start, delay, rolling, alone_ms),
        "scale_out": _cost(start, delay, [start.step([*workers, "new-worker"])]),
        "loss": max(losses, key=lambda cost: cost["stopped_ms"], default=None),
    }


def _restart(
    start: _Start, workers: list[str], worker: str, downtime: int, wait: int
) -> list[dict[str, object]]:
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
) -> group_kind.Record:
    """Simulate steps, and return their rebalances, task starts and stopped times.

    ``alone_ms`` is the time in ms in which the cluster has no worker, and all tasks are stopped.
    """
    first = start.step(list(start.running), running=start.running)
    final = {**steps[-1], "wait_ms": _END * delay}
    sequence = [first, *steps, final]
    content = {"kind": "connect", _DELAY_KEY: delay, "steps": sequence}
    document = parse_kind_document(content, kind=Kind.CONNECT, where="forecast")
    cost = measure_cluster(document, assign_incrementally(document))
    return asdict(cost) | {
        "stopped_ms": cost.stopped_ms + alone_ms * sum(start.connectors.values()),
        "stopped_ms_per_task": cost.stopped_ms_per_task + alone_ms,
        "longest_stop_ms": cost.longest_stop_ms + alone_ms,
    }


def _restart_cost(forecast: group_kind.Record) -> tuple[int, int]:
    return forecast["restart"]["task_starts"], forecast["restart"]["stopped_ms_per_task"]


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"


def _event_rows(record: group_kind.Record) -> Iterator[Sequence[object]]:
    for setting in record["settings"]:
        label = f"delay {_seconds(setting['delay_ms'])}"
        for event, cost in setting.items():
            if event == "delay_ms" or cost is None:
                continue
            stopped, per_task = cost["stopped_ms"] / 1000, cost["stopped_ms_per_task"] / 1000
            yield (
                *(label, event.replace("_", " "), cost["rebalances"], cost["task_starts"]),
                *(f"{stopped:g}", f"{per_task:g}", "", "", ""),
            )
            label = ""


def _causes(given: group_kind.KindEvidence) -> Iterator[group_kind.KindCause]:
    step, delay = _step_and_delay(given.document)
    if failed := step.get("failed", ()):
        yield group_kind.KindCause.of("failed-tasks", names=group_kind.listed(failed))
    waiting = _waiting(given, step)
    if waiting:
        yield group_kind.KindCause.of(
            "delay" if delay else "incomplete-rebalance", names=group_kind.listed(waiting)
        )
    elif _LOADS & given.above:
        loads = f"Workers run {given.loads()} tasks"
        if "task_sum_of_squares" not in given.above:
            loads = "Workers run different numbers of connectors"
        if given.is_improvable:
            yield group_kind.KindCause.of("pending-rebalance", loads=loads)
    elif "task_topic_spread" in given.above and delay is not None:
        yield group_kind.KindCause.of("connectors-ignored", uneven=given.most_uneven())
    workers, tasks = len(step["workers"]), sum(step["connectors"].values())
    if tasks < workers:
        limited = [f"{name} to {count}" for name, count in _limited(step).items()]
        kind = "tasks-max" if limited else "idle-workers"
        yield group_kind.KindCause.of(
            kind, workers=workers, tasks=tasks, names=group_kind.listed(limited)
        )


def _waiting(given: group_kind.KindEvidence, step: Mapping[str, Any]) -> list[str]:
    present = {name for own in step["running"].values() for name in own["connectors"]}
    connectors = [name for name in step["connectors"] if name not in present]
    return connectors + [f"{name}-{number}" for name, number in given.missing()]


def _step_and_delay(document: KindDocument) -> tuple[Mapping[str, Any], int | None]:
    """Return the last step, and the rebalance delay in ms (None for the eager protocol)."""
    content = document.content
    is_eager = content.get("protocol") == "eager"
    return last_step(document), None if is_eager else content.get(_DELAY_KEY, DEFAULT_MAX_DELAY)


def _limited(step: Mapping[str, Any]) -> dict[str, int]:
    maximum = step.get("tasks_max", {})
    return {name: most for name, most in maximum.items() if most <= step["connectors"][name]}


def _actions(given: group_kind.KindEvidence) -> Iterator[group_kind.KindAction]:
    step, delay = _step_and_delay(given.document)
    connectors, workers = step["connectors"], step["workers"]
    worker = next((one for one in workers if re.fullmatch(r"\S+:\d+", one)), "WORKER:8083")

    def request(method: str, name: str, path: str) -> str:
        return f"curl -X {method} 'http://{worker}/connectors/{quote(name, safe='')}/{path}'"

    if failed := dict.fromkeys(re.sub(r"-\d+$", "", one) for one in step.get("failed", ())):
        path = "restart?includeTasks=true&onlyFailed=true"
        commands = [request("POST", name, path) for name in failed]
        yield group_kind.KindAction("Restart the failed connectors and tasks", commands=commands)
    tasks = sum(connectors.values())
    if delay is None or not tasks:
        return
    simulate = partial(_outcomes, given.document, delay)
    if _LOADS & given.above or _waiting(given, step):
        text = f", at most {_seconds(delay)} ({DELAY})" if delay else ""
        yield group_kind.KindAction(f"Wait for the next rebalance{text}", [*simulate([connectors])])
    elif tasks < len(workers):
        for name in _limited(step):
            count = connectors[name] + len(workers) - tasks
            text = (
                f"Set tasks.max of {name} to {count}, if it can divide its work into {count} tasks"
            )
            yield group_kind.KindAction(text, [*simulate([{**connectors, name: count}])])
    elif "task_topic_spread" in given.above:
        workers_of = Counter(name for own in given.places.values() for name in {t for t, _ in own})
        # A connector on few workers, compared with its tasks, has uneven tasks.
        names = sorted(workers_of, key=lambda name: (workers_of[name] / connectors[name], name))
        for name in names[:_MAX_CANDIDATES]:
            yield group_kind.KindAction(
                f"Stop and resume connector {name}, which stops its tasks (Kafka 3.5 or later)",
                [*simulate([{**connectors, name: 0}, connectors])],
                [request("PUT", name, "stop"), request("PUT", name, "resume")],
            )


def _outcomes(
    document: KindDocument, delay: int, changes: Sequence[Mapping[str, int]]
) -> Iterator[group_kind.KindOutcome]:
    """Simulate changes of the numbers of tasks, in 20 samples with different worker ids."""
    step, random = last_step(document), Random(0)  # noqa: S311 - reproducible samples
    for _ in range(_SAMPLES):
        ids = {worker: f"{random.getrandbits(64):016x}" for worker in step["workers"]}
        running = {ids[worker]: own for worker, own in step["running"].items()}
        first = {"workers": [*running], "connectors": step["connectors"], "running": running}
        steps = [first, *({"workers": [*running], "connectors": one} for one in changes)]
        content = {_DELAY_KEY: delay, "steps": steps}
        answer: Any = assign_incrementally(replace(document, content=content))
        rounds = [one for state in answer["steps"] for one in state["rounds"]]
        started = [own["tasks"] for one in rounds for own in one["assigned"].values()]
        after = {worker: answer["steps"][-1]["state"][id] for worker, id in ids.items()}
        last = {**step, "connectors": changes[-1], "running": after}
        costs = {
            "task start": sum(map(len, started)),
            "rebalance": sum(bool(one["assigned"] or one["revoked"]) for one in rounds),
        }
        yield replace(document, content={**document.content, "steps": [last]}), costs


CONNECT = group_kind.GroupKind(
    kind=Kind.CONNECT,
    title="Connect cluster",
    places="workers",
    topics="connectors",
    no_action="no rebalance or restart that kassay simulates improves the cluster",
    compare=compare_connect_cluster,
    current_state=_current_state,
    separator="-",
    sizes=lambda document: last_step(document)["connectors"],
    causes=_causes,
    actions=_actions,
    answer_measures=_answer_measures,
    forecast=forecast_connect_cluster,
    settings=(DELAY,),
    assumption="Simulated events: a worker is back 30 s after its stop, and the next worker of "
    "a rolling restart stops 30 s later. A rebalance takes no time.",
    event_rows=_event_rows,
)
