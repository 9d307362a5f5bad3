"""Report of a rebalance history: moves and imbalance compared with the optimum."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from kassay.experiments.plotting.matplotlib_figures import Plot, step_lines
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.study.output_reader import read_table, verified_manifest
from kassay.reference.model.errors import InputError

_DRAWN_GROUPS = 12
_COLUMNS = [
    *("group", "incarnation", "generation", "timestamp", "assignor", "measure", "least_imbalance"),
    *("sum_of_squares_greedy", "sum_of_squares_optimum", "makespan_greedy", "makespan_optimum"),
    *("ending", "movement_greedy", "movement_within", "unnecessary_moves"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """Totals of the recorded rebalances of one group.

    ``invalid`` counts rebalances with an invalid assignment, which for example omits a topic.
    """

    name: str
    assignor: str
    rebalances: int
    proven: int
    invalid: int
    moves: int
    necessary: int
    unnecessary: int
    minimum_imbalance: int
    plots: tuple[Plot, ...] = ()


def group_histories(directory: Path) -> list[GroupHistory]:
    """Compute the totals of each group from an output directory of ``kassay history``."""
    manifest = verified_manifest(directory)
    if not is_history(manifest):
        raise InputError(f"{directory} contains no output of kassay history")
    return _summaries(_rebalances(directory / manifest["history"]))


def is_history(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest describes a rebalance history instead of a study."""
    return "history" in manifest


def render(directory: Path, manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Render the report of a rebalance history as an HTML page and a Markdown summary."""
    tables = directory / manifest["history"]
    rows = _rebalances(tables)
    values = {
        "manifest": manifest,
        "groups": _groups(rows),
        "total": _total(rows),
        "errors": len(read_table(tables / "errors", ["error"])),
    }
    page, summary = (
        environment(TEMPLATES, autoescape=name.endswith("html.j2"))
        .get_template(name)
        .render(**values)
        for name in ("history.html.j2", "history.md.j2")
    )
    return page, summary


def _rebalances(directory: Path) -> pd.DataFrame:
    rows = read_table(directory / "rebalances", _COLUMNS)
    return rows.sort_values(["group", "incarnation", "generation"], kind="stable")


def _groups(rows: pd.DataFrame) -> list[GroupHistory]:
    """Compute the totals of each group, sorted by descending number of unnecessary moves."""
    groups = sorted(_summaries(rows), key=lambda group: (-group.unnecessary, group.name))
    return [
        replace(group, plots=tuple(_plots(rows[rows["group"] == group.name], group.name)))
        if place < _DRAWN_GROUPS
        else group
        for place, group in enumerate(groups)
    ]


def _summaries(rows: pd.DataFrame) -> list[GroupHistory]:
    return [_summarise(str(name), own) for name, own in rows.groupby("group")]


def _summarise(name: str, rows: pd.DataFrame) -> GroupHistory:
    proven = rows[rows["unnecessary_moves"].notna()]
    return GroupHistory(
        name=name,
        assignor=", ".join(sorted({each or "–" for each in rows["assignor"]})),
        rebalances=len(rows),
        proven=len(proven),
        invalid=int((rows["ending"] == "invalid").sum()),
        moves=int(proven["movement_greedy"].sum()),
        necessary=int(proven["movement_within"].sum()),
        unnecessary=int(proven["unnecessary_moves"].sum()),
        minimum_imbalance=int(rows["least_imbalance"].fillna(value=False).sum()),
    )


def _total(rows: pd.DataFrame) -> GroupHistory:
    total = _summarise("all groups", rows)
    if not total.proven:
        return total
    proven = _index_by_time(rows[rows["unnecessary_moves"].notna()])
    sums = proven[["unnecessary_moves", "movement_greedy"]].astype("int64").cumsum()
    title = "Cumulative unnecessary moves and moves"
    return replace(total, plots=(_plot(sums, _MOVES, "unnecessary-moves", title, "partitions"),))


_MOVES = ("unnecessary moves", "moves")


def _plots(rows: pd.DataFrame, name: str) -> Iterator[Plot]:
    rows = _index_by_time(rows)
    weighted = (rows["measure"] == "makespan").any()
    measure, unit = ("makespan", "weight") if weighted else ("sum_of_squares", "squared partitions")
    file_name = "".join(sign if sign.isalnum() else "-" for sign in name)
    moves = rows[["unnecessary_moves", "movement_greedy"]].dropna()
    imbalance = rows[[f"{measure}_greedy", f"{measure}_optimum"]].dropna()
    if not moves.empty:
        yield _plot(
            moves, _MOVES, f"{file_name}-unnecessary-moves", "Moves per rebalance", "partitions"
        )
    if not imbalance.empty:
        title = f"Imbalance after each rebalance ({measure.replace('_', ' ')})"
        columns = ("actual imbalance", "minimum imbalance")
        yield _plot(imbalance, columns, f"{file_name}-imbalance", title, unit)


def _plot(table: pd.DataFrame, columns: tuple[str, str], name: str, title: str, unit: str) -> Plot:
    table = table.set_axis(list(columns), axis="columns")
    x = "number of the rebalance" if table.index.name is None else "time (UTC)"
    return Plot(
        name=name,
        title=title,
        caption=f"x: {x}. y: {columns[0]} (orange) and {columns[1]} (blue) in {unit}.",
        draw=partial(step_lines, table, label=title, unit=unit),
        csv=table.to_csv(index_label="time"),
    )


def _index_by_time(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rebalances by time, or number the rebalances if timestamps are missing."""
    if rows["timestamp"].isna().any():
        return rows.reset_index(drop=True)
    rows = rows.sort_values(["timestamp", "group", "incarnation", "generation"], kind="stable")
    times = pd.to_datetime(rows["timestamp"].astype("int64"), unit="ms")
    return rows.set_index(pd.Index(times, name="time"))
