"""Forecast events of a Streams application, per task assignor and setting.

The clock is simulated: a rebalance takes no time, and a process restores the state of a task within
60 s. Only the port of the high availability assignor runs without Java.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kassay.experiments.implementations.runner import Ending
from kassay.experiments.kinds.application_events import (
    join_process,
    leave_process,
    restart_process,
)
from kassay.experiments.kinds.comparison import compare_answer
from kassay.experiments.kinds.events import (
    StreamsEvent,
    run_application_until_stable,
    setting,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.errors import InputError
from kassay.solver.limits import SearchLimits

HIGH_AVAILABILITY = "streams-high-availability"
_NEW_PROCESS = "ffffffff-ffff-4fff-bfff-fffffffffff0"
_STANDBYS = "num_standby_replicas"
SETTINGS = ("max_warmup_replicas", "probing_rebalance_interval_ms", _STANDBYS)
"""Settings of an application that change the costs of its events."""
_SHORT_INTERVAL_MS = 60_000
RESTORE_MS = 60_000
"""Time in milliseconds in which a process restores the state of a task."""


@dataclass(frozen=True, slots=True)
class StreamsChange:
    """Changed settings of a Streams application, by the names in `SETTINGS`, and the assignor."""

    settings: Mapping[str, int]
    assignor: str = HIGH_AVAILABILITY


@dataclass(frozen=True, slots=True)
class StreamsCost:
    """Cost of an event until the application is stable; ``fewest_moves`` is proven."""

    rebalances: int
    probing_minutes: float
    state_moves: int
    fewest_moves: int | None
    restored_copies: int
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class StreamsForecast:
    """Costs of the events with one assignor and its settings."""

    assignor: str
    settings: Mapping[str, int]
    events: Mapping[str, StreamsCost]

    def record(self) -> dict[str, object]:
        """Return the forecast as a JSON object."""
        return {
            "assignor": self.assignor,
            "settings": dict(self.settings),
            "events": {name: asdict(cost) for name, cost in self.events.items()},
        }


def forecast_streams(
    document: KindDocument,
    *,
    changes: Sequence[StreamsChange] | None = None,
    assignors: tuple[str, ...] = (),
    limits: SearchLimits,
) -> tuple[tuple[StreamsForecast, ...], str]:
    """Forecast a restart, a new process and a lost process of a document of kind streams.

    Each setting starts from its own stable assignment. The restart and the loss are those of the
    process with the highest cost.

    Parameters
    ----------
    changes
        Changes to compare with the current settings. By default, one of each of `SETTINGS`.
    assignors
        Further assignors, with the current settings.

    Returns
    -------
    tuple
        The forecasts, that of the current settings first; and the differences of the given
        changes, or else the recommendation, in sentences.

    Raises
    ------
    InputError
        If the application has no process or no task with state.
    """
    content: Any = document.content
    stateful = sum(
        one["partitions"] for one in content["subtopologies"].values() if one["stateful"]
    )
    if not content["processes"] or not stateful:
        raise InputError(
            f"group {document.id!r}: the application has no process or no task with state, so a "
            "rebalance moves no state"
        )
    current = {name: setting(document, name) for name in SETTINGS}
    compared = changes or [
        *(
            StreamsChange({name: value})
            for name, value in zip(
                SETTINGS, (stateful, _SHORT_INTERVAL_MS, current[_STANDBYS] + 1), strict=True
            )
            if current[name] != value
        ),
        *(StreamsChange({}, name) for name in assignors),
    ]
    found = [
        _forecast(document, change.assignor, {**current, **change.settings}, limits)
        for change in (StreamsChange({}), *compared)
    ]
    sentences = [_difference(found[0], one) for one in found[1:]] if changes else []
    return tuple(found), " ".join(sentences) or _recommendation(found)


def _forecast(
    document: KindDocument, assignor: str, settings: Mapping[str, int], limits: SearchLimits
) -> StreamsForecast:
    content: Any = document.content
    config = {**content.get("config", {}), **settings}
    start = run_application_until_stable(
        replace(document, content={**content, "config": config}), assignor
    )
    if start.ending is not Ending.OK:
        raise InputError(f"group {document.id!r}: {assignor}: {start.detail}")
    processes: Any = start.application.content["processes"]
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
    return StreamsForecast(assignor, settings, costs)


def _cost(document: KindDocument, assignor: str, limits: SearchLimits) -> StreamsCost:
    event = run_application_until_stable(document, assignor, warmup_ms=RESTORE_MS)
    return StreamsCost(
        rebalances=event.rebalances,
        probing_minutes=event.probing_ms / 60_000,
        state_moves=event.state_moves,
        fewest_moves=_fewest_moves(document, event, limits),
        restored_copies=event.restored_copies,
        failed=event.detail,
    )


def _fewest_moves(document: KindDocument, event: StreamsEvent, limits: SearchLimits) -> int | None:
    """Return the proven fewest state moves with the final number of tasks per process."""
    content: Any = event.application.content
    answer = {
        "processes": {
            one["id"]: {"active": one["active"], "standby": one["standby"]}
            for one in content["processes"]
        }
    }
    [compared] = compare_answer(document, answer, limits=limits)
    moves = {one.name: one for one in compared.measures}.get("state_moves")
    return None if moves is None or moves.minimum != moves.bound else moves.minimum


def _size(cost: StreamsCost) -> tuple[float, ...]:
    return cost.state_moves, cost.probing_minutes, cost.restored_copies


def _recommendation(found: list[StreamsForecast]) -> str:
    """Recommend the setting with the fewest moves, and then the shortest probing, of all events.

    A setting with more standby tasks needs more memory and disks, and is no candidate.
    """
    now = found[0]
    candidates = [one for one in found if one.settings[_STANDBYS] == now.settings[_STANDBYS]]
    best = min(candidates, key=lambda one: tuple(map(sum, zip(*_sizes(one), strict=True))))
    join, before = best.events["join"], now.events["join"]
    fewest = "" if join.fewest_moves is None else f" ({join.fewest_moves} suffice)"
    moves = f"moves {join.state_moves} tasks with state{fewest}"
    if best is now:
        return f"Keep the settings: no compared setting is better; a new process {moves}."
    instead = "" if join.state_moves == before.state_moves else f" instead of {before.state_moves}"
    return (
        f"Set {_changes(now, best, ' to ')}: a new process {moves}{instead}, and the assignment is "
        f"stable after {join.probing_minutes:g} minutes instead of {before.probing_minutes:g}."
    )


def _changes(now: StreamsForecast, other: StreamsForecast, to: str = " ") -> str:
    changed = [
        f"{key.replace('_', '.')}{to}{value}"
        for key, value in other.settings.items()
        if now.settings[key] != value
    ]
    if other.assignor != now.assignor:
        changed.append(f"task.assignor.class{to}the class of {other.assignor}")
    return " and ".join(changed)


def _difference(now: StreamsForecast, other: StreamsForecast) -> str:
    """Describe the costs of the events that a change of settings changes."""
    changes = _changes(now, other)
    if not changes:
        return "The settings are the current ones."
    events = []
    for name, cost in other.events.items():
        before = now.events[name]
        pairs = {
            "state moves": (cost.state_moves, before.state_moves),
            "restored copies": (cost.restored_copies, before.restored_copies),
            "minutes until it is stable": (cost.probing_minutes, before.probing_minutes),
        }
        parts = [f"{a:g} {text} instead of {b:g}" for text, (a, b) in pairs.items() if a != b]
        if parts:
            events.append(f"a {name} has {', '.join(parts)}")
    return f"With {changes}, {'; '.join(events) or 'no event has another cost'}."


def _sizes(forecast: StreamsForecast) -> Iterator[tuple[float, ...]]:
    return map(_size, forecast.events.values())
