"""``kassay plan``: the planning report of groups, and its files."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import BAD_INPUT, complain, remark
from experiments.cli.documents import NOT_REACHED, STDIN, name_of, open_text, to_json
from experiments.compare import Limits
from experiments.planning.export import (
    group_after,
    loads_csv,
    moves_csv,
    plan_document,
    static_assignment,
)
from experiments.planning.export import to_json as to_document
from experiments.planning.page import render_html, render_ticket
from experiments.planning.plan import GROWTH, Plan
from experiments.planning.plan import plan as make_plan
from experiments.sources.files import import_groups
from experiments.sources.join import Assume, Joining, Weights, load_subscriptions
from reference.codec import read_groups
from reference.group import Group, InvalidGroupError


def plan(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="Group documents, or captures of kafka-consumer-groups.sh: a file, a directory "
            "of one moment, or - for documents on standard input.",
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")
    ],
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Only this group; repeated for more.", show_default=False),
    ] = None,
    subscriptions: Annotated[
        str,
        typer.Option(
            metavar="assigned|equal|FILE", help="Of captures: what no table shows; as in import."
        ),
    ] = Assume.ASSIGNED.value,
    weights: Annotated[
        Weights, typer.Option(help="Of captures: what a partition weighs.")
    ] = Weights.NONE,
    missing_lag: Annotated[
        int | None,
        typer.Option(min=0, help="Lag of partitions that show none.", show_default=False),
    ] = None,
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
    time_limit: Annotated[
        float, typer.Option(min=0.001, help="Seconds that one search may take.")
    ] = 30.0,
    deterministic_limit: Annotated[
        float | None,
        typer.Option(min=0.001, help="CP-SAT's own time for one search."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the searches.")] = 0,
) -> None:
    """Write a planning report: where a group stands, the best it can be, how to get there.

    Into DIR go report.html, plan.json, moves.csv, loads.csv, ticket.md,
    static-assignment.json (topic to partitions of each member, for `assign()`) and
    after.jsonl (the group once the plan is carried out). Several groups get a directory
    each. One JSON line a group says what was planned. Exits with 1 where a group has no
    assignment at all.

    Example: `kassay plan captures/ --subscriptions equal -o plans/`
    """
    factors = tuple(map(_factor, growth)) if growth else GROWTH
    known = None if subscriptions in list(Assume) else load_subscriptions(Path(subscriptions))
    joining = Joining(
        assume=Assume(subscriptions) if known is None else Assume.ASSIGNED,
        subscriptions=known,
        weights=weights,
        missing_lag=missing_lag,
    )
    limits = Limits(time=time_limit, deterministic=deterministic_limit)
    wanted = set(group or ())
    found, code = [], 0
    for item in _groups(source, joining):
        if isinstance(item, _Failure):
            complain(item.error)
            sys.stdout.write(to_json({"id": item.id, "error": item.error}) + "\n")
            code = BAD_INPUT
        elif not wanted or item.id in wanted:
            found.append(item)
    missing = sorted(wanted - {one.id for one in found})
    if missing:
        raise InvalidGroupError(f"{name_of(source)}: no group {missing[0]!r} in it")
    names = _directories(found)
    for number, one in enumerate(found, 1):
        if len(found) > 1:
            remark(f"{number} of {len(found)}: {one.id}")
        directory = output if len(found) == 1 else output / names[number - 1]
        try:
            made = make_plan(
                one, batch=batch, growth=factors, points=points, limits=limits, seed=seed
            )
        except LookupError as error:
            code = max(code, NOT_REACHED)
            sys.stdout.write(to_json({"id": one.id, "conflict": str(error)}) + "\n")
            continue
        _write(made, directory)
        sys.stdout.write(to_json(_line(made, directory)) + "\n")
    if code:
        raise typer.Exit(code)


class _Failure:
    """A group that could not be read."""

    def __init__(self, id: str | None, error: str) -> None:
        self.id, self.error = id, error


def _groups(source: Path, joining: Joining) -> Iterator[Group | _Failure]:
    if source == STDIN or _holds_documents(source):
        with open_text(source) as stream:
            for id, found in read_groups(stream, name=name_of(source)):
                bad = isinstance(found, InvalidGroupError)
                yield _Failure(id, str(found)) if bad else found  # type: ignore[misc]
        return
    for imported in import_groups([source], joining, skip_empty=True):
        if imported.error is not None:
            yield _Failure(imported.id, imported.error)
        elif imported.group is None:
            remark(f"skipped {imported.id!r}: {imported.skipped}")
        else:
            yield imported.group


def _holds_documents(source: Path) -> bool:
    """Whether a file holds group documents; anything else is for the importers."""
    if source.is_dir():
        return False
    text = source.read_text(encoding="utf-8", errors="replace").lstrip()
    if not text.startswith(("{", "[")):
        return False
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return True  # the codec says what is wrong with it
    if isinstance(document, list):
        document = document[0] if document else {}
    return isinstance(document, dict) and {"topics", "members"} <= set(document)


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
        "after.jsonl": to_json(group_after(made)) + "\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")


def _line(made: Plan, directory: Path) -> dict[str, object]:
    return {
        "id": made.group.id,
        "directory": str(directory),
        "status": str(made.optimum.status),
        "makespan": {"today": made.today.makespan, "then": made.then.makespan},
        "moves": made.moved,
        "placed": len(made.moves) - made.moved,
    }
