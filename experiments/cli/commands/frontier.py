"""``kassay frontier``: what imbalance every number of moves buys."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
)
from kassay.experiments.cli.plot_options import PictureFile, numbered
from kassay.experiments.cli.search_options import FirstLevel, Seconds, Seed, Workers, WorkLimit
from kassay.experiments.plotting.plot_files import draw_frontier
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads
from kassay.solver.frontier import Frontier
from kassay.solver.frontier import frontier as group_frontier
from kassay.solver.limits import SearchLimits


def frontier(
    file: GroupFile = STDIN,
    *,
    imbalance: FirstLevel = None,
    points: Annotated[
        int | None,
        typer.Option(
            min=2, help="At most so many points, spread over the moves.", show_default="all"
        ),
    ] = None,
    plot: PictureFile = None,
    assignments: Annotated[
        bool, typer.Option("--assignments", help="Give every point's assignment too.")
    ] = False,
    time_limit: Seconds = 60.0,
    deterministic_limit: WorkLimit = None,
    workers: Workers = 1,
    seed: Seed = 0,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Find every trade-off between imbalance and moves that no other one beats.

    Exits with 1 where the constraints of a group admit no assignment at all.

    Example: `kassay frontier groups.jsonl --plot frontier.svg --format table`
    """
    drawn = 0
    limits = SearchLimits(time=time_limit, deterministic=deterministic_limit, workers=workers)

    def work(group: Group) -> Answer:
        nonlocal drawn
        found = group_frontier(
            group,
            measure=imbalance,
            most_points=points,
            limits=limits,
            seed=seed,
        )
        if plot is not None:
            drawn += 1
            _draw(found, numbered(plot, drawn), group.id)
        return Answer(_record(group, found, assignments), reached=bool(found.points))

    answer_groups(file, work, output=output, table=_table)


def _draw(found: Frontier, file: Path, title: str | None) -> None:
    values = [(point.movement.value, point.imbalance.value) for point in found.points]
    draw_frontier(values, file, measure=str(found.measure), title=title)


def _record(group: Group, found: Frontier, assignments: bool) -> dict[str, object]:
    record: dict[str, object] = {
        "id": group.id,
        "measure": str(found.measure),
        "complete": found.complete,
    }
    lines = []
    for point in found.points:
        line: dict[str, object] = {
            "moves": point.movement.value,
            "imbalance": point.imbalance.value,
            "bound": {"moves": point.movement.bound, "imbalance": point.imbalance.bound},
            "proven": point.is_proven,
            "loads": loads(group, point.assignment),
        }
        if assignments:
            line["assignment"] = assignment_document(point.assignment)
        lines.append(line)
    record["points"] = lines
    if found.conflict:
        record["conflict"] = list(found.conflict)
    return record


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "measure")
    for title in ("moves", "bound", "imbalance", "bound", "least load", "greatest load"):
        table.add_column(title, justify="right")
    table.add_column("proven")
    for record in records:
        if not record.get("points"):
            said = record.get("error") or "; ".join(record.get("conflict", ()))
            table.add_row(record["id"], said or "nothing found in time")
            continue
        for point in record["points"]:
            of_members = point["loads"].values()
            figures = (
                point["moves"],
                point["bound"]["moves"],
                point["imbalance"],
                point["bound"]["imbalance"],
                min(of_members, default=0),
                max(of_members, default=0),
            )
            proven = "yes" if point["proven"] else "no"
            table.add_row(record["id"], record["measure"], *map(str, figures), proven)
        if not record["complete"]:
            table.add_row(record["id"], "there may be further points")
    return table
