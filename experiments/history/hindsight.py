"""Hindsight optimum of a group: fewest moves over all of its recorded rebalances."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from operator import itemgetter

from kassay.experiments.history.group_records import Row
from kassay.reference.documents.json_codec import parse_assignment, parse_group
from kassay.reference.model.assignment import Assignment, movement, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.trajectory.trajectory import optimal_trajectory

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
