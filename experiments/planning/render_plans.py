"""Render plans as HTML pages, tickets, texts, JSON and CSV."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import jinja2
from markupsafe import Markup

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.planning import plan_sentences
from kassay.experiments.planning.assignor_outcomes import AssignorOutcome
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan import MOVE_COLUMNS, Plan
from kassay.experiments.planning.plan_result import level_words, short_names, shorten
from kassay.experiments.planning.window_plan_check import drawn_loads
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.plotting.svg_drawings import FrontierCurve, draw_assignment
from kassay.reference.documents.files import write_csv, write_text
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group_remarks import target_assignment
from kassay.reference.model.load_metrics import (
    Measure,
    host_units,
    member_units,
    relative_loads,
    shown,
)
from kassay.solver.objective import HostImbalance
from kassay.solver.solution import value_and_bound

_TEMPLATES = Path(__file__).parent / "templates"
PAGE, TICKET, TEXT = "plan.html.j2", "ticket.md.j2", "summary.txt.j2"
"""Templates for the HTML page, the ticket and the text output of a plan."""
_NO_ARGUMENTS = plan_sentences.PlanArguments()
_MAX_DRAWN_PARTITIONS = 150
_MAX_LISTED_MOVES = 500
"""Maximum number of moves on the HTML page; ``moves.csv`` has all moves."""


def render_plan(
    plan: Plan,
    template: str,
    *,
    directory: str | None = ".",
    arguments: plan_sentences.PlanArguments = _NO_ARGUMENTS,
) -> str:
    """Render a plan with a template for a page, a ticket or text.

    Equal plans give equal bytes. ``directory`` is the path of the plan's files, or None if none are
    written: the text then lists more moves. ``arguments`` are those of `kassay plan`.
    """
    context = _context(plan, directory, arguments)
    if template == PAGE:
        context |= _page_context(plan)
    return _environment(plan, autoescape=template == PAGE).get_template(template).render(**context)


def _context(
    plan: Plan, directory: str | None, arguments: plan_sentences.PlanArguments
) -> dict[str, object]:
    listed = 0
    batches = []
    for number, batch in enumerate(plan.batches, 1):
        if listed >= _MAX_LISTED_MOVES:
            break
        batches.append((number, batch))
        listed += len(batch.moves)
    short = short_names(plan.group.members)
    return {
        "plan": plan,
        "is_written": directory is not None,
        "short": short,
        "steps": [shorten(str(step), short) for step in plan.steps],
        "summary": plan_sentences.plan_summary(plan, directory, arguments),
        "name": plan.group.id or "the group",
        "batches": batches,
        "unlisted": len(plan.moves) - listed,
        "hosts": plan.hosts(),
        "racks": plan.racks(),
        "equal_speeds": host_units(plan.group).has_equal_speeds,
        "drawn": None
        if plan.windows is None
        else drawn_loads(plan.group, keep_owners(plan.group), plan.assignment),
        "by_host": any(isinstance(level, HostImbalance) for level in plan.levels),
    }


def _environment(plan: Plan, *, autoescape: bool) -> jinja2.Environment:
    templates, units = environment(_TEMPLATES, autoescape=autoescape), member_units(plan.group)
    templates.filters["load"] = units.shown
    templates.filters["shown"] = lambda value, name: shown(name, value, plan.group)
    templates.filters["proof"] = partial(plan_sentences.bound_text, group=plan.group)
    templates.filters["words"] = level_words
    templates.filters["value"] = partial(plan_sentences.value_text, group=plan.group)
    templates.filters["label"] = partial(plan_sentences.option_label, plan)
    templates.filters["address"] = lambda host: host.removeprefix("/")
    return templates


def _page_context(plan: Plan) -> dict[str, object]:
    drawn_frontier = ""
    if len(plan.frontier.points) > 1:
        with suppress(ModuleNotFoundError):  # Matplotlib is optional, and slow to import.
            from kassay.experiments.plotting.matplotlib_figures import frontier_svg  # noqa: PLC0415

            measure = level_words(plan.frontier.measure)
            drawn_frontier = frontier_svg(frontier_curve(plan), measure=measure)
    rows, short = _load_rows(plan), short_names(plan.group.members)
    order = [str(row["member"]) for row in rows]
    get = attrgetter("movement.value", "imbalance.value", "imbalance.bound")
    return {
        "rows": rows,
        "host_of": {one.id: one.client.host for one in plan.group.members},
        "choice": _move_choice(plan, order),
        "drawing": draw_assignment(
            plan.group,
            plan.assignment,
            title="Planned assignment",
            names={member: short[member] for member in order},
        )
        if plan.group.partition_count <= _MAX_DRAWN_PARTITIONS
        else "",
        "frontier_svg": drawn_frontier,
        "has_prefixes": len(plan.imbalance_by_moves()) > 1,
        "frontier_csv": write_csv(("moves", "imbalance", "bound"), map(get, plan.frontier.points)),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
    }


def _move_choice(plan: Plan, members: Sequence[str]) -> Markup | None:
    """Return JSON from which the page shows the loads after a number of moves, or None.

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
    if not moves or plan.group.window_count > 1:
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
            point.movement.value,
            shown(measure, point.imbalance.value, plan.group),
            shown(measure, point.imbalance.bound, plan.group),
        )
        for point in plan.frontier.points
        if has_points
    ]
    speeds = [plan.group.member_table()[member].speed for member in members]
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
    """Collect the points, bounds and moves for the drawing of a plan's frontier."""
    curve = FrontierCurve.of(plan.frontier, plan.imbalance_by_moves())
    units = member_units(plan.group)
    if plan.frontier.measure is not Measure.MAKESPAN or units.has_equal_speeds:
        return curve
    points, bounds, prefixes = (
        [(moves, round(units.shown(load))) for moves, load in each]
        for each in (curve.points, curve.bounds, curve.prefixes)
    )
    return FrontierCurve(points=points, bounds=bounds, prefixes=prefixes)


