"""Write the files of a plan to a directory, and name the directories of several groups."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from kassay.experiments.planning.group_plan.plan_result import Plan
from kassay.experiments.planning.plan_output.plan_files import (
    group_after,
    loads_csv,
    moves_csv,
    plan_document,
    static_assignment,
    sticky_seed,
    to_json,
)
from kassay.experiments.planning.plan_output.render_plan import render_html, render_ticket

PLAN_PAGE = "report.html"
"""Name of the file with the page of a plan."""


def directory_names(ids: Iterable[str | None]) -> list[str]:
    """Derive a unique directory name from the id of each group.

    Examples
    --------
    >>> directory_names(["orders", "a b/c", "orders", None])
    ['orders', 'a-b-c', 'orders-3', 'group-4']
    """
    names: dict[str, None] = {}
    for number, id in enumerate(ids, 1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", id or "").strip(".-")
        names[name if name and name not in names else f"{name or 'group'}-{number}"] = None
    return list(names)


def write_plan(plan: Plan, directory: Path) -> None:
    """Write the page and the files of a plan. Create the directory if it does not exist."""
    files = {
        PLAN_PAGE: render_html(plan),
        "plan.json": to_json(plan_document(plan)),
        "moves.csv": moves_csv(plan),
        "loads.csv": loads_csv(plan),
        "ticket.md": render_ticket(plan),
        "static-assignment.json": to_json(static_assignment(plan)),
        "sticky-seed.json": to_json(sticky_seed(plan)),
        "after.jsonl": json.dumps(group_after(plan), ensure_ascii=False) + "\n",
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
