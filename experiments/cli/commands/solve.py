"""``kassay solve``: find the proven optimum of each group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kassay.experiments.cli.application import STOP, option
from kassay.experiments.cli.process_groups import GroupResult, GroupSource, process_each_group
from kassay.experiments.cli.search_options import ObjectiveOptions, SearchOptions
from kassay.experiments.cli.write_results import Format, Record, TableLayout
from kassay.reference.documents.json_codec import assignment_document, group_fingerprint
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import loads
from kassay.solver.certificate.certificate import Proof, weakest_proof
from kassay.solver.certificate.documents import certificate_document
from kassay.solver.certify import certify
from kassay.solver.solution import Method, Solution, level_keys, level_values, value_and_bound
from kassay.solver.solve import solve as solve_group


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """Command-line options of ``kassay solve``."""

    method: Method = option(Method.AUTO)
    require_optimal: bool = option(False)
    certificate: bool = option(False)
    output_format: Format = option(Format.JSONL, "--format")


def solve(
    options: SolveOptions, source: GroupSource, objective: ObjectiveOptions, search: SearchOptions
) -> None:
    """Run ``kassay solve`` with parsed options."""

    def process(group: Group) -> GroupResult:
        try:
            solution = solve_group(
                group,
                levels=objective.levels(group),
                constraints=objective.constraints(group),
                method=options.method,
                limits=search.limits(),
                seed=search.seed,
            )
        except ValueError as error:
            # Includes methods and measures that do not support this group.
            raise InputError(f"{group.label}: {error}") from error
        record = solution_record(
            group, solution, certified=options.certificate and not STOP.is_set()
        )
        is_proven = solution.is_optimal or not options.require_optimal
        return GroupResult(record, solution.assignment is not None and is_proven)

    layout = TableLayout(
        first=("status", "proof", "method", "measure"),
        numbers=(
            *("imbalance", "imbalance bound", "moves", "moves bound"),
            *("maximum load", "seconds"),
        ),
        optional=("proof", "method", "measure", "imbalance bound", "moves bound", "seconds"),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout)


def _rows(record: Record) -> Iterator[Sequence[object]]:
    imbalance, movement = record["imbalance"] or {}, record["movement"] or {}
    interrupted = ", interrupted" if record.get("interrupted") else ""
    yield (
        record["status"] + interrupted,
        weakest_proof(Proof(proof) for proof in record["proof"].values()),
        record["method"],
        imbalance.get("measure", "; ".join(record.get("conflict", ()))),
        imbalance.get("value"),
        imbalance.get("bound"),
        movement.get("value"),
        movement.get("bound"),
        max((record["loads"] or {}).values(), default=None),
        f"{record['seconds']:.3f}",
    )


def solution_record(group: Group, solution: Solution, *, certified: bool = False) -> dict[str, Any]:
    """Convert a solution to JSON. ``certified`` adds its certificate."""
    document = None
    if certified and solution.certificate is not None:
        certificate = certify(group, solution)
        levels = level_values(certificate.claims)
        solution = replace(solution, certificate=certificate, levels=levels)
        document = certificate_document(certificate)
    record: dict[str, Any] = {
        "id": group.id,
        "status": str(solution.status),
        "method": solution.method,
    }
    if solution.interrupted:
        record["interrupted"] = True
    assignment = solution.assignment
    if assignment is None:
        record |= {"imbalance": None, "movement": None, "loads": None, "assignment": None}
        record["conflict"] = list(solution.conflict)
    else:
        keys = level_keys(level.name for level in solution.levels)
        for key, level in zip(keys, solution.levels, strict=True):
            measure = {"measure": level.name} if key == "imbalance" else {}
            record[key] = measure | (value_and_bound(level, group) or {})
        record["loads"] = loads(group, assignment)
        record["assignment"] = assignment_document(assignment)
    record["seconds"] = round(solution.seconds, 6)
    record["proof"] = solution.proof_by_level()
    record["fingerprint"] = group_fingerprint(group)
    return record if document is None else record | {"certificate": document}
