"""Rows of generations and rebalances of a history, and hindsight optima per group."""

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from kassay.experiments.comparison.comparison_result import ComparisonRow, comparison_row
from kassay.experiments.comparison.optimum import LIMITS, CaseLimits
from kassay.experiments.history.generations import (
    Generation,
    GenerationReplay,
    counts_by_generation,
    generation_of,
    generation_row,
    reconstruct_generations,
)
from kassay.experiments.history.group_records import GroupRecord, Row, from_row
from kassay.experiments.history.rebalances import (
    Rebalance,
    RebalanceFinder,
    compare_result,
    find_rebalances,
)
from kassay.reference.documents.json_codec import (
    assignment_document,
    group_document,
    parse_assignment,
    parse_group,
)
from kassay.reference.model.assignment import Assignment, movement, rejoin, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.trajectory.trajectory import optimal_trajectory

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
        partitions=sum(assignment.counts().values()),
        unknown=rebalance.unknown,
        document=None if document is None else json.dumps(document, ensure_ascii=False),
        assigned=json.dumps({"assignment": assignment_document(assignment)}, ensure_ascii=False),
    )
    return asdict(row) | {
        "case": rebalance.case,
        "assignor": last.assignor or "",
        "rounds": rebalance.rounds,
    }


_MAX_REBALANCES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HindsightRow:
    """Moves of a group over its recorded rebalances with known owners.

    The fewest moves are those with minimum imbalance at each rebalance: one rebalance after the
    other, and over all rebalances (``hindsight``) with a proven lower bound. A gap in the records,
    and each 200 rebalances, start a new sequence from the recorded owners; the numbers are sums.
    """

    group: str
    hindsight_rebalances: int = 0
    moves_made: int = 0
    fewest_at_each: int = 0
    hindsight: int = 0
    hindsight_bound: int = 0


def hindsight_rows(rows: Iterable[Row], *, limits: SearchLimits) -> Iterator[dict[str, object]]:
    """Convert rows of rebalances, sorted by group, incarnation and generation, to one per group."""
    for name, group_rows in groupby(rows, key=itemgetter("group")):
        total = HindsightRow(group=name)
        for _, incarnation in groupby(group_rows, key=itemgetter("incarnation")):
            for sequence in _sequences(incarnation):
                total = _added(total, sequence, limits)
        yield asdict(total)


def _sequences(rows: Iterable[Row]) -> Iterator[list[tuple[Group, Assignment]]]:
    """Yield sequences of consecutive rebalances with known owners and valid assignments."""
    for is_known, known in groupby(map(_known_rebalance, rows), key=lambda one: one is not None):
        while is_known and (part := [one for one in islice(known, _MAX_REBALANCES) if one]):
            yield part


def _known_rebalance(row: Row) -> tuple[Group, Assignment] | None:
    if row["document"] is None or row["unknown"] is not None:
        return None
    group = parse_group(json.loads(row["document"]))
    assignment = parse_assignment(json.loads(row["assigned"]))
    return None if any(violations(group, assignment)) else (group, assignment)


def _added(
    total: HindsightRow, sequence: list[tuple[Group, Assignment]], limits: SearchLimits
) -> HindsightRow:
    groups = [_with_lasting_ids(group) for group, _ in sequence]
    try:
        found = optimal_trajectory(groups, limits=limits)
    except InputError:
        return total
    return replace(
        total,
        hindsight_rebalances=total.hindsight_rebalances + len(sequence),
        moves_made=total.moves_made + sum(movement(*one) for one in sequence),
        fewest_at_each=total.fewest_at_each + sum(found.one_after_the_other),
        hindsight=total.hindsight + found.moves,
        hindsight_bound=total.hindsight_bound + found.bound,
    )


def _with_lasting_ids(group: Group) -> Group:
    """Return a group whose static members have their instance ids, which outlast a restart."""
    members = tuple(
        one if one.instance_id is None else replace(one, id=f"static {one.instance_id}")
        for one in group.members
    )
    return replace(group, members=members)


@dataclass(slots=True)
class GroupFollower:
    """Finder of one group's rebalances, which keeps state between batches of records.

    A record is applied once: records up to the last applied offset are skipped. A generation
    is complete when the next one begins, or when `close` is called. Each
    rebalance is returned only once.
    """

    replay: GenerationReplay
    finder: RebalanceFinder = field(default_factory=RebalanceFinder)
    counts: dict[str, int] = field(default_factory=dict)
    offset: int = -1
    complete: tuple[int, int] = (-1, -1)  # incarnation and number of the last complete generation

    @classmethod
    def of(cls, group: str, state: bytes | None) -> "GroupFollower":
        """Restore the follower of a group from the bytes of `state`, or create a new follower."""
        if state is None:
            return cls(GenerationReplay(group, {}))
        follower: GroupFollower = pickle.loads(state)  # noqa: S301 - of the own checkpoint
        return follower

    def state(self) -> bytes:
        """Serialise the follower to bytes, from which `of` restores the follower.

        The topic names of the cluster are not included.
        """
        self.replay.topic_names = {}
        return pickle.dumps(self)

    def apply(
        self, records: Iterable[GroupRecord], given: Mapping[str, int]
    ) -> Iterator[dict[str, object]]:
        """Apply records in order of offset, and yield a row for each completed rebalance.

        ``given`` are known partition counts by topic.
        """
        for record in records:
            if record.offset is None or record.offset <= self.offset:
                continue
            self.offset = record.offset
            for generation in self.replay.apply(record):
                yield from self._rows(generation, given)

    def close(self, given: Mapping[str, int]) -> Iterator[dict[str, object]]:
        """Treat the last generation as complete, and yield the row of its rebalance, if any."""
        if self.replay.pending is not None:
            yield from self._rows(self.replay.pending, given)

    def _rows(
        self, generation: Generation, given: Mapping[str, int]
    ) -> Iterator[dict[str, object]]:
        number = (generation.incarnation, generation.number)
        if number <= self.complete:
            return
        self.complete = number
        observed = {topic: max(n, given.get(topic, 0)) for topic, n in self.counts.items()}
        [counts] = counts_by_generation([generation], {**given, **observed})
        self.counts = {**observed, **counts}
        for rebalance in self.finder.add(generation, self.counts):
            yield rebalance_row(rebalance)
