"""``kassay study``: many groups, every assignor and the optimum, on Spark."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from experiments.cli import BAD_INPUT, complain
from experiments.cli.custom import (
    AssignorCommand,
    AssignorFunction,
    AssignorSeconds,
    custom_assignors,
)
from experiments.cli.documents import name_of, open_text, table_console
from experiments.cli.options import AssignorNames, DeterministicLimit, FamilyNames, TimeLimit
from experiments.compare import Limits
from experiments.families import Case, cases_of, imported_cases
from experiments.manifest import configuration, manifest
from experiments.report.load import load_tables
from experiments.report.summary import Figures, by_assignor, drawn, joined
from experiments.spark.pipeline import write_tables
from experiments.spark.session import spark_session
from reference.codec import group_document, read_groups
from reference.group import InvalidGroupError

_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s)://.+|yarn")


def _known_master(master: str) -> str:
    if not _MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is no Spark master such as local[4] or spark://host:7077"
        )
    return master


def study(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the tables.")],
    groups: Annotated[
        list[Path] | None,
        typer.Option("--groups", help="Group documents to study too, as `import` writes them."),
    ] = None,
    family: FamilyNames = None,
    cases: Annotated[
        int, typer.Option("--cases", min=0, help="Seeds, over all seeded families together.")
    ] = 1000,
    first_seed: Annotated[int, typer.Option("--first-seed", help="Where seeds begin.")] = 0,
    assignor: AssignorNames = None,
    assignor_cmd: AssignorCommand = None,
    assignor_python: AssignorFunction = None,
    assignor_timeout: AssignorSeconds = None,
    master: Annotated[
        str, typer.Option("--master", callback=_known_master, help="Where Spark runs.")
    ] = "local[*]",
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="Spark tasks.", show_default="by size")
    ] = None,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = 2.0,
) -> None:
    """Study seeded families of groups, and groups of your own, in parallel.

    Writes the Parquet tables groups, assignments, optima and comparisons and a
    manifest.json; `kassay report` makes a page of them.

    Example: `kassay study --groups groups.jsonl --cases 1000 --out out/study`
    """
    begin = time.perf_counter()
    limits = Limits(time=time_limit, deterministic=deterministic_limit)
    custom = custom_assignors(assignor_cmd, assignor_python, assignor_timeout)
    names, families = [*(assignor or []), *custom], family or []
    bad: list[str] = []
    documents = [text for path in groups or () for text in _documents(path, bad)]
    all_cases: list[Case] = [
        *imported_cases(documents, assignors=names),
        *cases_of(families, seeds=cases, assignors=names, first_seed=first_seed),
    ]
    if not all_cases:
        raise InvalidGroupError("nothing to study: no group was read, and --cases is 0")
    out.mkdir(parents=True, exist_ok=True)
    described = configuration(
        all_cases,
        families=families,
        seeds=cases,
        first_seed=first_seed,
        assignors=names,
        limits=limits,
    )
    with spark_session(master=master) as spark:
        write_tables(
            spark,
            all_cases,
            out,
            tasks=tasks,
            limits=limits,
            manifest=lambda rows: manifest(
                described,
                rows=rows,
                run={"master": master, "seconds": round(time.perf_counter() - begin, 1)},
            ),
        )
    _print_summary(out)
    if bad:
        raise typer.Exit(BAD_INPUT)


def _documents(path: Path, bad: list[str]) -> Iterator[str]:
    with open_text(path) as stream:
        for _, group in read_groups(stream, name=name_of(path)):
            if isinstance(group, InvalidGroupError):
                complain(str(group))
                bad.append(str(group))
            else:
                yield json.dumps(group_document(group), ensure_ascii=False)


def _print_summary(directory: Path) -> None:
    rows = drawn(joined(load_tables(directory)))
    table = Table(title="Kafka's assignors against the proven optimum")
    table.add_column("assignor", no_wrap=True)
    for title in (
        "groups",
        "least imbalance",
        "95 %",
        "moves more than it must",
        "moves",
        "unnecessary",
        "never ends",
        "no valid answer",
    ):
        table.add_column(title, justify="right")
    for name, figures in by_assignor(rows).items():
        table.add_row(name, *_cells(figures))
    table_console().print(table)


def _cells(figures: Figures) -> Iterator[str]:
    low, high = figures.least.interval
    yield str(figures.groups)
    yield figures.least.percent
    yield f"{100 * low:.1f}–{100 * high:.1f}"
    yield figures.wasteful.percent
    yield str(figures.moves)
    yield str(figures.unnecessary)
    yield str(figures.nonterminating)
    yield str(figures.failed)