def _load_rows(plan: Plan) -> list[dict[str, object]]:
    """Return the rows of the load table, with bar lengths in per cent.

    If members differ in speed, percentages and overloads are computed from relative loads.
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


def moves_csv(plan: Plan) -> str:
    """Convert the moves of a plan to CSV."""
    return write_csv(MOVE_COLUMNS, plan.move_rows())


def loads_csv(plan: Plan) -> str:
    """Convert the current and planned loads of each member to CSV."""
    planned = plan.planned.loads
    rows = ((member, load, planned.get(member, 0)) for member, load in plan.current.loads.items())
    return write_csv(("member", "current load", "planned load"), rows)


PLAN_PAGE = "report.html"
"""Name of the file with the page of a plan."""
VERSION = 4
"""Format version of ``plan.json``; see ``plan.schema.json``."""


def actions_record(plan: Plan) -> list[dict[str, object]]:
    """Convert the effective actions to JSON."""
    return [
        {
            "action": one.text,
            "configuration": one.configuration,
            "maximum_load": one.predicted_load
            if one.predicted_load is not None
            else shown(Measure.MAKESPAN, one.makespan, plan.group),
            "moves": one.moves,
            "rebalances": one.rebalances,
        }
        for one in plan.actions
    ]


def plan_document(
    plan: Plan, *, arguments: plan_sentences.PlanArguments = _NO_ARGUMENTS
) -> dict[str, object]:
    """Return the content of ``plan.json``.

    ``arguments`` are those of `kassay plan`, from which commands in the document are built.
    """
    target, other = target_assignment(plan.group), plan.other_reading
    document: dict[str, object] = {
        "version": VERSION,
        "id": plan.group.id,
        "verdict": plan_sentences.verdict(plan),
        "condition": plan.condition,
        "other_reading": None if other is None else other.verdict.record(),
        "state": plan.group.status.state,
        "target": None if target is None else target._asdict(),
        "cause": None if plan.cause is None else plan.cause.record(),
        "to_do": plan.to_do.text,
        "actions": actions_record(plan),
        "not_considered": plan_sentences.not_considered(plan, arguments),
        "own_assignor": identify_assignor(plan.group, client=plan.client).record(),
        "status": str(plan.solution.status),
        "interrupted": plan.interrupted,
        "limiting_partition": None
        if plan.limiting_partition is None
        else plan.limiting_partition.record(),
        "method": plan.solution.method,
        "levels": [
            {
                "level": level.name,
                **(value_and_bound(level) or {}),
                "tolerance": level.slack,
                "proof": str(level.proof),
            }
            for level in plan.solution.levels
        ],
        "constraints": [str(constraint) for constraint in plan.constraints],
        "makespan": value_and_bound(plan.makespan),
        "current": {
            "loads": plan.current.loads,
            "measures": plan.current.measures,
            "unowned": len(plan.unowned),
            "idle": list(plan.idle),
        },
        "planned": {"loads": plan.planned.loads, "measures": plan.planned.measures},
        "movement": plan.movement,
        "options": [
            {
                "option": option.name,
                "makespan": option.metrics.makespan,
                "imbalance": value_and_bound(option.imbalance),
                "movement": value_and_bound(option.movement),
                "batches": [batch.record() for batch in option.batches],
            }
            for option in plan.options
        ],
        "batches": [batch.record() for batch in plan.batches],
        "assignment": assignment_document(plan.assignment),
        "frontier": frontier_record(plan),
        "steps": steps_record(plan),
        "assignors": [_outcome(one) for one in plan.assignor_outcomes],
    }
    if racks := plan.racks():
        document["racks"] = {
            "cross_rack_partitions": {
                "current": plan.current.cross_rack,
                "planned": plan.planned.cross_rack,
            },
            "racks": racks,
        }
    if plan.windows is not None:
        document["windows"] = asdict(plan.windows)
    if hosts := plan.hosts():
        document["hosts"] = hosts
    return document


def frontier_record(plan: Plan) -> dict[str, object]:
    """Convert the frontier to JSON, with the imbalance by number of moves."""
    return {
        "measure": str(plan.frontier.measure),
        "complete": plan.frontier.complete,
        "points": [point.record() for point in plan.frontier.points],
    }


def steps_record(plan: Plan) -> list[dict[str, object]]:
    """Convert the steps of a plan to JSON."""
    return [
        {"step": str(step), "moves": len(step.moves), "makespan": list(step.makespan)}
        for step in plan.steps
    ]


def to_json(document: object) -> str:
    """Convert a document to indented JSON text."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def static_assignment(plan: Plan) -> dict[str, object]:
    """Return the partitions of each member for ``KafkaConsumer.assign()``.

    ``client_ids`` has the ``client.id`` of each member for which the source shows it.
    """
    members = {
        member: {
            topic: [one.partition for one in found]
            for topic, found in groupby(sorted(partitions), key=attrgetter("topic"))
        }
        for member, partitions in plan.assignment.items()
    }
    clients = {one.id: one.client.id for one in plan.group.members if one.client.id is not None}
    return {
        "group": plan.group.id,
        "members": members,
        **({"client_ids": clients} if clients else {}),
    }


