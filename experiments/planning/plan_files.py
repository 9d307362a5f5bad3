"""A plan as files that machines, tickets and consumers can take."""

import csv
import io
import json
from base64 import b64encode
from collections.abc import Iterable

from kassay.experiments.planning.assignor_outcomes import AssignorOutcome
from kassay.experiments.planning.plan import Plan, PlanOption
from kassay.experiments.planning.rack_locality import RackLocality
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.reference.protocol.consumer_protocol import StickyUserData, encode_sticky_user_data
from kassay.solver.solution import LevelValue

VERSION = 1
"""Of the form of ``plan.json``; see ``plan.schema.json``."""


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the plan as ``plan.schema.json`` describes it."""
    document: dict[str, object] = {
        "version": VERSION,
        "id": plan.group.id,
        "status": str(plan.optimum.status),
        "method": plan.optimum.method,
        "levels": [
            {"level": level.name, "value": level.value, "bound": level.bound}
            for level in plan.optimum.levels
        ],
        "makespan": _bounded(plan.makespan),
        "today": {
            "loads": plan.today.loads,
            "measures": plan.today.measures,
            "unowned": plan.unowned,
            "idle": list(plan.idle),
        },
        "then": {"loads": plan.then.loads, "measures": plan.then.measures},
        "moved": plan.moved,
        "batches": [
            {
                "moves": [
                    {
                        "topic": move.topic,
                        "partition": move.partition,
                        "from": move.giver,
                        "to": move.taker,
                        "weight": move.weight,
                    }
                    for move in batch.moves
                ],
                "makespan": batch.makespan,
            }
            for batch in plan.batches
        ],
        "assignment": assignment_document(plan.assignment),
        "frontier": {
            "measure": str(plan.frontier.measure),
            "complete": plan.frontier.complete,
            "points": [
                {
                    "moves": point.movement.value,
                    "imbalance": point.imbalance.value,
                    "proven": point.is_proven,
                }
                for point in plan.frontier.points
            ],
        },
        "reasons": [str(reason) for reason in plan.reasons],
        "alternatives": [_alternative(one) for one in plan.alternatives],
        "needs": [_need(one) for one in plan.needs],
        "losses": [
            {
                "member": loss.member,
                "makespan": _bounded(loss.makespan),
                "unserved": loss.unserved,
            }
            for loss in plan.resilience.losses
        ],
    }
    if plan.racks is not None:
        document["racks"] = _racks(plan.racks)
    return document


def to_json(document: object) -> str:
    """Write a document for people and machines."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def moves_csv(plan: Plan) -> str:
    """Write the moves as CSV, a line each, in the order to make them."""
    rows = (
        (number, move.topic, move.partition, move.giver or "", move.taker, move.weight)
        for number, batch in enumerate(plan.batches, 1)
        for move in batch.moves
    )
    return _csv(("batch", "topic", "partition", "from", "to", "weight"), rows)


def loads_csv(plan: Plan) -> str:
    """Write the loads as CSV, a line a member."""
    rows = (
        (member, load, plan.then.loads.get(member, 0)) for member, load in plan.today.loads.items()
    )
    return _csv(("member", "load today", "load then"), rows)


def static_assignment(plan: Plan) -> dict[str, object]:
    """Return what each consumer passes to ``assign()``: topic to partition numbers."""
    members: dict[str, dict[str, list[int]]] = {}
    for member, partitions in plan.assignment.items():
        lists: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            lists.setdefault(topic, []).append(number)
        members[member] = lists
    return {"group": plan.group.id, "members": members}


def group_after(plan: Plan) -> dict[str, object]:
    """Return the group document of the group once the plan is carried out.

    An assignor that keeps what members own, fed with it, starts from the plan.
    """
    return group_document(rejoin(plan.group, plan.assignment))


def sticky_seed(plan: Plan) -> dict[str, object]:
    """Return what sticky assignors would send had the plan been their last assignment.

    By member, the user data of Kafka's ``StickyAssignor``, version 1, in base64: what its
    ``subscriptionUserData`` must return when the consumer joins for the first time.
    """
    settled = rejoin(plan.group, plan.assignment)
    return {
        "group": plan.group.id,
        "assignor": "sticky",
        "version": 1,
        "generation": max((member.generation for member in settled.members), default=-1),
        "members": {
            member.id: b64encode(
                encode_sticky_user_data(StickyUserData(member.owned, member.generation))
            ).decode()
            for member in settled.members
        },
    }


def unowned_names(plan: Plan) -> list[str]:
    """Name the partitions that nobody owns today."""
    owners, subscribers = ownership(plan.group).owners, plan.group.subscribers()
    return [
        f"{topic}-{number}"
        for topic, column in owners.items()
        if subscribers[topic]
        for number, owner in enumerate(column.tolist())
        if owner == NO_OWNER
    ]


def _racks(racks: RackLocality) -> dict[str, object]:
    return {
        "across": {
            "today": racks.today,
            "then": racks.then,
            "least": None if racks.least is None else _bounded(racks.least),
        },
        "racks": [
            {
                "rack": rack.name,
                "members": rack.members,
                "partitions": rack.partitions,
                "read": {"today": rack.today, "then": rack.then},
            }
            for rack in racks.racks
        ],
    }


def _alternative(one: AssignorOutcome) -> dict[str, object]:
    document: dict[str, object] = {
        "assignor": one.assignor,
        "ending": one.ending,
        "detail": one.detail,
        "rounds": one.rounds,
        "measures": None if one.standing is None else one.standing.measures,
        "moves": one.moves,
        "needed": one.needed,
    }
    if one.standing is not None and one.standing.across_racks is not None:
        document["across_racks"] = one.standing.across_racks
    return document


def _need(one: PlanOption) -> dict[str, object]:
    needed = one.sizing.needed
    return {
        "growth": str(one.growth),
        "makespan": one.makespan,
        "members": None if needed is None else _bounded(needed),
        "reason": one.sizing.reason,
    }


def _bounded(value: LevelValue) -> dict[str, int]:
    return {"value": value.value, "bound": value.bound}


def _csv(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
