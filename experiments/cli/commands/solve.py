"""``kassay solve``: the proven optimum of each group."""

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
from kassay.experiments.cli.search_options import FirstLevel, Seconds, Seed, Workers, WorkLimit
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads
from kassay.solver.certificate.check import certify
from kassay.solver.certificate.documents import certificate_document
from kassay.solver.constraints import Colocated, Constraint, MaxMoves, MaxPartitions
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import FURTHER_LEVELS, Level, Measure, Tolerance, default_levels
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import Method
from kassay.solver.solve import solve as solve_group


def _further_levels(names: list[str] | None) -> list[str]:
    for name in names or ():
        if name not in FURTHER_LEVELS:
            raise typer.BadParameter(f"no level {name!r}; there are {', '.join(FURTHER_LEVELS)}")
    return names or []


def solve(
    file: GroupFile = STDIN,
    *,
    imbalance: FirstLevel = None,
    tolerance: Annotated[
        float,
        typer.Option(min=0, help="Share of the least imbalance that fewer moves may cost."),
    ] = 0.0,
    then: Annotated[
        list[str] | None,
        typer.Option(
            callback=_further_levels,
            help=f"Levels after movement, repeated: {', '.join(FURTHER_LEVELS)}.",
            show_default=False,
        ),
    ] = None,
    max_moves: Annotated[
        int | None, typer.Option(min=0, help="Move at most so many partitions.")
    ] = None,
    max_partitions: Annotated[
        int | None, typer.Option(min=0, help="Give a member at most so many partitions.")
    ] = None,
    colocate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC,TOPIC...",
            help="Keep equal partition numbers of these topics together; may be repeated.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="flow: exact, equal weights.")] = Method.AUTO,
    time_limit: Seconds = 60.0,
    deterministic_limit: WorkLimit = None,
    workers: Workers = 1,
    seed: Seed = 0,
    require_optimal: Annotated[
        bool, typer.Option("--require-optimal", help="Exit with 1 unless all is proven.")
    ] = False,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Add the evidence, for `kassay verify`.")
    ] = False,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Find the least imbalance and then the fewest moves, with proof.

    Example: `kassay solve groups.jsonl --imbalance makespan --tolerance 0.01`
    """
    constraints = _constraints(max_moves, max_partitions, colocate or [])
    limits = SearchLimits(time=time_limit, deterministic=deterministic_limit, workers=workers)

    def work(group: Group) -> Answer:
        try:
            solution = solve_group(
                group,
                levels=_levels(group, imbalance, tolerance, then or []),
                constraints=constraints,
                method=method,
                limits=limits,
                seed=seed,
            )
        except ValueError as error:
            # Also what the chosen method or measure cannot do with this group.
            raise InputError(f"group {group.id!r}: {error}") from error
        proven = solution.is_optimal or not require_optimal
        record = _record(group, solution)
        if certificate and solution.assignment is not None:
            record["certificate"] = certificate_document(certify(group, solution))
        return Answer(record, solution.assignment is not None and proven)

    answer_groups(file, work, output=output, table=_table)


def _levels(
    group: Group, measure: Measure | None, tolerance: float, then: Sequence[str]
) -> tuple[Level, ...]:
    levels = default_levels(group, measure=measure, tolerance=Tolerance(relative=tolerance))
    return (*levels, *(FURTHER_LEVELS[name]() for name in then))


def _constraints(
    max_moves: int | None, max_partitions: int | None, colocate: Sequence[str]
) -> tuple[Constraint, ...]:
    constraints: list[Constraint] = [Colocated(tuple(names.split(","))) for names in colocate]
    if max_moves is not None:
        constraints.append(MaxMoves(max_moves))
    if max_partitions is not None:
        constraints.append(MaxPartitions(max_partitions))
    return tuple(constraints)


def _record(group: Group, solution: Solution) -> dict[str, object]:
    record: dict[str, object] = {
        "id": group.id,
        "status": str(solution.status),
        "method": solution.method,
    }
    assignment = solution.assignment
    if assignment is None:
        record |= {"imbalance": None, "movement": None, "loads": None, "assignment": None}
        record["conflict"] = list(solution.conflict)
    else:
        first, *rest = solution.levels
        record["imbalance"] = {"measure": first.name, **_figures(first)}
        record |= {level.name: _figures(level) for level in rest}
        record["loads"] = loads(group, assignment)
        record["assignment"] = assignment_document(assignment)
    record["seconds"] = round(solution.seconds, 6)
    return record


def _figures(level: LevelValue) -> dict[str, int]:
    return {"value": level.value, "bound": level.bound}


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "status", "method", "measure")
    for title in ("imbalance", "bound", "moves", "bound", "greatest load", "seconds"):
        table.add_column(title, justify="right")
    for record in records:
        if "error" in record:
            table.add_row(record["id"], record["error"])
            continue
        first, moves = record["imbalance"] or {}, record["movement"] or {}
        figures = (first.get("value"), first.get("bound"), moves.get("value"), moves.get("bound"))
        greatest = max((record["loads"] or {}).values(), default=None)
        table.add_row(
            record["id"],
            record["status"],
            record["method"],
            first.get("measure", "; ".join(record.get("conflict", ()))),
            *("" if figure is None else str(figure) for figure in (*figures, greatest)),
            f"{record['seconds']:.3f}",
        )
    return table
