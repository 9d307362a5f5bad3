"""``kassay plan``: the planning report of groups, and its files."""

import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import BAD_INPUT, print_error, print_note
from kassay.experiments.cli.common_options import DeterministicLimit, TimeLimit
from kassay.experiments.cli.group_io import NOT_REACHED, name_of, to_json
from kassay.experiments.cli.source_options import (
    Metadata,
    MissingLag,
    Sizes,
    Source,
    Subscriptions,
    WeightsFrom,
    import_options,
    read_source,
)
from kassay.experiments.compare import CaseLimits
from kassay.experiments.planning.plan import GROWTH, Plan
from kassay.experiments.planning.plan import plan as make_plan
from kassay.experiments.planning.plan_files import (
    group_after,
    loads_csv,
    moves_csv,
    plan_document,
    static_assignment,
    sticky_seed,
)
from kassay.experiments.planning.plan_files import to_json as to_document
from kassay.experiments.planning.plan_page import render_html, render_ticket
from kassay.experiments.sources.import_options import AssumedSubscriptions, WeightSource
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group


def plan(
    source: Source,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")
    ],
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Only this group; repeated for more.", show_default=False),
    ] = None,
    subscriptions: Subscriptions = AssumedSubscriptions.ASSIGNED.value,
    metadata: Metadata = None,
    weights: WeightsFrom = WeightSource.NONE.value,
    missing_lag: MissingLag = None,
    sizes: Sizes = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Partitions that may be without a consumer at a time.")
    ] = 1,
    growth: Annotated[
        list[str] | None,
        typer.Option(
            help="Traffic to size the group for, as a factor; repeated for more.",
            show_default="1, 1.25, 1.5, 2",
        ),
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="Points of the frontier, at most.")] = 25,
    time_limit: TimeLimit = 30.0,
    deterministic_limit: DeterministicLimit = None,
    seed: Annotated[int, typer.Option(help="Seed of the searches.")] = 0,
) -> None:
    """Write a planning report: where a group stands, the best it can be, how to get there.

    Into DIR go report.html, plan.json, moves.csv, loads.csv, ticket.md,
    static-assignment.json (topic to partitions of each member, for `assign()`),
    sticky-seed.json (user data for sticky assignors to start from) and after.jsonl (the group
    once the plan is carried out). Several groups get a directory
    each. One JSON line a group says what was planned. Exits with 1 where a group has no
    assignment at all.

    Example: `kassay plan captures/ --subscriptions equal -o plans/`

    Example: `kassay plan captures/ --weights size --sizes log-dirs.txt -o plans/`
    """
    factors = tuple(map(_factor, growth)) if growth else GROWTH
    joining = import_options(
        subscriptions=subscriptions,
        metadata=metadata,
        weights=weights,
        sizes=sizes,
        missing_lag=missing_lag,
    )
    limits = CaseLimits(time=time_limit, deterministic=deterministic_limit)
    wanted = set(group or ())
    found, code = [], 0
    for id, item in read_source(source, joining):
        if isinstance(item, InputError):
            print_error(str(item))
            sys.stdout.write(to_json({"id": id, "error": str(item)}) + "\n")
            code = BAD_INPUT
        elif not wanted or id in wanted:
            found.append(item)
    missing = sorted(wanted - {one.id for one in found})
    if missing:
        raise InputError(f"{name_of(source)}: no group {missing[0]!r} in it")
    names = _directories(found)
    for number, one in enumerate(found, 1):
        if len(found) > 1:
            print_note(f"{number} of {len(found)}: {one.id}")
        directory = output if len(found) == 1 else output / names[number - 1]
        try:
            made = make_plan(
                one, batch_size=batch, growth=factors, points=points, limits=limits, seed=seed
            )
        except LookupError as error:
            code = max(code, NOT_REACHED)
            sys.stdout.write(to_json({"id": one.id, "conflict": str(error)}) + "\n")
            continue
        _write(made, directory)
        sys.stdout.write(to_json(_line(made, directory)) + "\n")
    if code:
        raise typer.Exit(code)


def _factor(text: str) -> Fraction:
    try:
        factor = Fraction(text)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor <= 0:
        raise typer.BadParameter(f"--growth wants a factor above 0 like 1.5, got {text!r}")
    return factor


def _directories(groups: Sequence[Group]) -> list[str]:
    """Name a directory for each group, by its id where that makes a unique file name."""
    names: list[str] = []
    for number, group in enumerate(groups, 1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", group.id or "").strip(".-")
        names.append(name if name and name not in names else f"{name or 'group'}-{number}")
    return names


def _write(made: Plan, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        "report.html": render_html(made),
        "plan.json": to_document(plan_document(made)),
        "moves.csv": moves_csv(made),
        "loads.csv": loads_csv(made),
        "ticket.md": render_ticket(made),
        "static-assignment.json": to_document(static_assignment(made)),
        "sticky-seed.json": to_document(sticky_seed(made)),
        "after.jsonl": to_json(group_after(made)) + "\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")


def _line(made: Plan, directory: Path) -> dict[str, object]:
    return {
        "id": made.group.id,
        "directory": str(directory),
        "status": str(made.optimum.status),
        "makespan": {"current": made.current.makespan, "planned": made.planned.makespan},
        "moves": made.movement,
        "placed": len(made.moves) - made.movement,
    }
