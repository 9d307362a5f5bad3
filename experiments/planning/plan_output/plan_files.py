"""Convert a plan to the content of its JSON and CSV files."""

import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter

from kassay.experiments.planning.group_plan.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
)
from kassay.experiments.planning.group_plan.host_loads import host_loads
from kassay.experiments.planning.group_plan.plan_alternatives import PlanOption
from kassay.experiments.planning.group_plan.plan_result import MOVE_COLUMNS, GrowthSizing, Plan
from kassay.experiments.planning.group_plan.rack_locality import RackLocality
from kassay.experiments.planning.moves.move_schedule import MoveBatch
from kassay.experiments.planning.plan_output.plan_sentences import not_considered, verdict
from kassay.experiments.planning.preparation.identify_assignor import identify_assignor
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.ownership import rejoin
from kassay.reference.protocol.subscription_messages import StickyUserData, encode_sticky_user_data
from kassay.solver.solution import LevelValue, value_and_bound

VERSION = 3
"""Format version of ``plan.json``; see ``plan.schema.json``."""


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the content of ``plan.json``, which follows ``plan.schema.json``."""
    document: dict[str, object] = {
        "version": VERSION,
        "id": plan.group.id,
        "verdict": verdict(plan),
        "actions": [
            {"action": one.text, "makespan": one.makespan, "moves": one.moves}
            for one in plan.actions
        ],
        "not_considered": not_considered(plan),
        "own_assignor": identify_assignor(plan.group, client=plan.client).record(),
        "status": str(plan.solution.status),
        "interrupted": plan.interrupted,
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
        "options": [_option(option) for option in plan.options],
        "batches": _batches(plan.batches),
        "assignment": assignment_document(plan.assignment),
        "frontier": {
            "measure": str(plan.frontier.measure),
            "complete": plan.frontier.complete,
            "points": [row.record() for row in plan.frontier.table()],
        },
        "steps": [
            {"step": str(step), "moves": len(step.moves), "makespan": list(step.makespan)}
            for step in plan.steps
        ],
        "assignors": [_assignor(outcome) for outcome in plan.assignor_outcomes],
        "members_needed": [_members_needed(sizing) for sizing in plan.growth_sizings],
        "member_losses": [
            {
                "member": loss.member,
                "makespan": value_and_bound(loss.makespan),
                "partitions_without_consumer": loss.unserved,
            }
            for loss in plan.member_losses.losses
        ],
    }
    if plan.racks is not None:
        document["racks"] = _racks(plan.racks)
    hosts = host_loads(plan.group, plan.assignment)
    if hosts:
        document["hosts"] = [asdict(one) for one in hosts]
    return document


def to_json(document: object) -> str:
    """Convert a document to indented JSON text."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def moves_csv(plan: Plan) -> str:
    """Convert the moves of a plan to CSV text, one line per move in execution order."""
    return write_csv(MOVE_COLUMNS, plan.move_rows())


def loads_csv(plan: Plan) -> str:
    """Convert the current and planned loads to CSV text, one line per member."""
    planned = plan.planned.loads
    rows = ((member, load, planned.get(member, 0)) for member, load in plan.current.loads.items())
    return write_csv(("member", "current load", "planned load"), rows)


def static_assignment(plan: Plan) -> dict[str, object]:
    """Return the partitions that each consumer passes to ``KafkaConsumer.assign()``."""
    members = {
        member: {
            topic: [one.partition for one in found]
            for topic, found in groupby(sorted(partitions), key=attrgetter("topic"))
        }
        for member, partitions in plan.assignment.items()
    }
    return {"group": plan.group.id, "members": members}


def group_after(plan: Plan) -> dict[str, object]:
    """Return the group document that describes the group after the planned moves."""
    return group_document(rejoin(plan.group, plan.assignment))


def sticky_seed(plan: Plan) -> dict[str, object]:
    """Return user data that makes Kafka's sticky assignor start from the planned assignment.

    Per member, base64 of version 1 of the user data of Kafka's ``StickyAssignor``:
    the value that ``subscriptionUserData`` must return until the first assignment. A consumer
    calls it at every attempt to join, usually twice before its first assignment.
    """
    members = rejoin(plan.group, plan.assignment).members
    return {
        "group": plan.group.id,
        "assignor": "sticky",
        "version": 1,
        "generation": max((member.generation for member in members), default=-1),
        "members": {
            member.id: b64encode(
                encode_sticky_user_data(StickyUserData(member.owned, member.generation))
            ).decode()
            for member in members
        },
    }


def _metrics(metrics: AssignmentMetrics) -> dict[str, object]:
    return {"loads": metrics.loads, "measures": metrics.measures}


def _level(level: LevelValue) -> dict[str, object]:
    return {
        "level": level.name,
        "value": level.value,
        "bound": level.bound,
        "tolerance": level.slack,
        "proof": str(level.proof),
    }


def _option(option: PlanOption) -> dict[str, object]:
    return {
        "option": option.name,
        "makespan": option.metrics.makespan,
        "imbalance": value_and_bound(option.imbalance),
        "movement": value_and_bound(option.movement),
        "batches": _batches(option.batches),
    }


def _batches(batches: Iterable[MoveBatch]) -> list[dict[str, object]]:
    return [
        {
            "moves": [
                {
                    "topic": move.topic,
                    "partition": move.partition,
                    "from": move.source,
                    "to": move.target,
                    "weight": move.weight,
                }
                for move in batch.moves
            ],
            "makespan": batch.makespan,
            "imbalance": batch.imbalance,
        }
        for batch in batches
    ]


def _racks(racks: RackLocality) -> dict[str, object]:
    return {
        "cross_rack_partitions": {
            "current": racks.current,
            "planned": racks.planned,
            "minimum": value_and_bound(racks.minimum),
        },
        "racks": [
            {
                "rack": rack.name,
                "members": rack.members,
                "partitions": rack.partitions,
                "consumed": {"current": rack.current, "planned": rack.planned},
            }
            for rack in racks.racks
        ],
    }


def _assignor(outcome: AssignorOutcome) -> dict[str, object]:
    metrics = outcome.metrics
    document: dict[str, object] = {
        "assignor": outcome.assignor,
        "ending": outcome.ending,
        "detail": outcome.detail,
        "rebalances": outcome.rebalances,
        "measures": None if metrics is None else metrics.measures,
        "movement": outcome.movement,
        "minimum_movement": outcome.minimum_movement,
    }
    if metrics is not None and metrics.cross_rack is not None:
        document["cross_rack_partitions"] = metrics.cross_rack
    return document


def _members_needed(result: GrowthSizing) -> dict[str, object]:
    return {
        "growth": str(result.growth),
        "makespan": result.makespan,
        "members": value_and_bound(result.sizing.needed),
        "reason": result.sizing.reason,
    }
