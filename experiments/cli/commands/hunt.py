"""``kassay hunt``: the smallest groups on which an assignor falls short."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from kassay.experiments.cli import BAD_INPUT, print_error
from kassay.experiments.cli.assignor_options import (
    AssignorCommand,
    AssignorFunction,
    AssignorSeconds,
    OptionalAssignorName,
    only_assignor,
)
from kassay.experiments.cli.common_options import DeterministicLimit, TimeLimit
from kassay.experiments.cli.group_io import name_of, open_text, table_console, to_json
from kassay.experiments.compare import CaseLimits
from kassay.experiments.counterexamples.exhaustive_search import EXHAUSTIVE, exhaustive_cases
from kassay.experiments.counterexamples.gallery import Gallery, gallery
from kassay.experiments.counterexamples.gallery_page import render_gallery
from kassay.experiments.counterexamples.shortcomings import SearchOptions, Shortcoming
from kassay.experiments.counterexamples.shrinking import size_of
from kassay.experiments.spark.counterexample_search import search_cases
from kassay.experiments.spark.session import spark_session
from kassay.experiments.study.case import Case, cases_of, imported_cases
from kassay.experiments.study.families.registry import FAMILIES
from kassay.reference.documents.json_codec import group_document, read_groups
from kassay.reference.model.errors import InputError

_PLACES = (EXHAUSTIVE, *FAMILIES)
_TABLED = 10


def _known_places(names: list[str] | None) -> list[str]:
    for name in names or ():
        if name not in _PLACES:
            raise typer.BadParameter(f"no family {name!r}; there are {', '.join(_PLACES)}")
    return list(dict.fromkeys(names or ()))


def hunt(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the gallery.")],
    shortcoming: Annotated[
        Shortcoming,
        typer.Option(
            "--for",
            help="imbalance: not the least; moves: most unnecessary ones per partition; ratio: "
            "greatest load over the least possible; livelock: never ends; failure: no valid "
            "answer.",
        ),
    ] = Shortcoming.IMBALANCE,
    assignor: OptionalAssignorName = None,
    assignor_cmd: AssignorCommand = None,
    assignor_python: AssignorFunction = None,
    assignor_timeout: AssignorSeconds = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            callback=_known_places,
            help=f"Where to hunt, repeated; {EXHAUSTIVE} by default: {', '.join(_PLACES)}.",
            show_default=False,
        ),
    ] = None,
    members: Annotated[
        int, typer.Option("--members", min=1, help=f"Most members, in {EXHAUSTIVE}.")
    ] = 3,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, help=f"Most partitions, in {EXHAUSTIVE}.")
    ] = 4,
    groups: Annotated[
        list[Path] | None,
        typer.Option("--groups", help="Group documents to hunt in too."),
    ] = None,
    cases: Annotated[
        int, typer.Option("--cases", min=0, help="Seeds, over all seeded families together.")
    ] = 1000,
    first_seed: Annotated[int, typer.Option("--first-seed", help="Where seeds begin.")] = 0,
    wander: Annotated[
        int,
        typer.Option(
            "--wander",
            min=0,
            help="Groups to try for each one found, on a random way among groups no larger.",
        ),
    ] = 0,
    restarts: Annotated[
        int, typer.Option("--restarts", min=1, help="How many such ways, the best of which counts.")
    ] = 2,
    top: Annotated[int, typer.Option("--top", min=1, help="Groups drawn on the page.")] = 24,
    master: Annotated[str, typer.Option("--master", help="Where Spark runs.")] = "local[*]",
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="Spark tasks.", show_default="by size")
    ] = None,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = 2.0,
) -> None:
    """Hunt for groups on which an assignor falls short, and shrink each to a smallest one.

    Searches families of groups on Spark; of the groups found every kind is kept once,
    whatever its names. Writes groups.jsonl, gallery.json and a page, gallery.html. In
    small-worlds nothing is left to luck: every group up to a size, under every naming.

    Example: `kassay hunt --assignor sticky --for imbalance --family small-worlds -o out/hunt`
    """
    name = only_assignor(assignor, assignor_cmd, assignor_python, assignor_timeout)
    wanted = SearchOptions(
        assignor=name,
        shortcoming=shortcoming,
        limits=CaseLimits(time=time_limit, deterministic=deterministic_limit),
        walk_steps=wander,
        walks=restarts,
    )
    places = family or ([] if groups else [EXHAUSTIVE])
    bad: list[str] = []
    documents = [text for path in groups or () for text in _documents(path, bad)]
    where = [
        *imported_cases(documents, assignors=[name]),
        *_cases(places, name, sizes=(members, partitions), seeds=cases, first_seed=first_seed),
    ]
    if not where:
        raise InputError("nowhere to hunt: no group was read, and --cases is 0")
    out.mkdir(parents=True, exist_ok=True)
    with spark_session(master=master) as spark:
        caught = search_cases(spark, where, wanted, tasks=tasks)
    found = gallery(caught, wanted)
    about = {
        "assignor": name,
        "hunted for": str(shortcoming),
        "families": ", ".join([*places, *(["imported"] if documents else [])]),
    }
    if EXHAUSTIVE in places:
        about["small worlds"] = f"up to {members} members and {partitions} partitions, all of them"
    if any(FAMILIES[place].size is None for place in places if place in FAMILIES):
        about["seeds"] = f"{cases}, from {first_seed}"
    if wander:
        about["wandered"] = f"{restarts} ways of {wander} groups each"
    _write(found, out, about=about, top=top)
    _print_summary(found)
    if bad:
        raise typer.Exit(BAD_INPUT)


def _cases(
    places: Sequence[str], assignor: str, *, sizes: tuple[int, int], seeds: int, first_seed: int
) -> Iterator[Case]:
    if EXHAUSTIVE in places:
        yield from exhaustive_cases(members=sizes[0], partitions=sizes[1], assignor=assignor)
    seeded = [place for place in places if place != EXHAUSTIVE]
    yield from cases_of(seeded, seeds=seeds, assignors=[assignor], first_seed=first_seed)


def _documents(path: Path, bad: list[str]) -> Iterator[str]:
    with open_text(path) as stream:
        for _, group in read_groups(stream, name=name_of(path)):
            if isinstance(group, InputError):
                print_error(str(group))
                bad.append(str(group))
            else:
                yield json.dumps(group_document(group), ensure_ascii=False)


def _write(found: Gallery, out: Path, *, about: dict[str, str], top: int) -> None:
    lines = "".join(to_json(group_document(entry.group)) + "\n" for entry in found.entries)
    (out / "groups.jsonl").write_text(lines, encoding="utf-8")
    document = json.dumps(found.document(), ensure_ascii=False, indent=2) + "\n"
    (out / "gallery.json").write_text(document, encoding="utf-8")
    page = render_gallery(found, about=about, top=top)
    (out / "gallery.html").write_text(page, encoding="utf-8")


def _print_summary(found: Gallery) -> None:
    counts = found.counts
    print(  # noqa: T201
        f"{counts['cases']} groups under {counts['namings']} namings: "
        f"{found.options.assignor} falls short on {counts['short']}; "
        f"smallest kinds: {counts['smallest']}; "
        f"not proven: {counts['unproven']}; errors: {counts['errors']}"
    )
    table = Table("group", "members", "topics", "partitions", "owned", "severity")
    for column in table.columns[1:]:
        column.justify = "right"
    for entry in found.entries[:_TABLED]:
        size = size_of(entry.group)
        figures = (size.members, size.topics, size.partitions, size.owned, entry.severity)
        table.add_row(entry.group.id, *map(str, figures))
    if found.entries:
        table_console().print(table)
