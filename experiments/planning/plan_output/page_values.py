"""Values of the template of a plan's page: loads, drawing, frontier and slider."""

import json
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from kassay.experiments.planning.group_plan.plan_alternatives import scheduled_measure
from kassay.experiments.planning.group_plan.plan_result import Plan, loads_csv, moves_csv
from kassay.experiments.planning.preparation.plan_verdict import count_of
from kassay.experiments.planning.preparation.planning_levels import level_words
from kassay.experiments.plotting.assignment_figure import draw_assignment
from kassay.experiments.plotting.frontier_drawing import FrontierCurve, frontier_svg
from kassay.reference.model.metrics import Measure, member_units, relative_loads, shown

_MAX_DRAWN_PARTITIONS = 150
_COMPARED_PREFIXES = (1, 3, 10, 30)
"""Numbers of first moves that the page compares with the frontier."""


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
        "has_prefixes": len(_prefixes(plan)) > 1,
        "prefix_gaps": list(_prefix_gaps(plan)),
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
    curve, units = FrontierCurve.of(plan.frontier, _prefixes(plan)), member_units(plan.group)
    if plan.frontier.measure is not Measure.MAKESPAN or units.has_equal_speeds:
        return curve
    points, bounds, prefixes = (
        [(moves, round(units.shown(load))) for moves, load in each]
        for each in (curve.points, curve.bounds, curve.prefixes)
    )
    return FrontierCurve(points=points, bounds=bounds, prefixes=prefixes)


def _prefixes(plan: Plan) -> list[tuple[int, int]]:
    """Compute the number of moves and the imbalance after each batch of the plan."""
    if plan.frontier.measure is not scheduled_measure(plan.frontier.measure):
        return []
    moved, prefixes = 0, []
    if not any(move.source is None for move in plan.moves):
        prefixes.append((0, plan.current.measures[str(plan.frontier.measure)]))
    for batch in plan.batches:
        moved += sum(move.source is not None for move in batch.moves)
        prefixes.append((moved, batch.imbalance))
    return prefixes


def _prefix_gaps(plan: Plan) -> Iterator[str]:
    """Compare the first moves of the list with the points of the frontier."""
    lowest = {row.moves: row.imbalance for row in plan.frontier.table()}
    measure = plan.frontier.measure
    name = level_words(measure)
    for moves, imbalance in _prefixes(plan):
        if moves in _COMPARED_PREFIXES and moves < plan.movement and moves in lowest:
            excess = (imbalance - lowest[moves]) / max(1, lowest[moves])
            value, best = (shown(measure, one, plan.group) for one in (imbalance, lowest[moves]))
            yield (
                f"After {count_of(moves, 'move')} of the list: {name} {value:,}, "
                f"{excess:.1%} above the point with {count_of(moves, 'move')} ({best:,})."
            )


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
