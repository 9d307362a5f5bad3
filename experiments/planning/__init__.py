"""Offline planning: what the best assignment is worth, and how to get there."""

from kassay.experiments.planning.group_changes import (
    Change,
    add_members,
    grow,
    limit_members,
    remove_members,
    repartition,
    reweigh,
    subscribe,
)
from kassay.experiments.planning.move_order import Move, MoveBatch, schedule
from kassay.experiments.planning.plan import Plan, plan
from kassay.experiments.planning.what_if_scenarios import (
    Scenario,
    ScenarioResult,
    scenarios,
    what_if,
)

__all__ = [
    "Change",
    "Move",
    "MoveBatch",
    "Plan",
    "Scenario",
    "ScenarioResult",
    "add_members",
    "grow",
    "limit_members",
    "plan",
    "remove_members",
    "repartition",
    "reweigh",
    "scenarios",
    "schedule",
    "subscribe",
    "what_if",
]
