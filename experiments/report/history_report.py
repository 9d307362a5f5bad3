"""The report of a history: what its rebalances moved, and what they need have moved."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from kassay.experiments.plotting import svg_figures as figures
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.plotting.svg_figures import Plot
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report.table_reader import MANIFEST, read_table

DRAWN = 12
_COLUMNS = [
    "group",
    "life",
    "generation",
    "timestamp",
    "assignor",
    "protocol",
    "ending",
    "members",
    "proven",
    "measure",
    "least_imbalance",
    "sum_of_squares_greedy",
    "sum_of_squares_optimum",
    "makespan_greedy",
    "makespan_optimum",
    "movement_greedy",
    "movement_within",
    "unnecessary_moves",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """What one group went through.

    Parameters
    ----------
    name, assignor
        The group, and the assignors that it had.
    rebalances, judged
        How many there were, and for how many it is proven what was needed.
    moves, needed, unnecessary
        Partitions moved over all judged ones, how many had to, and the difference.
    least
        Rebalances that reached the least imbalance.
    plots
        Moves and imbalance over time, of the groups with the most unnecessary moves.
    """

    name: str
    assignor: str
    rebalances: int
    judged: int
    moves: int
    needed: int
    unnecessary: int
    least: int
    plots: tuple[Plot, ...] = ()


def is_history(directory: Path) -> bool:
    """Say whether a directory holds a history rather than a study."""
    return (directory / MANIFEST).is_file() and (directory / "rebalances").is_dir()


def render(directory: Path) -> tuple[str, str]:
    """Render the page and the summary in Markdown. Equal tables give equal bytes.

    Raises
    ------
    InvalidGroupError
        If a table is not there.
    """
    table = read_table(directory / "rebalances", _COLUMNS).sort_values(
        ["group", "life", "generation"], kind="stable"
    )
    facts = {
        "manifest": json.loads((directory / MANIFEST).read_text(encoding="utf-8")),
        "groups": _groups(table),
        "total": _total(table),
        "errors": len(read_table(directory / "errors", ["error"])),
    }
    page, summary = (
        environment(TEMPLATES, autoescape=name.endswith("html.j2"))
        .get_template(name)
        .render(**facts)
        for name in ("history.html.j2", "history.md.j2")
    )
    return page, summary


def _groups(table: pd.DataFrame) -> list[GroupHistory]:
    pasts = [_past(str(name), mine) for name, mine in table.groupby("group", sort=True)]
    worst = sorted(pasts, key=lambda past: (-past.unnecessary, past.name))[:DRAWN]
    drawn = {past.name: _plots(table[table["group"] == past.name], past.name) for past in worst}
    return [
        replace(past, plots=drawn.get(past.name, ()))
        for past in sorted(pasts, key=lambda past: (-past.unnecessary, past.name))
    ]


def _past(name: str, table: pd.DataFrame) -> GroupHistory:
    told = table[table["unnecessary_moves"].notna()]
    return GroupHistory(
        name=name,
        assignor=", ".join(sorted({each or "–" for each in table["assignor"]})),
        rebalances=len(table),
        judged=len(told),
        moves=int(told["movement_greedy"].sum()),
        needed=int(told["movement_within"].sum()),
        unnecessary=int(told["unnecessary_moves"].sum()),
        least=int(table["least_imbalance"].fillna(value=False).sum()),
    )


def _total(table: pd.DataFrame) -> GroupHistory:
    past = _past("all groups", table)
    if not past.judged:
        return past
    told = _over_time(table[table["unnecessary_moves"].notna()])
    running = told[["unnecessary_moves", "movement_greedy"]].astype("int64").cumsum()
    running.columns = pd.Index(["unnecessary moves", "moves"])
    plot = figures.timeline(
        running,
        name="unnecessary-moves",
        title="Unnecessary moves and all moves, added up over time",
        unit="partitions",
    )
    return replace(past, plots=(plot,))


def _plots(table: pd.DataFrame, name: str) -> tuple[Plot, ...]:
    table = _over_time(table)
    measure = "makespan" if (table["measure"] == "makespan").any() else "sum_of_squares"
    found = []
    for columns, labels, title, unit in (
        (
            ["unnecessary_moves", "movement_greedy"],
            ["unnecessary moves", "moves"],
            "moves of each rebalance",
            "partitions",
        ),
        (
            [f"{measure}_greedy", f"{measure}_optimum"],
            ["kept", "possible"],
            f"imbalance ({measure.replace('_', ' ')})",
            "",
        ),
    ):
        known = table[columns].dropna()
        if known.empty:
            continue
        known.columns = pd.Index(labels)
        slug = "".join(sign if sign.isalnum() else "-" for sign in name)
        found.append(
            figures.timeline(
                known, name=f"{slug}-{labels[0].replace(' ', '-')}", title=title, unit=unit
            )
        )
    return tuple(found)


def _over_time(table: pd.DataFrame) -> pd.DataFrame:
    """Put rebalances in the order of their times; of their numbers, where times are missing."""
    if table["timestamp"].isna().any():
        return table.reset_index(drop=True)
    ordered = table.sort_values(["timestamp", "group", "life", "generation"], kind="stable")
    times = pd.to_datetime(ordered["timestamp"].astype("int64"), unit="ms")
    return ordered.set_index(pd.Index(times, name="time"))
