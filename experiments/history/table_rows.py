"""The rows of the tables of a history: a field is a column."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.history.group_state import Generation, GenerationMember, RebalanceProtocol
from kassay.experiments.history.rebalances import Rebalance, judge
from kassay.experiments.study.table_rows import ComparisonRow, comparison_row
from kassay.reference.documents.json_codec import (
    assignment_document,
    group_document,
    parse_assignment,
    parse_group,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.ownership import rejoin


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceRow:
    """A row of the table ``rebalances``, besides the columns of `ComparisonRow`.

    Parameters
    ----------
    group, life, generation
        The rebalance: the generation that it led to.
    first
        Its first generation, see `Rebalance`.
    protocol
        The group protocol.
    timestamp
        When the generation was recorded, in milliseconds since 1970.
    members, partitions
        How many members there were, and how many partitions they got.
    unknown
        Why moves are not told, in words.
    document, assigned
        The group document and the assignment, as JSON.
    """

    group: str
    life: int
    generation: int
    first: int
    protocol: str
    timestamp: int | None
    members: int
    partitions: int
    unknown: str | None
    document: str | None
    assigned: str


JUDGED = tuple(field.name for field in fields(ComparisonRow))
"""Columns of the comparison with the optimum; None where there is none."""


def generation_row(found: Generation) -> dict[str, object]:
    """Return a generation as a row of plain values."""
    row = asdict(found)
    row["protocol"] = str(found.protocol)
    row["members"] = [_member_row(member) for member in found.members]
    row["counts"] = [{"topic": topic, "partitions": count} for topic, count in found.counts]
    return row


def generation_of(row: Mapping[str, Any]) -> Generation:
    """Return the generation of such a row."""
    counts = tuple((each["topic"], each["partitions"]) for each in row["counts"])
    members = tuple(_member_of(each) for each in row["members"])
    protocol = RebalanceProtocol(row["protocol"])
    return Generation(**{**row, "protocol": protocol, "members": members, "counts": counts})


def rebalance_row(found: Rebalance) -> dict[str, object]:
    """Return a rebalance as a row of which the columns of the comparison are missing."""
    last = found.last
    assignment = found.assignment or Assignment({})
    document = None if found.group is None else group_document(found.group)
    row = RebalanceRow(
        group=last.group,
        life=last.life,
        generation=last.number,
        first=found.first,
        protocol=str(last.protocol),
        timestamp=last.timestamp,
        members=len(last.members),
        partitions=sum(assignment.loads().values()),
        unknown=found.unknown,
        document=None if document is None else json.dumps(document, ensure_ascii=False),
        assigned=json.dumps({"assignment": assignment_document(assignment)}, ensure_ascii=False),
    )
    rest = {"case": found.case, "assignor": last.assignor or "", "rounds": found.rounds}
    return asdict(row) | rest


def judged_row(row: Mapping[str, Any], *, limits: CaseLimits = LIMITS) -> dict[str, object]:
    """Fill the columns of the comparison into a row of `rebalance_row`.

    A rebalance that makes our own code fail says so in its row.
    """
    try:
        found = judge(_rebalance_of(row), limits=limits)
    except Exception as error:  # noqa: BLE001 - one bad row must not end thousands of others
        failure = {"ending": "error", "detail": f"{type(error).__name__}: {error}"}
        return {**dict.fromkeys(JUDGED), **row, **failure}
    if found is None:
        return {**dict.fromkeys(JUDGED), **row, "ending": "unknown", "detail": row["unknown"]}
    kept = {"case": row["case"], "assignor": row["assignor"]}
    return {**row, **asdict(comparison_row(found)), **kept}


def last_document(row: Mapping[str, Any]) -> dict[str, object] | None:
    """Return the group document of a group as a rebalance left it; None if there is none."""
    if row["document"] is None:
        return None
    group = parse_group(json.loads(row["document"]))
    given = parse_assignment(json.loads(row["assigned"]))
    group = replace(group, id=row["group"])
    return group_document(rejoin(group, given, generation=row["generation"]))


def _rebalance_of(row: Mapping[str, Any]) -> Rebalance:
    document = row["document"]
    last = Generation(
        group=row["group"],
        life=row["life"],
        number=row["generation"],
        protocol=RebalanceProtocol(row["protocol"]),
        assignor=row["assignor"],
        timestamp=row["timestamp"],
        partition=None,
        offset=None,
        members=(),
    )
    return Rebalance(
        case=row["case"],
        last=last,
        first=row["first"],
        rounds=row["rounds"],
        group=None if document is None else parse_group(json.loads(document)),
        assignment=parse_assignment(json.loads(row["assigned"])),
        unknown=row["unknown"],
    )


def _member_row(member: GenerationMember) -> dict[str, object]:
    row = asdict(member)
    row["subscription"] = None if member.subscription is None else list(member.subscription)
    if member.assigned is not None:
        row["assigned"] = [
            {"topic": topic, "partitions": list(numbers)} for topic, numbers in member.assigned
        ]
    return row


def _member_of(row: Mapping[str, Any]) -> GenerationMember:
    subscription, assigned = row["subscription"], row["assigned"]
    return GenerationMember(
        **{
            **row,
            "subscription": None if subscription is None else tuple(subscription),
            "assigned": None
            if assigned is None
            else tuple((each["topic"], tuple(each["partitions"])) for each in assigned),
        }
    )
