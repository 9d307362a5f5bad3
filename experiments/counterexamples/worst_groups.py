"""Groups of a study on which each assignor has the largest heuristic gaps, for its report.

The tables of a study have the candidates. An assignment or optimum that they do not have is
computed again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, NamedTuple

from kassay.experiments.comparison.optimum import CaseLimits, solve_optimum
from kassay.experiments.implementations.runner import run, run_until_stable
from kassay.experiments.plotting.svg_drawings import AssignmentPanel, assignment_panels, plural
from kassay.experiments.study.cases import Case
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.tables import COMPARED_ASSIGNORS, compared_assignors
from kassay.reference.documents.json_codec import group_document, parse_assignment, parse_group
from kassay.reference.model.assignment import Assignment, movement, violations
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership
from kassay.solver.network.improving_chains import explain

_SHOWN_STEPS = 6
_KINDS = {
    "imbalance": "largest imbalance gap",
    "moves": "most unnecessary moves",
    "endless": "does not terminate",
}
_ATTEMPTS = 5
"""Maximum number of candidates to try per heading if groups cannot be rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroup:
    """Report entry for a group: drawings of an assignor's result and of an optimum.

    ``steps`` are improving chains of transfers; ``more_steps`` counts those not listed.
    """

    title: str
    case: str
    assignor: str
    description: str
    panels: tuple[AssignmentPanel, ...]
    steps: tuple[str, ...]
    more_steps: int
    document: str


class ExampleGroups(NamedTuple):
    """Groups that a report draws: those with the largest gaps, and hand-written groups."""

    worst: tuple[WorstGroup, ...] = ()
    named: tuple[WorstGroup, ...] = ()


NO_EXAMPLES = ExampleGroups()


def example_groups(results: StudySummary) -> ExampleGroups:
    """Return the groups of a study that its report draws."""
    compared = compared_assignors(results.outcomes["assignor"])
    return ExampleGroups(tuple(worst_groups(results, compared)), tuple(named_groups(results)))


def worst_groups(results: StudySummary, assignors: Sequence[str]) -> Iterator[WorstGroup]:
    """Yield the groups with the largest gaps of each assignor, without hand-written groups.

    If the tables contain only the seed of a group, the group is rebuilt.
    """
    shown: list[str] = []
    for assignor in assignors:
        for kind, shortcoming in _KINDS.items():
            candidates = (
                candidate
                for candidate in _candidates(results, kind, assignor)
                if candidate["group"]["case"] not in shown
            )
            attempts = list(islice(candidates, _ATTEMPTS))
            for group in _first(attempts, f"{assignor}: {shortcoming}", results.manifest):
                shown.append(group.case)
                yield group


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
                title = f"{group['group_id'].removeprefix('named/')}: {assignor}"
                yield from _first([candidate], title, results.manifest)


def _candidates(results: StudySummary, kind: str, assignor: str) -> Iterator[Mapping[str, Any]]:
    """Yield the stored groups with the largest gaps of an assignor, worst first."""
    for candidate in results.worst:
        if candidate["kind"] == kind and candidate["comparison"]["assignor"] == assignor:
            yield candidate


def _first(
    candidates: Iterable[Mapping[str, Any]], title: str, manifest: Mapping[str, Any]
) -> Iterator[WorstGroup]:
    """Create the report entry of the first candidate group that can be drawn, if any."""
    for candidate in candidates:
        properties, row = candidate["group"], candidate["comparison"]
        group = _group(properties)
        if group is None:
            continue
        name, greedy = _greedy(candidate, group)
        if greedy is None and row["ending"] == "ok":
            continue
        optimum = _stored(candidate["optimum"])
        if optimum is None:
            optimum = solve_optimum(group, limits=_limits(manifest)).assignment
        drawn = {name: greedy, "an optimum": optimum}
        steps = _steps(group, greedy)
        yield WorstGroup(
            title=title,
            case=properties["case"],
            assignor=row["assignor"],
            description=_description(row, properties),
            panels=assignment_panels(group, drawn, name=properties["case"]),
            steps=steps[:_SHOWN_STEPS],
            more_steps=max(0, len(steps) - _SHOWN_STEPS),
            document=json.dumps(group_document(group), ensure_ascii=False, separators=(",", ":")),
        )
        return


def _greedy(candidate: Mapping[str, Any], group: Group) -> tuple[str, Assignment | None]:
    """Return the assignor's assignment and its title, or the repeated state of a livelock.

    The assignment is None if it cannot be rebuilt as it was in the study.
    """
    row = candidate["comparison"]
    assignor = row["assignor"]
    assignment = _stored(candidate["assignment"])
    if assignment is not None:
        return assignor, assignment
    if row["ending"] == "ok":
        assignment = run_until_stable(group, assignor).assignment
        if assignment is None or movement(group, assignment) != row["movement_greedy"]:
            return assignor, None
        return assignor, assignment
    livelock = run(group, assignor).livelock
    if isinstance(livelock, LivelockError):
        return f"{assignor}, a state that repeats", livelock.state
    return assignor, None


def _group(properties: Mapping[str, Any]) -> Group | None:
    """Load or rebuild a group of a study, or return None if it cannot be reproduced."""
    if properties["document"] is not None:
        return parse_group(json.loads(properties["document"]))
    family, seed, start = (properties[name] for name in ("family", "seed", "start"))
    try:
        group = Case(family=family, seed=seed, assignors=(), start=start).build()
    except InputError:
        return None
    sizes = (len(group.members), len(group.topics), ownership(group).owned_count)
    studied = tuple(properties[name] for name in ("members", "topics", "owned"))
    return group if sizes == studied else None


def _stored(text: str | None) -> Assignment | None:
    return None if text is None else parse_assignment(json.loads(text))


def _limits(manifest: Mapping[str, Any]) -> CaseLimits:
    limits = manifest.get("configuration", {}).get("limits", {})
    known = {field.name for field in fields(CaseLimits)}
    return CaseLimits(**{name: value for name, value in limits.items() if name in known})


def _steps(group: Group, assignment: Assignment | None) -> tuple[str, ...]:
    if assignment is None or group.is_weighted or any(violations(group, assignment)):
        return ()
    return tuple(map(str, explain(group, assignment)))


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
