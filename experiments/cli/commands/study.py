"""``kassay study``: many groups, every assignor and the optimum, on Spark."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from kassay.experiments.cli import BAD_INPUT, print_error
from kassay.experiments.cli.assignor_options import (
    AssignorCommand,
    AssignorFunction,
    AssignorSeconds,
    custom_assignors,
)
from kassay.experiments.cli.common_options import (
    AssignorNames,
    DeterministicLimit,
    FamilyNames,
    TimeLimit,
)
from kassay.experiments.cli.group_io import name_of, open_text, table_console
from kassay.experiments.compare import CaseLimits
from kassay.experiments.report.study_summary import AssignorSummary, totals
from kassay.experiments.report.table_reader import load_tables
from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_pipeline import write_study
from kassay.experiments.study.batches import BATCH_CASES
from kassay.experiments.study.case import Case, cases_of, imported_cases
from kassay.experiments.study.configuration import read_config
from kassay.experiments.study.manifest import configuration, manifest
from kassay.reference.documents.json_codec import group_document, read_groups
from kassay.reference.model.errors import InputError

_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")
_SAID_BY_FILE = (
    "groups",
    "family",
    "cases",
    "first_seed",
    "assignor",
    "time_limit",
    "deterministic_limit",
)


def _known_master(master: str | None) -> str | None:
    if master is not None and not _MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is no Spark master such as local[4] or spark://host:7077"
        )
    return master


def study(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]", help="YAML file that says what to study, instead of options."
        ),
    ] = None,
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
        str | None,
        typer.Option(
            "--master",
            callback=_known_master,
            help="Where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://..., sc://HOST:PORT.",
            show_default="local[*], or what spark-submit says",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting, repeated."),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="Spark tasks.", show_default="by size")
    ] = None,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = 2.0,
) -> None:
    """Study families of groups, and groups of your own, in parallel.

    Writes the Parquet tables groups, assignments, optima, comparisons and timings and a
    manifest.json; `kassay report` makes a page of them. A study that was interrupted goes
    on where it was when it is started again.

    Examples: `kassay study experiments/study/configurations/quick.yaml --out out/quick`,
    `kassay study --groups groups.jsonl --cases 1000 --out out/study`
    """
    begin = time.perf_counter()
    custom = custom_assignors(assignor_cmd, assignor_python, assignor_timeout)
    plan = (
        _of_options(
            families=family or [],
            seeds=cases,
            first_seed=first_seed,
            assignors=[*(assignor or []), *custom],
            limits=CaseLimits(time=time_limit, deterministic=deterministic_limit),
            groups=groups or [],
        )
        if config is None
        else _of_file(context, config, custom)
    )
    if not plan.cases:
        raise InputError("nothing to study: no group was read, and there are no cases")
    with spark_session(master=master, settings=_settings(conf or [])) as spark:
        write_study(
            spark,
            plan.cases,
            out,
            tasks=tasks,
            wave=plan.wave,
            limits=plan.limits,
            drawn=plan.drawn,
            manifest=lambda rows: manifest(
                plan.described,
                rows=rows,
                run={
                    "master": master or spark.conf.get("spark.master"),
                    "seconds": round(time.perf_counter() - begin, 1),
                },
            ),
        )
    _print_summary(out)
    if plan.bad:
        raise typer.Exit(BAD_INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to study, wherever that was said."""

    cases: list[Case]
    described: dict[str, object]
    limits: CaseLimits
    bad: list[str]
    wave: int = BATCH_CASES
    drawn: int | None = None


def _of_options(
    *,
    families: list[str],
    seeds: int,
    first_seed: int,
    assignors: list[str],
    limits: CaseLimits,
    groups: list[Path],
) -> _Plan:
    bad: list[str] = []
    documents = [text for path in groups for text in _documents(path, bad)]
    cases = [
        *imported_cases(documents, assignors=assignors),
        *cases_of(families, seeds=seeds, assignors=assignors, first_seed=first_seed),
    ]
    described = configuration(
        cases,
        families=families,
        seeds=seeds,
        first_seed=first_seed,
        assignors=assignors,
        limits=limits,
    )
    return _Plan(cases=cases, described=described, limits=limits, bad=bad)


def _of_file(context: typer.Context, path: Path, custom: list[str]) -> _Plan:
    for name in _SAID_BY_FILE:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{option} is for studies without a file: say it in {path}")
    with open_text(path) as stream:
        config = read_config(stream.read(), name_of(path), directory=path.parent)
    config = replace(config, assignors=(*config.assignors, *custom))
    bad: list[str] = []
    documents = [text for file in config.groups for text in _documents(file, bad)]
    cases = [*imported_cases(documents, assignors=config.assignors), *config.cases()]
    described = configuration(
        cases,
        families=list(config.families),
        seeds=len(cases),
        first_seed=config.first_seed,
        assignors=config.assignors,
        limits=config.limits,
        study=config.described(),
    )
    return _Plan(
        cases=cases,
        described=described,
        limits=config.limits,
        bad=bad,
        wave=config.wave,
        drawn=config.drawn,
    )


def _settings(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"--conf takes KEY=VALUE, not {pair!r}")
        found[key] = value
    return found


def _documents(path: Path, bad: list[str]) -> Iterator[str]:
    with open_text(path) as stream:
        for _, group in read_groups(stream, name=name_of(path)):
            if isinstance(group, InputError):
                print_error(str(group))
                bad.append(str(group))
            else:
                yield json.dumps(group_document(group), ensure_ascii=False)


def _print_summary(directory: Path) -> None:
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
    for name, figures in totals(load_tables(directory)).items():
        table.add_row(name, *_cells(figures))
    table_console().print(table)


def _cells(figures: AssignorSummary) -> Iterator[str]:
    low, high = figures.minimum_imbalance.interval
    yield str(figures.groups)
    yield figures.minimum_imbalance.percent
    yield f"{100 * low:.1f}–{100 * high:.1f}"
    yield figures.with_unnecessary_moves.percent
    yield str(figures.moves)
    yield str(figures.unnecessary_moves)
    yield str(figures.nonterminating)
    yield str(figures.failed)
