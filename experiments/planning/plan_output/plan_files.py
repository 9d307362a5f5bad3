"""Write the files of a plan: page, ticket, JSON and CSV."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from kassay.experiments.planning.group_plan.assignor_outcomes import AssignmentMetrics
from kassay.experiments.planning.group_plan.host_loads import host_loads
from kassay.experiments.planning.group_plan.plan_result import Plan, loads_csv, moves_csv
from kassay.experiments.planning.plan_output.further_commands import NO_ARGUMENTS, PlanArguments
from kassay.experiments.planning.plan_output.plan_sentences import not_considered, verdict
from kassay.experiments.planning.plan_output.render_plan import render_html, render_ticket
from kassay.experiments.planning.preparation.identify_assignor import identify_assignor
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.group_remarks import target_assignment
from kassay.reference.model.ownership import rejoin
from kassay.solver.solution import LevelValue, value_and_bound

PLAN_PAGE = "report.html"
"""Name of the file with the page of a plan."""
VERSION = 3
"""Format version of ``plan.json``; see ``plan.schema.json``."""


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the content of ``plan.json``, which follows ``plan.schema.json``."""
    target = target_assignment(plan.group)
    document: dict[str, object] = {
        "version": VERSION,
        "id": plan.group.id,
        "verdict": verdict(plan),
        "condition": plan.condition,
        "other_reading": None if plan.other_reading is None else plan.other_reading.record(),
        "state": plan.group.status.state,
        "target": None if target is None else target.record(),
        "actions": [
            {"action": one.text, "makespan": one.makespan, "moves": one.moves}
            for one in plan.actions
        ],
        "not_considered": not_considered(plan),
        "own_assignor": identify_assignor(plan.group, client=plan.client).record(),
        "status": str(plan.solution.status),
        "interrupted": plan.interrupted,
        "is_first": plan.is_first,
        "limiting_partition": None
        if plan.limiting_partition is None
        else plan.limiting_partition.record(),
        "method": plan.solution.method,
        "levels": [_level(level) for level in plan.solution.levels],
        "constraints": [str(constraint) for constraint in plan.constraints],
        "makespan": value_and_bound(plan.makespan),
        "current": {
            **_metrics(plan.current),
            "unowned": len(plan.unowned),
            "idle": list(plan.idle),
        },
        "planned": _metrics(plan.planned),
        "movement": plan.movement,
        "options": [option.record() for option in plan.options],
        "batches": [batch.record() for batch in plan.batches],
        "assignment": assignment_document(plan.assignment),
        "frontier": {
            "measure": str(plan.frontier.measure),
            "complete": plan.frontier.complete,
            "points": [row.record() for row in plan.frontier.table()],
        },
        "first_moves": [one.record() for one in plan.first_moves()],
        "steps": [
            {"step": str(step), "moves": len(step.moves), "makespan": list(step.makespan)}
            for step in plan.steps
        ],
        "assignors": [outcome.record() for outcome in plan.assignor_outcomes],
        "members_needed": [sizing.record() for sizing in plan.growth_sizings],
        "member_losses": list(_losses(plan)),
    }
    if plan.racks is not None:
        document["racks"] = plan.racks.record()
    hosts = host_loads(plan.group, plan.assignment)
    if hosts:
        document["hosts"] = [asdict(one) for one in hosts]
    return document


def to_json(document: object) -> str:
    """Convert a document to indented JSON text."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def static_assignment(plan: Plan) -> dict[str, object]:
    """Return the partitions that each consumer passes to ``KafkaConsumer.assign()``.

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


def group_after(plan: Plan) -> dict[str, object]:
    """Return the group document that describes the group after the planned moves."""
    return group_document(rejoin(plan.group, plan.assignment))


def _losses(plan: Plan) -> Iterator[dict[str, object]]:
    for loss in plan.member_losses.losses:
        yield {
            "member": loss.member,
            "makespan": value_and_bound(loss.makespan),
            "partitions_without_consumer": loss.unserved,
        }


def _metrics(metrics: AssignmentMetrics) -> dict[str, object]:
    return {"loads": metrics.loads, "measures": metrics.measures}


def _level(level: LevelValue) -> dict[str, object]:
    return {
        "level": level.name,
        **(value_and_bound(level) or {}),
        "tolerance": level.slack,
        "proof": str(level.proof),
    }


def directory_names(ids: Iterable[str | None]) -> list[str]:
    """Derive a unique directory name from the id of each group.

    Examples
    --------
    >>> directory_names(["orders", "a b/c", "orders", None])
    ['orders', 'a-b-c', 'orders-3', 'group-4']
    """
    names: dict[str, None] = {}
    for number, id in enumerate(ids, 1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", id or "").strip(".-")
        names[name if name and name not in names else f"{name or 'group'}-{number}"] = None
    return list(names)


def write_plan(
    plan: Plan,
    directory: Path,
    *,
    arguments: PlanArguments = NO_ARGUMENTS,
) -> None:
    """Write the page and the files of a plan. Create the directory if it does not exist.

    ``arguments`` are those of ``kassay plan``, for further commands.
    """
    place = str(directory)
    files = {
        PLAN_PAGE: render_html(plan, directory=place, arguments=arguments),
        "plan.json": to_json(plan_document(plan)),
        "moves.csv": moves_csv(plan),
        "loads.csv": loads_csv(plan),
        "ticket.md": render_ticket(plan, directory=place, arguments=arguments),
        "static-assignment.json": to_json(static_assignment(plan)),
        "after.jsonl": json.dumps(group_after(plan), ensure_ascii=False) + "\n",
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
