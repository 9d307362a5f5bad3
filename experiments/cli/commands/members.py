"""``kassay members``: how many members it takes, and what the loss of one costs."""

from collections.abc import Mapping, Sequence
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
from kassay.experiments.cli.search_options import Seconds, Seed, Workers, WorkLimit
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing.member_loss import MemberLosses
from kassay.solver.sizing.member_loss import member_loss as group_resilience
from kassay.solver.sizing.members_needed import MemberCount, Sizing, members_needed
from kassay.solver.solution import LevelValue


def members(
    file: GroupFile = STDIN,
    *,
    makespan: Annotated[
        int | None,
        typer.Option(min=0, help="Greatest load wanted.", show_default=False),
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Most load of a member that names no capacity of its own.",
            show_default=False,
        ),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option("--from", min=0, help="Sweep from so many members.", show_default=False),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option("--to", min=0, help="Sweep to so many members.", show_default=False),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MEMBER",
            help="Further members are like this one; by default they consume all topics.",
            show_default=False,
        ),
    ] = None,
    resilience: Annotated[
        bool,
        typer.Option("--resilience", help="Also the worst makespan after the loss of a member."),
    ] = False,
    time_limit: Seconds = 60.0,
    deterministic_limit: WorkLimit = None,
    workers: Workers = 1,
    seed: Seed = 0,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Find the least number of members that keeps the greatest load within a wish.

    Without a range, the numbers around the one needed and that of today are shown. With
    fewer members than today the last ones leave. Exits with 1 where no number is enough.

    Example: `kassay members groups.jsonl --makespan 100 --from 2 --to 12 --format table`
    """
    if (makespan is None) == (capacity is None):
        raise typer.BadParameter("give either --makespan or --capacity")
    if (first is None) != (last is None) or (first or 0) > (last or 0):
        raise typer.BadParameter("--from and --to go together, --from first")
    sweep = range(0) if first is None or last is None else range(first, last + 1)
    limits = SearchLimits(time=time_limit, deterministic=deterministic_limit, workers=workers)

    def work(group: Group) -> Answer:
        sizing = members_needed(
            group,
            makespan=makespan,
            capacity=capacity,
            like=like,
            sweep=sweep,
            limits=limits,
            seed=seed,
        )
        record = _record(group, sizing, sweep)
        if resilience:
            record["resilience"] = _losses(group, sizing, limits, seed)
        return Answer(record, reached=sizing.needed is not None)

    answer_groups(file, work, output=output, table=_table)


def _record(group: Group, sizing: Sizing, sweep: range) -> dict[str, object]:
    today = len(group.members)
    needed = None if sizing.needed is None else sizing.needed.value
    near = () if needed is None else (needed - 1, needed, needed + 1)
    shown = sweep or (*near, today)
    record: dict[str, object] = {"id": group.id, "today": today, "needed": needed}
    if sizing.needed is None:
        record["reason"] = sizing.reason
    else:
        record |= {"bound": sizing.needed.bound, "proven": sizing.needed.is_proven}
    record["sizes"] = [_size(size) for size in sizing.sizes if size.members in shown]
    return record


def _size(size: MemberCount) -> dict[str, object]:
    record: dict[str, object] = {
        "members": size.members,
        "enough": size.enough,
        "makespan": _figures(size.makespan),
        "imbalance": size.imbalance,
        "movement": _figures(size.movement),
    }
    if size.unserved:
        record["unserved"] = list(size.unserved)
    return record


def _losses(group: Group, sizing: Sizing, limits: SearchLimits, seed: int) -> dict[str, object]:
    today = next(size for size in sizing.sizes if size.members == len(group.members))
    record: dict[str, object] = {
        "current": _resilience(group_resilience(group, limits=limits, seed=seed))
    }
    if today.assignment is not None:
        optimal = group_resilience(group, today.assignment, limits=limits, seed=seed)
        record["optimal"] = _resilience(optimal)
    return record


def _resilience(found: MemberLosses) -> dict[str, object]:
    worst = found.worst
    return {
        "makespan": _figures(found.makespan),
        "lost": None if worst is None else worst.member,
        "unserved": max((loss.unserved for loss in found.losses), default=0),
        "losses": {loss.member: loss.makespan.value for loss in found.losses},
    }


def _figures(level: LevelValue | None) -> dict[str, int] | None:
    return None if level is None else {"value": level.value, "bound": level.bound}


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group")
    for title in ("members", "makespan", "bound", "sum of squares", "moves", "bound"):
        table.add_column(title, justify="right")
    table.add_column("enough")
    for record in records:
        if "error" in record:
            table.add_row(record["id"], record["error"])
            continue
        for size in record["sizes"]:
            most, moves = size["makespan"] or {}, size["movement"] or {}
            figures = (
                size["members"],
                most.get("value"),
                most.get("bound"),
                size["imbalance"],
                moves.get("value"),
                moves.get("bound"),
            )
            cells = ("" if figure is None else str(figure) for figure in figures)
            table.add_row(record["id"], *cells, _verdict(record, size))
        for name, found in record.get("resilience", {}).items():
            most = found["makespan"]
            said = f"{name}, {found['lost']} lost"
            table.add_row(
                record["id"], "", str(most["value"]), str(most["bound"]), "", "", "", said
            )
        if record["needed"] is None:
            table.add_row(record["id"], "", "", "", "", "", "", record["reason"])
    return table


def _verdict(record: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    said = {True: "yes", False: "no", None: "not known"}[size["enough"]]
    if "unserved" in size:
        said += f", nobody consumes {', '.join(size['unserved'])}"
    if size["members"] == record["needed"]:
        said += ", the fewest" if record["proven"] else ", the fewest found"
    return said + (", today" if size["members"] == record["today"] else "")
