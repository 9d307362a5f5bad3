"""``kassay trajectory``: find the fewest moves over a sequence of rebalances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import typer

from kassay.experiments.cli.option_groups import argument, option, parse_share
from kassay.experiments.cli.output import Format, Record, format_option, print_records
from kassay.experiments.cli.run_control import (
    NOT_REACHED,
    STOP,
    exit_interrupted,
    print_note,
    stop_on_interrupt,
)
from kassay.experiments.study.unowned_time import unowned_seconds
from kassay.reference.documents.input_files import STDIN, as_array, name_of, parse_json, read_text
from kassay.reference.documents.json_codec import assignment_document, parse_group, read_groups
from kassay.reference.model.assignment import rejoin_each
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import parts_without_effect
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import TrajectoryObjective
from kassay.solver.certificate.documents import trajectory_certificate_document
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Tolerance
from kassay.solver.solution import value_and_bound
from kassay.solver.trajectory.trajectory import (
    Trajectory,
    default_trajectory_levels,
    optimal_trajectory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryOptions:
    """Command-line options of ``kassay trajectory``."""

    imbalance: Measure | None = option(
        None,
        "Imbalance measure of each rebalance: sum_of_squares, leximax or makespan.",
        metavar="NAME",
        show_default="sum_of_squares; makespan with a tolerance, or if weights or speeds differ",
    )
    tolerance: Fraction | None = option(
        None,
        "Maximum excess of the maximum load over its minimum, as a share such as 0.05 or 5%.",
        parser=parse_share,
        metavar="SHARE",
        show_default="0",
    )
    maximum_load: int | None = option(
        None,
        "Permit each maximum load up to this number, in partitions or in the unit of the weights, "
        "instead of minimum imbalance. If the minimum of a rebalance is higher, it is permitted.",
        min=0,
        metavar="N",
    )
    objective: TrajectoryObjective = option(
        TrajectoryObjective.TOTAL,
        "Minimise the moves over all rebalances (total), or the maximum number of moves of one "
        "rebalance (largest).",
        metavar="NAME",
    )
    work: float = option(60.0, "Limit on the counted work of the search.", min=0, metavar="UNITS")
    time_limit: float | None = option(
        None, "Safety limit in seconds; no limit by default.", min=0, metavar="SECONDS"
    )
    workers: int = option(1, "Number of threads.", min=1)
    require_optimal: bool = option(
        False, "Exit with code 1 if the value of --objective is not proven minimal."
    )
    certificate: bool = option(False, "Include a certificate of the bound.")
    file: Path = argument(
        STDIN,
        "Group documents in the order of the rebalances: a JSON array, or JSON Lines. Use - or "
        "omit FILE to read standard input.",
        metavar="FILE",
        show_default=False,
    )
    output_format: Format = format_option(Format.JSONL)


def trajectory(options: TrajectoryOptions) -> None:
    """Find the fewest moves over a sequence of rebalances.

    FILE contains the group at each rebalance, in order: a JSON array, or JSON Lines. Owned
    partitions matter in the first group only. Each rebalance has minimum imbalance, or a maximum
    load within the tolerance. The result has the total of moves with a proven lower bound, the
    moves and the assignment of each rebalance, and the moves if each rebalance makes the fewest
    moves from the previous assignment. It also has the partition-seconds without an owner, by
    rebalance protocol. If weights or speeds differ in a group, the maximum load is
    limited, and the result has the limit of each rebalance with a lower bound.

    Example: `kassay trajectory rebalances.jsonl --format table`
    """
    groups = _groups(options.file)
    measure, tolerance = options.imbalance, Tolerance(relative=options.tolerance or 0)
    if options.maximum_load is not None:
        if options.tolerance or measure not in (None, Measure.MAKESPAN):
            raise typer.BadParameter(
                "--maximum-load cannot be combined with --tolerance or another measure"
            )
        measure, tolerance = Measure.MAKESPAN, Tolerance(up_to=options.maximum_load)
    limits = SearchLimits(
        work=options.work, time=options.time_limit, workers=options.workers, stop=STOP
    )
    with stop_on_interrupt():
        found = optimal_trajectory(
            groups,
            levels=default_trajectory_levels(groups, measure=measure, tolerance=tolerance),
            objective=options.objective,
            limits=limits,
        )
    seconds = unowned_seconds(rejoin_each(groups, found.assignments), found.moves)
    record = _record(found, seconds)
    if options.certificate:
        record["certificate"] = trajectory_certificate_document(found.certificate)
    print_records([record], options.output_format, rows=[*_rows(groups, found, seconds)])
    if STOP.is_set():
        exit_interrupted("the result is the best one found so far")
    if options.require_optimal and not found.is_optimal:
        raise typer.Exit(NOT_REACHED)


def _groups(file: Path) -> list[Group]:
    """Read the groups of a JSON array or of JSON Lines. Raise InputError for an invalid group."""
    text, name = read_text(file), name_of(file)
    if text.lstrip().startswith("["):
        documents = enumerate(as_array(parse_json(text, where=name), name))
        groups = [
            parse_group(document, where=f"{name}[{number}]") for number, document in documents
        ]
    else:
        groups = []
        for _, group in read_groups(text.splitlines(keepends=True), name=name):
            if isinstance(group, InputError):
                raise group
            groups.append(group)
    if not groups:
        raise InputError(f"{name}: the input contains no group")
    for group in groups:
        for note in parts_without_effect(group):
            print_note(note)
    return groups


def _record(found: Trajectory, unowned: Mapping[str, float]) -> dict[str, object]:
    is_total = found.objective is TrajectoryObjective.TOTAL
    value = {"value": found.value, "bound": found.bound}
    limits = [value_and_bound(one) for one in found.load_limits]
    return {
        "moves": value if is_total else {"value": found.moves},
        **({} if is_total else {"largest": value}),
        "partition_seconds_without_owner": unowned,
        "proof": str(found.proof),
        **({"load_limits": limits} if limits else {}),
        "per_rebalance": list(found.per_rebalance),
        "one_after_the_other": {
            "moves": sum(found.one_after_the_other),
            "per_rebalance": list(found.one_after_the_other),
        },
        "assignments": [assignment_document(assignment) for assignment in found.assignments],
        "seconds": found.seconds,
    }


def _rows(
    groups: Sequence[Group], found: Trajectory, unowned: Mapping[str, float]
) -> Iterator[Record]:
    for number, group in enumerate(groups):
        yield {
            "rebalance": number,
            "group": group.id,
            "members": len(group.members),
            "partitions": group.partition_count,
            "moves": found.per_rebalance[number],
            "one after the other": found.one_after_the_other[number],
        }
    yield {
        "rebalance": "total",
        "group": f"bound {found.bound}"
        if found.objective is TrajectoryObjective.TOTAL
        else f"largest {found.value}, bound {found.bound}",
        "members": "",
        "partitions": "",
        "moves": found.moves,
        "one after the other": sum(found.one_after_the_other),
    }
    for protocol, seconds in unowned.items():
        yield {
            "rebalance": "unowned s",
            "group": f"{protocol} protocol",
            "members": "",
            "partitions": "",
            "moves": seconds,
            "one after the other": "",
        }
