"""``kassay solve``: find the proven optimum of each group."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from kassay.experiments.cli import group_io, output_options, search_options
from kassay.experiments.cli.option_checks import known_names
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads
from kassay.solver.constraints import Colocated, Constraint, MaxMoves, MaxPartitions
from kassay.solver.objective import FURTHER_LEVELS, Tolerance, default_levels
from kassay.solver.solution import Solution, value_and_bound
from kassay.solver.solve import Method
from kassay.solver.solve import solve as solve_group


def solve(
    file: group_io.GroupFile = group_io.STDIN,
    *,
    imbalance: search_options.ImbalanceMeasure = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="FRACTION",
            help="Fraction by which the imbalance may exceed its minimum to save moves.",
        ),
    ] = 0.0,
    level: Annotated[
        list[str] | None,
        typer.Option(
            callback=known_names("level", list(FURTHER_LEVELS)),
            help=f"Objective level after movement, repeatable: {', '.join(FURTHER_LEVELS)}.",
            show_default=False,
        ),
    ] = None,
    max_moves: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of moves.", show_default="no limit")
    ] = None,
    max_partitions: Annotated[
        int | None,
        typer.Option(
            min=0, help="Maximum number of partitions per member.", show_default="no limit"
        ),
    ] = None,
    colocate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC,...",
            help="Topics, separated by commas. Partitions of these topics with the same number get "
            "the same member. Repeatable.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(help="Solution method. Method flow requires partitions of equal weight."),
    ] = Method.AUTO,
    search: search_options.SearchOptions = search_options.SearchOptions(),
    require_optimal: Annotated[
        bool,
        typer.Option(
            "--require-optimal", help="Exit with code 1 if the assignment is not proven optimal."
        ),
    ] = False,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Include a certificate for `kassay verify`.")
    ] = False,
    output_format: output_options.OutputFormat = output_options.Format.JSONL,
) -> None:
    """Find the assignment with the fewest moves among those with minimum imbalance.

    Imbalance and moves each have a value and a proven lower bound. If a limit is reached,
    the result is the best assignment found. The time limit applies to each group.

    Example: `kassay solve groups.jsonl --imbalance makespan --tolerance 0.01`
    """
    constraints = _constraints(max_moves, max_partitions, colocate or [])
    further = [FURTHER_LEVELS[name]() for name in level or ()]

    def process(group: Group) -> group_io.GroupResult:
        excess = Tolerance(relative=tolerance)
        try:
            solution = solve_group(
                group,
                levels=(*default_levels(group, measure=imbalance, tolerance=excess), *further),
                constraints=constraints,
                method=method,
                limits=search.limits(),
                seed=search.seed,
            )
        except ValueError as error:
            # Includes methods and measures that do not support this group.
            raise InputError(f"group {group.id!r}: {error}") from error
        record = _record(group, solution)
        if certificate and solution.assignment is not None:
            from kassay.solver.certificate.documents import certificate_document
            from kassay.solver.certify import certify

            record["certificate"] = certificate_document(certify(group, solution))
        is_proven = solution.is_optimal or not require_optimal
        return group_io.GroupResult(record, solution.assignment is not None and is_proven)

    layout = group_io.TableLayout(
        first=("status", "method", "measure"),
        numbers=("imbalance", "bound", "moves", "bound", "maximum load", "seconds"),
        rows=_rows,
    )
    group_io.process_groups(file, process, output_format=output_format, layout=layout)


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
        record["imbalance"] = {"measure": first.name, **(value_and_bound(first) or {})}
        record |= {level.name: value_and_bound(level) for level in rest}
        record["loads"] = loads(group, assignment)
        record["assignment"] = assignment_document(assignment)
    record["seconds"] = round(solution.seconds, 6)
    return record


def _rows(record: group_io.Record) -> Iterator[Sequence[object]]:
    imbalance, movement = record["imbalance"] or {}, record["movement"] or {}
    yield (
        record["status"],
        record["method"],
        imbalance.get("measure", "; ".join(record.get("conflict", ()))),
        imbalance.get("value"),
        imbalance.get("bound"),
        movement.get("value"),
        movement.get("bound"),
        max((record["loads"] or {}).values(), default=None),
        f"{record['seconds']:.3f}",
    )
