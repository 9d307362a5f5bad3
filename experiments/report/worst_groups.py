"""The groups that show an assignor at its worst, told, drawn and explained."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from kassay.experiments.compare import CaseLimits, solve_optimum
from kassay.experiments.implementations.convergence import run_until_stable
from kassay.experiments.implementations.runner import run
from kassay.experiments.plotting.assignment_figure import AssignmentPanel, draw_assignment
from kassay.experiments.report.study_summary import PICKED, drawn
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

BALANCING = ("sticky", "cooperative-sticky", "uniform")
_STEPS = 6
_TRIED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroup:
    """A group, what an assignor made of it, and an optimum beside it.

    Parameters
    ----------
    title
        What it shows.
    case
        Name of the case.
    assignor
        The assignor.
    about
        The group in words.
    panels
        The greedy assignment, where there is one, and the optimum.
    steps
        What would have made the assignment optimal: chains of transfers, in words. Empty
        where weights count.
    more
        How many more steps there are.
    document
        The group document, to be copied and tried.
    """

    title: str
    case: str
    assignor: str
    about: str
    panels: tuple[AssignmentPanel, ...]
    steps: tuple[str, ...]
    more: int
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """A group with all that is to be drawn of it."""

    group: Group
    greedy: Assignment | None
    circling: bool
    optimum: Assignment | None


def worst_groups(tables: Tables, rows: pd.DataFrame) -> Iterator[WorstGroup]:
    """Yield the worst groups small enough to be drawn.

    Where the tables hold no more of a group than its seed, it is built again.

    For each assignor that aims at balance: the one with the greatest imbalance gap,
    the one with the most unnecessary moves, and the smallest that it never ends on. No
    group is shown twice, and none of those picked by hand.
    """
    rows = drawn(rows[rows["case"].isin(_drawable(tables.groups))])
    shown: list[str] = []
    for assignor in BALANCING:
        mine = rows[rows["assignor"] == assignor].sort_values(["partitions", "case"])
        far = mine[(mine["makespan_gap"] > 0) | (mine["sum_of_squares_gap"] > 0)]
        # Gaps between weights do not compare with gaps between numbers of partitions.
        far = far.sort_values(
            ["weighted", "makespan_gap", "sum_of_squares_gap"],
            ascending=[True, False, False],
            kind="stable",
        )
        moved = mine[mine["unnecessary_moves"] > 0]
        moved = moved.sort_values("unnecessary_moves", ascending=False, kind="stable")
        endless = mine[mine["ending"] == "nonterminating"]
        for found, shows in (
            (far, "farthest from the least imbalance"),
            (moved, "most unnecessary moves"),
            (endless, "never ends"),
        ):
            fresh = found[~found["case"].isin(shown)].head(_TRIED)
            for exhibit in _first(tables, _records(fresh), f"{assignor}: {shows}"):
                shown.append(exhibit.case)
                yield exhibit


def named(tables: Tables, rows: pd.DataFrame) -> Iterator[WorstGroup]:
    """Yield the small groups to remember, each under an assignor that falls short on it."""
    known = rows[rows["family"] == PICKED].sort_values("case", kind="stable")
    shown: set[str] = set()
    for assignor in BALANCING:
        for row in _records(known[known["assignor"] == assignor]):
            if row["case"] not in shown and _falls_short(row):
                shown.add(row["case"])
                name = _one(tables.groups, case=row["case"])["group_id"]
                yield from _first(tables, [row], f"{name.removeprefix('named/')}: {assignor}")


def _falls_short(row: Mapping[str, Any]) -> bool:
    return (
        row["ending"] != "ok"
        or row["least_imbalance"] is False
        or (row["unnecessary_moves"] or 0) > 0
    )


def _drawable(groups: pd.DataFrame) -> pd.Series:
    small = (groups["partitions"] <= DRAWN_PARTITIONS) & (groups["members"] <= DRAWN_MEMBERS)
    kept = groups["document"].notna() | groups["family"].isin(list(FAMILIES))
    return groups.loc[small.fillna(value=False).astype(bool) & kept, "case"]


def _first(tables: Tables, rows: Iterable[Mapping[str, Any]], title: str) -> Iterator[WorstGroup]:
    """Yield an exhibit of the first of some groups that can be shown."""
    for row in rows:
        whole = _whole(tables, row)
        if whole is not None:
            yield _exhibit(whole, row, _one(tables.groups, case=row["case"]), title)
            return


def _whole(tables: Tables, row: Mapping[str, Any]) -> _Whole | None:
    """Return a group with its assignments; None if it is not the one that was studied."""
    case, assignor = row["case"], row["assignor"]
    about = _one(tables.groups, case=case)
    group = _group(about)
    if group is None:
        return None
    greedy = _kept(_one(tables.assignments, case=case, assignor=assignor))
    circling = False
    if greedy is None and row["ending"] == "ok":
        greedy = run_until_stable(group, assignor).assignment
        if greedy is None or movement(group, greedy) != row["movement_greedy"]:
            return None
    elif greedy is None:
        livelock = run(group, assignor).livelock
        if isinstance(livelock, LivelockError):
            greedy, circling = livelock.state, True
    optimum = _kept(_one(tables.optima, case=case))
    if optimum is None:
        optimum = solve_optimum(group, limits=_limits(tables.manifest)).assignment
    return _Whole(group=group, greedy=greedy, circling=circling, optimum=optimum)


def _group(about: Mapping[str, Any]) -> Group | None:
    """Return the group of a row, built again if need be; None if it came out another one."""
    if about["document"] is not None:
        return parse_group(json.loads(about["document"]))
    case = Case(family=about["family"], seed=about["seed"], assignors=(), start=about["start"])
    try:
        group = case.build()
    except InputError:
        return None
    same = (len(group.members), len(group.topics), ownership(group).owned_count)
    return group if same == (about["members"], about["topics"], about["owned"]) else None


def _kept(row: Mapping[str, Any]) -> Assignment | None:
    return None if row["assignment"] is None else parse_assignment(json.loads(row["assignment"]))


def _limits(manifest: Mapping[str, Any]) -> CaseLimits:
    said = manifest.get("configuration", {}).get("limits", {})
    known = {field.name for field in fields(CaseLimits)}
    return CaseLimits(**{name: value for name, value in said.items() if name in known})


def _exhibit(
    whole: _Whole, row: Mapping[str, Any], about: Mapping[str, Any], title: str
) -> WorstGroup:
    group, assignor = whole.group, row["assignor"]
    name = f"{assignor}, a state that repeats" if whole.circling else assignor
    answers = [
        (name, given)
        for name, given in ((name, whole.greedy), ("an optimum", whole.optimum))
        if given is not None
    ]
    longest = max((load for _, given in answers for load in given.loads().values()), default=0)
    steps: tuple[str, ...] = ()
    if whole.greedy is not None and not group.is_weighted:
        sound = next(violations(group, whole.greedy), None) is None
        steps = tuple(map(str, explain(group, whole.greedy))) if sound else ()
    return WorstGroup(
        title=title,
        case=row["case"],
        assignor=assignor,
        about=_about(row, about),
        panels=tuple(_panel(group, row["case"], name, given, longest) for name, given in answers),
        steps=steps[:_STEPS],
        more=max(0, len(steps) - _STEPS),
        document=json.dumps(group_document(group), ensure_ascii=False, separators=(",", ":")),
    )


def _panel(group: Group, case: str, name: str, given: Assignment, longest: int) -> AssignmentPanel:
    vector = "/".join(map(str, leximax(loads(group, given).values())))
    return AssignmentPanel(
        title=name,
        facts=f"loads {vector}, {_plural(movement(group, given), 'move')}",
        svg=draw_assignment(group, given, title=f"{case}, {name}", longest=longest),
    )


def _about(row: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    text = (
        f"{_plural(about['participants'], 'member')}, "
        f"{_plural(about['partitions'], 'partition')}, {about['owned']} of them owned. "
    )
    if row["ending"] != "ok":
        return text + f"No answer: {row['detail']}. "
    if row["makespan_gap"]:
        text += f"Its fullest member has {row['makespan_gap']} more than need be. "
    if row["sum_of_squares_gap"]:
        text += f"The sum of squared loads is {row['sum_of_squares_gap']} above the least. "
    if row["unnecessary_moves"]:
        text += (
            f"It moves {_plural(row['movement_greedy'], 'partition')} where "
            f"{row['movement_within'] or 'none'} would do for the same balance. "
        )
    return text


def _one(table: pd.DataFrame, **key: str) -> Mapping[str, Any]:
    """Return the only row that has these values."""
    found = table
    for column, value in key.items():
        found = found[found[column] == value]
    (row,) = _records(found)
    return row


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values, None for what is missing."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
