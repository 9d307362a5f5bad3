"""Rolling restarts of four Java consumers on a broker, and their forecasts.

``python -m tests.conformance.rolling_restarts`` records them in `RECORDED`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from kassay.experiments.prediction.configuration import Configuration
from kassay.experiments.prediction.events import Event, Leave, Return
from kassay.experiments.prediction.members import planned_members
from kassay.experiments.prediction.sample import simulate_sample
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.java_collections import string_order
from tests.conformance.admin import Administrator, GroupView, cluster_with_topics
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

RECORDED = Path(__file__).parents[1] / "data" / "rolling_restarts.json"
TOPICS = {"orders": 17, "payments": 5}
EQUAL = dict.fromkeys([f"pod-{number}" for number in range(4)], ("orders", "payments"))
MIXED = {**EQUAL, "pod-2": ("orders",), "pod-3": ("orders",)}
CASES: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "range": ("range", EQUAL),
    "sticky": ("sticky", EQUAL),
    "cooperative-sticky": ("cooperative-sticky", EQUAL),
    "uniform": ("uniform", EQUAL),
    "sticky, mixed subscriptions": ("sticky", MIXED),
    "uniform, mixed subscriptions": ("uniform", MIXED),
}
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "2000",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Prediction of a rolling restart, and the partitions that the consumers had.

    The partitions are per event and client, the moves per event.
    """

    moves: list[float]
    predicted: list[dict[str, list[str]]]
    observed: list[dict[str, list[str]]]
    certain: int
    """Number of first rebalances in which the member ids alone determine the order of members.

    Kafka's hash maps order two members whose ids share a bin by their insertion, which no client
    sees.
    """


def observe(
    bootstrap: str, admin: Administrator, name: str, assignor: str, subscriptions: Mapping[str, Any]
) -> dict[str, object]:
    """Restart four consumers one after another, and return the group and what they had."""
    live = RunningGroup(f"restarts/{name}", bootstrap, admin, TOPICS)
    profiles = {
        client: Profile(client=client, topics=topics, assignor=assignor)
        for client, topics in subscriptions.items()
    }
    try:
        live.join(*profiles.values())
        live.await_stable()
        [imported] = import_live(LiveCluster(bootstrap, {}), [live.name], ImportOptions())
        if imported.group is None:
            raise RuntimeError(f"{live.name}: {imported}")
        document = group_document(replace(imported.group, id=name, notes=()))
        states = []
        for plan in planned_members(imported.group)[0]:
            live.leave(plan.id)
            states.append(_state(live.await_stable()))
            live.join(profiles[plan.id])
            states.append(_state(live.await_stable()))
    finally:
        live.close()
    return {"group": document, "states": states}


def _state(view: GroupView) -> dict[str, object]:
    return {
        client: {"id": member.id, "assigned": _names(member.assigned)}
        for client, member in sorted(view.members.items())
    }


def _names(partitions: Any) -> list[str]:
    return [f"{topic}-{number}" for topic, number in sorted(partitions)]


def compared(assignor: str, recorded: Mapping[str, Any]) -> Comparison:
    """Compare a recorded rolling restart with its forecast from the group before it."""
    group = parse_group(recorded["group"])
    states = recorded["states"]
    ids: dict[str, deque[str]] = {}
    for state in states:
        for client, member in state.items():
            known = ids.setdefault(client, deque())
            if member["id"] not in (*known, *group.member_table()):
                known.append(member["id"])
    events: list[Event] = []
    for plan in planned_members(group)[0]:
        events += [Leave(members=(plan.id,)), Return(members=(plan.id,))]
    configuration = replace(Configuration.of(group, assignor), assignment_interval=0)
    sample = simulate_sample(
        group, configuration, events, busy=0.2, new_id=lambda client: ids[client].popleft()
    )
    predicted = [
        {client: _names(partitions) for client, partitions in sorted(one.items())}
        for one in sample.assignments
    ]
    observed = [{client: one["assigned"] for client, one in state.items()} for state in states]
    orders = [[member.id for member in one.members] for one in sample.rebalances]
    certain = sum(1 for _ in takewhile(_is_certain, orders))
    return Comparison([one.moves for one in sample.costs], predicted, observed, certain)


def _is_certain(ids: list[str]) -> bool:
    return string_order(ids) == string_order(ids[::-1])


def moves_between_states(states: list[dict[str, list[str]]]) -> list[int]:
    """Count the moves from each state to the next one between members of both."""
    moves = []
    for before, after in pairwise(states):
        owner = {name: client for client, names in after.items() for name in names}
        kept = [(client, name) for client in before if client in after for name in before[client]]
        moves.append(sum(owner[name] != client for client, name in kept))
    return moves


def record(tries: int = 20) -> dict[str, object]:
    """Record each case. Repeat a case until the member ids determine the order of members."""
    documents: dict[str, object] = {}
    with cluster_with_topics(TOPICS, SETTINGS) as (running, admin):
        for name, (assignor, subscriptions) in CASES.items():
            for number in range(tries):
                case = f"{name} {number}"
                seen = observe(running.bootstrap, admin, case, assignor, subscriptions)
                found = compared(assignor, seen)
                if found.certain >= len(found.observed):
                    documents[name] = seen
                    break
    return documents


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record(), separators=(",", ":")) + "\n", encoding="utf-8")
