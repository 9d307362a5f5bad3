"""The groups that show an assignor at its worst, told and drawn."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.report.drawing import Panel, draw
from experiments.report.load import Tables
from experiments.report.summary import PICKED, drawn
from reference.codec import parse_assignment, parse_group

BALANCING = ("sticky", "cooperative-sticky", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A group, what an assignor made of it, and an optimum beside it.

    Parameters
    ----------
    title
        What it shows.
    case
        Name of the case.
    about
        The group in words.
    panels
        The greedy assignment, where there is one, and the optimum.
    document
        The group document, to be copied and tried.
    """

    title: str
    case: str
    about: str
    panels: tuple[Panel, ...]
    document: str


def worst(tables: Tables, rows: pd.DataFrame) -> Iterator[Exhibit]:
    """Yield the worst groups small enough to be drawn.

    For each assignor that aims at balance: the one with the greatest imbalance gap,
    the one with the most unnecessary moves, and the smallest that it never ends on. No
    group is shown twice, and none of those picked by hand.
    """
    drawable = tables.groups.loc[tables.groups["document"].notna(), "case"]
    rows = drawn(rows[rows["case"].isin(drawable)])
    shown: list[str] = []
    for assignor in BALANCING:
        mine = rows[rows["assignor"] == assignor].sort_values(["partitions", "case"])
        far = mine[(mine["makespan_gap"] > 0) | (mine["sum_of_squares_gap"] > 0)]
        far = far.sort_values(
            ["makespan_gap", "sum_of_squares_gap"], ascending=False, kind="stable"
        )
        moved = mine[mine["unnecessary_moves"] > 0]
        moved = moved.sort_values("unnecessary_moves", ascending=False, kind="stable")
        endless = mine[mine["ending"] == "nonterminating"]
        for found, shows in (
            (far, "farthest from the least imbalance"),
            (moved, "most unnecessary moves"),
            (endless, "never ends"),
        ):
            for row in _records(found[~found["case"].isin(shown)].head(1)):
                shown.append(row["case"])
                yield _exhibit(tables, row, f"{assignor}: {shows}")


def named(tables: Tables, rows: pd.DataFrame) -> Iterator[Exhibit]:
    """Yield the small groups to remember, each under an assignor that falls short on it."""
    known = rows[rows["family"] == PICKED].sort_values("case", kind="stable")
    shown: set[str] = set()
    for assignor in BALANCING:
        for row in _records(known[known["assignor"] == assignor]):
            if row["case"] not in shown and _falls_short(row):
                shown.add(row["case"])
                name = _one(tables.groups, case=row["case"])["group_id"]
                yield _exhibit(tables, row, f"{name.removeprefix('named/')}: {assignor}")


def _falls_short(row: Mapping[str, Any]) -> bool:
    return (
        row["ending"] != "ok"
        or row["least_imbalance"] is False
        or (row["unnecessary_moves"] or 0) > 0
    )


def _exhibit(tables: Tables, row: Mapping[str, Any], title: str) -> Exhibit:
    case, assignor = row["case"], row["assignor"]
    about = _one(tables.groups, case=case)
    optimum = _one(tables.optima, case=case)
    greedy = _one(tables.assignments, case=case, assignor=assignor)
    answers = [
        (assignor, greedy["assignment"], greedy["loads"], greedy["moved"]),
        ("an optimum", optimum["assignment"], optimum["loads"], optimum["movement_value"]),
    ]
    group = parse_group(json.loads(about["document"]))
    answered = [
        (name, parse_assignment(json.loads(assignment)), f"loads {loads}, {_plural(moves, 'move')}")
        for name, assignment, loads, moves in answers
        if assignment is not None
    ]
    longest = max(load for _, assignment, _ in answered for load in assignment.loads().values())
    panels = tuple(
        Panel(
            title=name,
            facts=facts,
            svg=draw(group, assignment, title=f"{case}, {name}", longest=longest),
        )
        for name, assignment, facts in answered
    )
    return Exhibit(
        title=title,
        case=case,
        about=_about(row, about),
        panels=panels,
        document=about["document"],
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
