"""Compute the rows of the tables ``generations`` and ``rebalances`` of a history."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from kassay.experiments.comparison.comparison_row import ComparisonRow, comparison_row
from kassay.experiments.comparison.optimum import LIMITS, CaseLimits
from kassay.experiments.history.generations import generation_of, generation_row
from kassay.experiments.history.group_records import Row, from_row
from kassay.experiments.history.rebalances import Rebalance, compare_result, find_rebalances
from kassay.experiments.history.reconstruct_generations import reconstruct_generations
from kassay.reference.documents.json_codec import (
    assignment_document,
    group_document,
    parse_assignment,
    parse_group,
)
from kassay.reference.model.ownership import rejoin

_NO_COMPARISON = dict.fromkeys(field.name for field in fields(ComparisonRow))

FOLLOWED = "followed"
"""Folder with the rebalances that ``kassay history --follow`` writes, one folder per batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRebalanceRow:
    """A row of the table ``rebalances`` before the columns of `ComparisonRow` are added.

    ``first`` and ``generation`` are the first and the last generation, ``started`` and
    ``timestamp`` their times in milliseconds since 1970. ``partitions`` is the number of
    assigned partitions. ``document`` and ``assigned`` are JSON: the group document and the
    assignment.
    """

    group: str
    incarnation: int
    generation: int
    first: int
    protocol: str
    started: int | None
    timestamp: int | None
    members: int
    partitions: int
    unknown: str | None
    document: str | None
    assigned: str


def generation_rows(
    rows: Iterable[Row], *, topic_names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Convert rows of records, sorted by group, partition and offset, to rows of generations."""
    for group, group_rows in groupby(rows, key=itemgetter("group")):
        records = map(from_row, group_rows)
        for generation in reconstruct_generations(group, records, topic_names=topic_names):
            yield generation_row(generation)


def rebalance_rows(
    rows: Iterable[Row], *, partition_counts: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Convert rows of generations, sorted by group and number, to rows of rebalances.

    The columns of the comparison are missing, see `compared_row`.
    """
    for _, group_rows in groupby(rows, key=itemgetter("group")):
        generations = map(generation_of, group_rows)
        for rebalance in find_rebalances(generations, partition_counts=partition_counts):
            yield rebalance_row(rebalance)


def compared_row(row: Row, *, limits: CaseLimits = LIMITS) -> dict[str, object]:
    """Add the columns of the comparison with the optimum to a row of `rebalance_rows`.

    An exception in kassay itself becomes the row's ending and detail.
    """
    if row["document"] is None:
        return {**_NO_COMPARISON, **row, "ending": "unknown", "detail": row["unknown"]}
    try:
        comparison = compare_result(
            parse_group(json.loads(row["document"])),
            parse_assignment(json.loads(row["assigned"])),
            assignor=row["assignor"],
            rounds=row["rounds"],
            owners_known=row["unknown"] is None,
            limits=limits,
        )
    except Exception as error:  # noqa: BLE001 - one bad row must not end thousands of others
        failure = {"ending": "error", "detail": f"{type(error).__name__}: {error}"}
        return {**_NO_COMPARISON, **row, **failure}
    names = {"case": row["case"], "assignor": row["assignor"]}
    return {**row, **asdict(comparison_row(comparison)), **names}


def last_document(row: Row) -> dict[str, object] | None:
    """Return a group's document after a rebalance, or None if the row contains no group."""
    if row["document"] is None:
        return None
    group = replace(parse_group(json.loads(row["document"])), id=row["group"])
    assignment = parse_assignment(json.loads(row["assigned"]))
    return group_document(rejoin(group, assignment, generation=row["generation"]))


def rebalance_row(rebalance: Rebalance) -> dict[str, object]:
    """Convert a rebalance to a table row without the columns of the comparison."""
    last, assignment = rebalance.last, rebalance.assignment
    document = None if rebalance.group is None else group_document(rebalance.group)
    row = RecordedRebalanceRow(
        group=last.group,
        incarnation=last.incarnation,
        generation=last.number,
        first=rebalance.first,
        protocol=str(last.protocol),
        started=rebalance.started,
        timestamp=last.timestamp,
        members=len(last.members),
        partitions=sum(assignment.loads().values()),
        unknown=rebalance.unknown,
        document=None if document is None else json.dumps(document, ensure_ascii=False),
        assigned=json.dumps({"assignment": assignment_document(assignment)}, ensure_ascii=False),
    )
    return asdict(row) | {
        "case": rebalance.case,
        "assignor": last.assignor or "",
        "rounds": rebalance.rounds,
    }
