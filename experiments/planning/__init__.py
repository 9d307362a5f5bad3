"""Offline planning: optimal assignment of a group, its moves, and what-if scenarios."""

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
from kassay.experiments.planning.move_schedule import Move, MoveBatch, schedule_moves
from kassay.experiments.planning.plan import Plan, plan
from kassay.experiments.planning.what_if import Scenario, ScenarioResult, scenarios, what_if

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
    "schedule_moves",
    "subscribe",
    "what_if",
]
