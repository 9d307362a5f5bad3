"""Offline planning: what the best assignment is worth, and how to get there."""

from experiments.planning.changes import (
    Change,
    add_members,
    grow,
    limit_members,
    remove_members,
    repartition,
    reweigh,
    subscribe,
)
from experiments.planning.moves import Batch, Move, schedule
from experiments.planning.plan import Plan, plan
from experiments.planning.scenarios import Outcome, Scenario, scenarios, what_if

__all__ = [
    "Batch",
    "Change",
    "Move",
    "Outcome",
    "Plan",
    "Scenario",
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
