"""Worst groups of each assignor: drawings and explanations of the largest heuristic gaps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from kassay.experiments.compare import CaseLimits, solve_optimum
from kassay.experiments.implementations.convergence import run_until_stable
from kassay.experiments.implementations.runner import run
from kassay.experiments.plotting.assignment_figure import AssignmentPanel, draw_assignment
from kassay.experiments.report.study_summary import COMPARED_ASSIGNORS, NAMED_FAMILY, without_named
from kassay.experiments.report.table_reader import Tables
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import DRAWN_MEMBERS, DRAWN_PARTITIONS
from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.documents.json_codec import group_document, parse_assignment, parse_group
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads, movement
from kassay.reference.model.ownership import ownership
from kassay.solver.improvement.explanation import explain

_SHOWN_STEPS = 6
_ATTEMPTS = 5
"""Number of groups to try per heading until one can be rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroup:
    """A group with an assignor's assignment, or None, and an optimal assignment.

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


def worst_groups(
    tables: Tables, rows: pd.DataFrame, *, assignors: Sequence[str]
) -> Iterator[WorstGroup]:
    """Yield the worst drawable groups of each assignor, without hand-written groups.

    If the tables contain only the seed of a group, the group is rebuilt.
    """
    rows = without_named(rows[rows["case"].isin(_drawable(tables.groups))])
    shown: list[str] = []
    for assignor in assignors:
        own = rows[rows["assignor"] == assignor].sort_values(["partitions", "case"])
        imbalanced = own[(own["makespan_gap"] > 0) | (own["sum_of_squares_gap"] > 0)]
        # Gaps in weight units are not comparable with gaps in partitions.
        imbalanced = imbalanced.sort_values(
            ["weighted", "makespan_gap", "sum_of_squares_gap"],
            ascending=[True, False, False],
            kind="stable",
        )
        moved = own[own["unnecessary_moves"] > 0]
        moved = moved.sort_values("unnecessary_moves", ascending=False, kind="stable")
        endless = own[own["ending"] == "nonterminating"]
        for candidates, shortcoming in (
            (imbalanced, "largest imbalance gap"),
            (moved, "most unnecessary moves"),
            (endless, "does not terminate"),
        ):
            unseen = candidates[~candidates["case"].isin(shown)].head(_ATTEMPTS)
            for group in _first(tables, _records(unseen), f"{assignor}: {shortcoming}"):
                shown.append(group.case)
                yield group


def named_groups(tables: Tables, rows: pd.DataFrame) -> Iterator[WorstGroup]:
    """Yield the hand-written groups, each with an assignor that misses the group's optimum."""
    named = rows[rows["family"] == NAMED_FAMILY].sort_values("case", kind="stable")
    shown: set[str] = set()
    for assignor in COMPARED_ASSIGNORS:
        for row in _records(named[named["assignor"] == assignor]):
            missed = row["ending"] != "ok" or row["least_imbalance"] is False
            if row["case"] not in shown and (missed or (row["unnecessary_moves"] or 0) > 0):
                shown.add(row["case"])
                name = _only_row(tables.groups, case=row["case"])["group_id"]
                yield from _first(tables, [row], f"{name.removeprefix('named/')}: {assignor}")


def _drawable(groups: pd.DataFrame) -> pd.Series:
    small = (groups["partitions"] <= DRAWN_PARTITIONS) & (groups["members"] <= DRAWN_MEMBERS)
    available = groups["document"].notna() | groups["family"].isin(list(FAMILIES))
    return groups.loc[small.fillna(value=False).astype(bool) & available, "case"]


def _first(tables: Tables, rows: Iterable[Mapping[str, Any]], title: str) -> Iterator[WorstGroup]:
    """Yield the first group that can be drawn, if there is one."""
    for row in rows:
        properties = _only_row(tables.groups, case=row["case"])
        group = _group(properties)
        if group is None:
            continue
        name, greedy = _greedy(tables, row, group)
        if greedy is None and row["ending"] == "ok":
            continue
        optimum = _stored(_only_row(tables.optima, case=row["case"]))
        if optimum is None:
            optimum = solve_optimum(group, limits=_limits(tables.manifest)).assignment
        drawn = {name: greedy, "an optimum": optimum}
        steps = _steps(group, greedy)
        yield WorstGroup(
            title=title,
            case=row["case"],
            assignor=row["assignor"],
            description=_description(row, properties),
            panels=tuple(_panels(group, row["case"], drawn)),
            steps=steps[:_SHOWN_STEPS],
            more_steps=max(0, len(steps) - _SHOWN_STEPS),
            document=json.dumps(group_document(group), ensure_ascii=False, separators=(",", ":")),
        )
        return


def _greedy(tables: Tables, row: Mapping[str, Any], group: Group) -> tuple[str, Assignment | None]:
    """Return the title and the assignment of an assignor, or the state that it repeats.

    The assignment is None if it cannot be rebuilt as it was in the study.
    """
    assignor = row["assignor"]
    assignment = _stored(_only_row(tables.assignments, case=row["case"], assignor=assignor))
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
    """Return the stored or rebuilt group, or None if the rebuilt group differs from the study's."""
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


def _stored(row: Mapping[str, Any]) -> Assignment | None:
    return None if row["assignment"] is None else parse_assignment(json.loads(row["assignment"]))


def _limits(manifest: Mapping[str, Any]) -> CaseLimits:
    limits = manifest.get("configuration", {}).get("limits", {})
    known = {field.name for field in fields(CaseLimits)}
    return CaseLimits(**{name: value for name, value in limits.items() if name in known})


def _steps(group: Group, assignment: Assignment | None) -> tuple[str, ...]:
    if assignment is None or group.is_weighted or any(violations(group, assignment)):
        return ()
    return tuple(map(str, explain(group, assignment)))


def _panels(
    group: Group, case: str, assignments: Mapping[str, Assignment | None]
) -> Iterator[AssignmentPanel]:
    drawn = {title: given for title, given in assignments.items() if given is not None}
    longest = max((load for given in drawn.values() for load in given.loads().values()), default=0)
    for title, assignment in drawn.items():
        vector = "/".join(map(str, leximax(loads(group, assignment).values())))
        yield AssignmentPanel(
            title=title,
            facts=f"loads {vector}, {_plural(movement(group, assignment), 'move')}",
            svg=draw_assignment(group, assignment, title=f"{case}, {title}", longest_bar=longest),
        )


def _description(row: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    text = (
        f"{_plural(properties['participants'], 'member')}, "
        f"{_plural(properties['partitions'], 'partition')}, {properties['owned']} of them owned. "
    )
    if row["ending"] != "ok":
        return text + f"No assignment: {row['detail']}. "
    if row["makespan_gap"]:
        text += f"The maximum load is {row['makespan_gap']} above the minimum. "
    if row["sum_of_squares_gap"]:
        text += f"The sum of squared loads is {row['sum_of_squares_gap']} above the minimum. "
    if row["unnecessary_moves"]:
        text += (
            f"The assignor moves {_plural(row['movement_greedy'], 'partition')}; "
            f"{row['movement_within'] or 'none'} are sufficient for the same imbalance. "
        )
    return text


def _only_row(table: pd.DataFrame, **key: str) -> Mapping[str, Any]:
    """Return the only row of a table with the given values."""
    for column, value in key.items():
        table = table[table[column] == value]
    (row,) = _records(table)
    return row


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert the rows of a table to dicts, with None for missing values."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
