"""Forecast planned events of a group, and the fewest moves over all events."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from kassay.experiments.planning.change_forecast import OPTIMUM
from kassay.experiments.prediction.predict import Prediction, partition_weights, predict
from kassay.experiments.prediction.scenario import Configuration, Scripted
from kassay.experiments.prediction.simulate_events import planned_members
from kassay.experiments.simulation.script import (
    Action,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
    parse_planned_events,
)
from kassay.reference.documents.files import read_text
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import default_tolerance
from kassay.solver.trajectory.trajectory import default_trajectory_levels, optimal_trajectory


def load_planned_events(file: Path, group: Group) -> Script:
    """Read planned events from a YAML or JSON file."""
    members, _ = planned_members(group)
    topics = [TopicPlan(name=one.name, partitions=one.partitions) for one in group.topics]
    return parse_planned_events(read_text(file), str(file), topics=topics, members=members)


def predict_events(
    group: Group,
    script: Script,
    configuration: Configuration,
    *,
    samples: int | None = None,
    seed: int = 0,
) -> Prediction:
    """Predict the planned events of a group.

    Events at the same time count as one event. Settings in the script replace those of the
    configuration.
    """
    given, default = script.settings, Settings()
    names = {
        "session": "session_timeout",
        "heartbeat": "heartbeat_interval",
        "max_poll": "max_poll_interval",
        "metadata": "metadata_max_age",
    }
    times = {
        own: getattr(given, name) / 1000
        for name, own in names.items()
        if getattr(given, name) != getattr(default, name)
    }
    topics = tuple(one for one in script.topics if one.name not in group.topic_table())
    events = []
    for at, found in groupby(sorted(script.events, key=attrgetter("at")), key=attrgetter("at")):
        batch = tuple(found)
        text = ", ".join(map(_description, batch))
        events.append(Scripted(at=at / 1000, events=batch, topics=topics, text=text))
    changed = replace(configuration, **times)
    return predict(group, changed, events, samples=samples, seed=seed)


def event_records(name: str, prediction: Prediction) -> Iterator[dict[str, object]]:
    """Yield one JSON object per predicted event."""
    for one in prediction.events:
        yield {
            "configuration": name,
            "event": one.event,
            "change": one.cost.record(),
            "restart": None,
            "maximum_load": one.maximum_load.record(),
            "members": round(one.members.mean),
            "loads": {member: load.record() for member, load in one.loads.items()},
            "samples": prediction.samples,
        }


def hindsight_record(
    group: Group, prediction: Prediction, *, limits: SearchLimits = SearchLimits()
) -> dict[str, object] | None:
    """Return the fewest moves over all rebalances of the first sample, as JSON.

    After each rebalance, the imbalance is minimum, or the maximum load is within its tolerance.
    Return None if members differ in speed, because the speed of new members is not known.
    """
    groups = [_weighted(group, one) for one in prediction.courses[0].rebalances if one.members]
    if not groups or not group.has_equal_speeds:
        return None
    tolerance = max(map(default_tolerance, groups), key=bool)
    levels = default_trajectory_levels(groups, tolerance=tolerance)
    found = optimal_trajectory(groups, levels=levels, limits=limits)
    moves = {"mean": found.moves, "low": found.bound, "high": found.moves}
    return {
        "configuration": OPTIMUM,
        "event": f"all events, {count_of(len(groups), 'rebalance')}",
        "change": {"moves": moves},
        "restart": None,
        "maximum_load": None,
        "proof": str(found.proof),
    }


def _weighted(group: Group, simulated: Group) -> Group:
    if not group.is_weighted:
        return simulated
    topics = tuple(
        replace(
            one,
            weights=None,
            profiles=tuple(partition_weights(group, one.name, n) for n in range(one.partitions)),
        )
        for one in simulated.topics
    )
    return replace(simulated, topics=topics, windows=group.windows)


def _description(event: ScriptEvent) -> str:
    if event.action is Action.GROW:
        return f"{event.topic} grows to {count_of(event.partitions, 'partition')}"
    topics = f" to {', '.join(event.topics)}" if event.topics else ""
    return f"{event.member} {event.action}{topics}".strip()
