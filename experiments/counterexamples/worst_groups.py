"""Groups of a study on which each assignor has the largest heuristic gaps, for its report."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.plotting.svg_drawings import AssignmentPanel, assignment_panels, plural
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.tables import COMPARED_ASSIGNORS
from kassay.reference.documents.json_codec import parse_assignment, parse_group
from kassay.reference.model.assignment import Assignment

_KINDS = {
    "imbalance": "largest imbalance gap",
    "moves": "most unnecessary moves",
    "endless": "does not terminate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroup:
    """Report entry for a group: drawings of an assignor's result and of an optimum."""

    title: str
    case: str
    assignor: str
    description: str
    panels: tuple[AssignmentPanel, ...]
    document: str


def worst_groups(results: StudySummary, assignors: Sequence[str]) -> Iterator[WorstGroup]:
    """Yield the groups with the largest gaps of each assignor, without hand-written groups.

    No group is shown twice.
    """
    shown: set[str] = set()
    for assignor in assignors:
        for kind, shortcoming in _KINDS.items():
            for candidate in _candidates(results, kind, assignor):
                case = candidate["group"]["case"]
                if case not in shown:
                    shown.add(case)
                    yield _entry(candidate, f"{assignor}: {shortcoming}")
                    break


def named_groups(results: StudySummary) -> Iterator[WorstGroup]:
    """Yield the hand-written groups, each with an assignor that misses the optimum."""
    shown: set[str] = set()
    for assignor in COMPARED_ASSIGNORS:
        found = _candidates(results, "named", assignor)
        for candidate in sorted(found, key=lambda one: str(one["group"]["case"])):
            group, row = candidate["group"], candidate["comparison"]
            missed = row["ending"] != "ok" or row["least_imbalance"] is False
            if group["case"] not in shown and (missed or (row["unnecessary_moves"] or 0) > 0):
                shown.add(group["case"])
                yield _entry(candidate, f"{group['group_id'].removeprefix('named/')}: {assignor}")


def _candidates(results: StudySummary, kind: str, assignor: str) -> Iterator[Mapping[str, Any]]:
    """Yield the stored groups with the largest gaps of an assignor, worst first."""
    for candidate in results.worst:
        if candidate["kind"] == kind and candidate["comparison"]["assignor"] == assignor:
            yield candidate


def _entry(candidate: Mapping[str, Any], title: str) -> WorstGroup:
    properties, row = candidate["group"], candidate["comparison"]
    group = parse_group(json.loads(properties["document"]))
    drawn = {
        row["assignor"]: _stored(candidate["assignment"]),
        "an optimum": _stored(candidate["optimum"]),
    }
    return WorstGroup(
        title=title,
        case=properties["case"],
        assignor=row["assignor"],
        description=_description(row, properties),
        panels=assignment_panels(group, drawn, name=properties["case"]),
        document=properties["document"],
    )


def _stored(text: str | None) -> Assignment | None:
    return None if text is None else parse_assignment(json.loads(text))


def _description(row: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    text = (
        f"{plural(properties['participants'], 'member')}, "
        f"{plural(properties['partitions'], 'partition')}, {properties['owned']} of them owned. "
    )
    if row["ending"] != "ok":
        return text + f"No assignment: {row['detail']}. "
    if row["makespan_gap"]:
        text += f"The maximum load is {row['makespan_gap']} above the minimum. "
    if row["sum_of_squares_gap"]:
        text += f"The sum of squared loads is {row['sum_of_squares_gap']} above the minimum. "
    if row["unnecessary_moves"]:
        text += (
            f"The assignor moves {plural(row['movement_greedy'], 'partition')}; "
            f"{row['movement_within'] or 'none'} are sufficient for the same imbalance. "
        )
    return text
