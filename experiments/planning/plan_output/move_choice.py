"""Data with which the plan page shows the loads after any number of moves."""

import json
from collections.abc import Mapping

from markupsafe import Markup

from kassay.experiments.planning.group_plan.plan_result import Plan
from kassay.reference.model.metrics import Measure

_MEASURES = (Measure.MAKESPAN, Measure.SUM_OF_SQUARES)
"""Measures that the page can compute from the loads."""


def move_choice(plan: Plan, members: Mapping[str, int]) -> Markup | None:
    """Return the moves of a plan and its frontier as JSON text for the script of the page.

    ``members`` are the row numbers of the members in the load table. The loads before the first
    move include the partitions without an owner, which the plan assigns first. The result is None
    for a plan without moves, or for members of different speed.
    """
    moves = [
        (members[move.source], members[move.target], move.weight)
        for batch in plan.batches
        for move in batch.moves
        if move.source is not None
    ]
    if not moves or not plan.group.has_equal_speeds:
        return None
    loads = [0] * len(members)
    for member, row in members.items():
        loads[row] = plan.planned.loads[member]
    for source, target, weight in moves:
        loads[source] += weight
        loads[target] -= weight
    measure = plan.frontier.measure
    points = [
        (point.movement.value, point.imbalance.value, point.imbalance.bound)
        for point in plan.frontier.points
        if measure in _MEASURES
    ]
    text = json.dumps(
        {"loads": loads, "moves": moves, "measure": str(measure), "frontier": points},
        separators=(",", ":"),
    )
    return Markup(text)  # noqa: S704 - only numbers and the name of a measure