def _outcome(outcome: AssignorOutcome) -> dict[str, object]:
    metrics = outcome.metrics
    crossing = None if metrics is None else metrics.cross_rack
    return {
        "assignor": outcome.assignor,
        "ending": outcome.ending,
        "detail": outcome.detail,
        "rebalances": outcome.rebalances,
        "measures": None if metrics is None else metrics.measures,
        "movement": outcome.movement,
        "minimum_movement": outcome.minimum_movement,
        **({} if crossing is None else {"cross_rack_partitions": crossing}),
    }


def write_plan(
    plan: Plan, directory: Path, *, arguments: plan_sentences.PlanArguments = _NO_ARGUMENTS
) -> None:
    """Write the HTML page and the other files of a plan to a directory.

    ``arguments`` are those of ``kassay plan``, from which further commands are built.
    """
    place, after = str(directory), group_document(rejoin(plan.group, plan.assignment))
    files = {
        PLAN_PAGE: render_plan(plan, PAGE, directory=place, arguments=arguments),
        "plan.json": to_json(plan_document(plan, arguments=arguments)),
        "moves.csv": moves_csv(plan),
        "loads.csv": loads_csv(plan),
        "ticket.md": render_plan(plan, TICKET, directory=place, arguments=arguments),
        "static-assignment.json": to_json(static_assignment(plan)),
        "after.jsonl": json.dumps(after, ensure_ascii=False) + "\n",
    }
    for name, text in files.items():
        write_text(directory / name, text)
