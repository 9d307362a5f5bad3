"""Values of the template of a plan's page: loads, drawing, frontier and slider."""

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from kassay.experiments.planning.group_plan.plan_result import Plan, loads_csv, moves_csv
from kassay.experiments.planning.preparation.planning_levels import level_words
from kassay.experiments.plotting.svg_drawings import FrontierCurve, draw_assignment, frontier_svg
from kassay.reference.model.metrics import Measure, member_units, relative_loads, shown

_MAX_DRAWN_PARTITIONS = 150


def page_context(plan: Plan, names: Mapping[str, str]) -> dict[str, object]:
    """Compute the template values that only the HTML page uses.

    ``names`` are short names of the members.
    """
    is_drawn = plan.group.partition_count <= _MAX_DRAWN_PARTITIONS
    rows = _load_rows(plan)
    return {
        "rows": rows,
        "host_of": {one.id: one.client.host for one in plan.group.members},
        "choice": _move_choice(plan, [str(row["member"]) for row in rows]),
        "drawing": draw_assignment(
            plan.group,
            plan.assignment,
            title="Planned assignment",
            names=names,
        )
        if is_drawn
        else "",
        "frontier_svg": frontier_svg(
            frontier_curve(plan), measure=level_words(plan.frontier.measure)
        )
        if len(plan.frontier.points) > 1
        else "",
        "has_prefixes": len(plan.imbalance_by_moves()) > 1,
        "frontier_csv": "moves,imbalance,bound\n"
        + "".join(
            f"{row.moves},{row.imbalance},{row.imbalance_bound}\n" for row in plan.frontier.table()
        ),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
    }


def _move_choice(plan: Plan, members: Sequence[str]) -> Markup | None:
    """Return the data with which the page shows the loads after any number of moves, as JSON.

    ``members`` are the members in the order of the load table. The loads before the first
    move include the partitions without an owner, which the plan assigns first. The result is None
    for a plan without moves.
    """
    row_of = {member: row for row, member in enumerate(members)}
    moves = [
        (row_of[move.source], row_of[move.target], move.weight)
        for batch in plan.batches
        for move in batch.moves
        if move.source is not None
    ]
    if not moves:
        return None
    loads = [plan.planned.loads[member] for member in members]
    for source, target, weight in moves:
        loads[source] += weight
        loads[target] -= weight
    measure, units = plan.frontier.measure, member_units(plan.group)
    has_points = measure is Measure.MAKESPAN or (
        measure is Measure.SUM_OF_SQUARES and units.has_equal_speeds
    )
    points = [
        (
            row.moves,
            *(shown(measure, one, plan.group) for one in (row.imbalance, row.imbalance_bound)),
        )
        for row in plan.frontier.table()
        if has_points
    ]
    speed_of = {member.id: member.speed for member in plan.group.members}
    speeds = [speed_of[member] for member in members]
    text = json.dumps(
        {
            "loads": loads,
            "moves": moves,
            "speeds": speeds,
            "measure": str(measure),
            "frontier": points,
        },
        separators=(",", ":"),
    )
    return Markup(text)  # noqa: S704 - only numbers and the name of a measure


def frontier_curve(plan: Plan) -> FrontierCurve:
    """Collect the data for drawing a plan's frontier: points, bounds and planned moves."""
    curve, units = (
        FrontierCurve.of(plan.frontier, plan.imbalance_by_moves()),
        member_units(plan.group),
    )
    if plan.frontier.measure is not Measure.MAKESPAN or units.has_equal_speeds:
        return curve
    points, bounds, prefixes = (
        [(moves, round(units.shown(load))) for moves, load in each]
        for each in (curve.points, curve.bounds, curve.prefixes)
    )
    return FrontierCurve(points=points, bounds=bounds, prefixes=prefixes)


def _load_rows(plan: Plan) -> list[dict[str, object]]:
    """Return the rows of the load table. Percentages refer to the maximum of both assignments.

    If members differ in speed, percentages and overloads are those of relative loads.
    """
    planned = plan.planned
    maximum = max(plan.current.makespan, planned.makespan, 1)
    before, after = (
        relative_loads(plan.group, each) for each in (plan.current.loads, planned.loads)
    )
    return [
        {
            "member": member,
            "current": load,
            "planned": planned.loads[member],
            "current_percent": round(100 * before[member] / maximum, 1),
            "planned_percent": round(100 * after[member] / maximum, 1),
            "is_overloaded": before[member] > planned.makespan,
        }
        for member, load in sorted(plan.current.loads.items(), key=lambda one: (-one[1], one[0]))
    ]
