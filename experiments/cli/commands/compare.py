"""``kassay compare``: compare imbalance and moves of assignors with the optimum."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer

from kassay.experiments.cli.assignor_options import (
    CustomAssignors,
    assignors_of_one_kind,
    assignors_option,
)
from kassay.experiments.cli.commands.compare_libraries import LibraryOptions, compare_libraries
from kassay.experiments.cli.kind_results import compared_documents, consumer_groups
from kassay.experiments.cli.output import Format, Record, TableLayout, format_option
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import PROGRESS
from kassay.experiments.cli.search_options import LimitOptions, ObjectiveOptions
from kassay.experiments.cli.source_options import GroupSource
from kassay.experiments.comparison.compare import compare_levels
from kassay.experiments.comparison.compare_assignors import compare_assignors, compared
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.comparison.optimum import CaseLimits, solve_optimum
from kassay.experiments.implementations.library_catalogue import (
    is_custom_assignor,
)
from kassay.experiments.planning.plan_verdict import level_words
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, loads
from kassay.solver.objective import Level
from kassay.solver.solution import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Command-line options of ``kassay compare``."""

    assignor: list[str] | None = assignors_option(is_checked=False)
    output_format: Format = format_option(Format.JSONL)


def compare(
    options: CompareOptions,
    source: GroupSource,
    *,
    objective: ObjectiveOptions,
    custom: CustomAssignors,
    limits: LimitOptions,
    library: LibraryOptions,
) -> None:
    """Compare assignors with the proven optimum.

    The optimum has the fewest moves among the assignments with minimum imbalance. The imbalance
    is the sum of the squared loads; if weights differ, it is the maximum load. Unnecessary
    moves are the moves of the assignor minus the minimum number of moves to an assignment
    with equal or lower imbalance. Capacities of members are ignored. If weights differ and a
    greedy assignment has a lower maximum load than all assignors, the search for the optimum has
    1/15 of the time limit. With options for levels or constraints, the output shows the value of
    each assignor on each level, the optimum of the level, and the constraints that the result of
    the assignor violates.

    Assignors of share groups, Streams and Connect read documents of their kind; the output shows
    each measure of the answer with its proven minimum, and the moves that were not needed.

    With --libraries, the output counts groups per assignor. Columns of the table: same and other
    mean the same loads and other loads with other partitions. Optimal means minimum imbalance.
    Moves means groups with unnecessary moves per groups with owned partitions. Hangs means groups
    on which the assignor does not terminate. No ref means groups on which only the port has no
    assignment. Vary means groups on which the partitions and the loads vary between runs. An
    assignor with results that vary runs five times per group; its worst run counts. The formats
    json and jsonl contain the distributions of the runs and the smallest group of each kind.

    With --releases, the output shows the difference from the previous release, and the upstream
    changes between both releases, if they are known. If the results of the assignor vary, each
    release runs five times, and the output shows the first run. Two releases then differ only if
    their runs have no loads in common.

    Example: `kassay compare groups.jsonl --assignor sticky --format table`

    Example: `kassay compare --libraries --assignor sarama:sticky --cases 1000 --format table`

    Example: `kassay compare groups.jsonl --releases --assignor kafka-clients:sticky`
    """
    case_limits = limits.interruptible_limits()
    if library.libraries or library.releases:
        if not objective.is_default:
            raise typer.BadParameter("--libraries and --releases have no levels and constraints")
        compare_libraries(
            library,
            source,
            options.assignor,
            custom=custom,
            limits=case_limits,
            output_format=options.output_format,
        )
        return
    if library != LibraryOptions():
        raise typer.BadParameter("--cases, --orders and --repeat require --libraries")
    names = custom.names(assignors_of_one_kind(options.assignor))
    others = compared_documents(
        names,
        case_limits,
        has_levels=not objective.is_default or any(map(is_custom_assignor, names)),
    )
    groups = consumer_groups(source.file, source.import_options(), others, options.output_format)

    def process(group: Group) -> GroupResult:
        if not objective.is_default:
            return _level_result(group, names, objective, case_limits)
        return GroupResult(compare_assignors(group, names, case_limits, progress=PROGRESS))

    layout = TableLayout(
        first=("assignor", "measure"),
        numbers=("imbalance", "minimum imbalance", "moves", "minimum moves", "unnecessary"),
        last=("result",),
        not_empty=("measure",),
        rows=_rows,
    )
    if not objective.is_default:
        layout = TableLayout(
            first=("assignor", "level"),
            numbers=("value", "optimum", "gap"),
            last=("result",),
            rows=_level_rows,
        )
    process_each_group(source, process, options.output_format, layout, groups=groups)


def _level_result(
    group: Group, names: Sequence[str], objective: ObjectiveOptions, limits: CaseLimits
) -> GroupResult:
    """Compare assignors on the objective levels that the options select."""
    levels, constraints = objective.levels(group), objective.constraints(group)
    PROGRESS("optimum")
    optimum = solve_optimum(group, levels=levels, constraints=constraints, limits=limits)
    comparisons = [
        compare_levels(group, name, levels=levels, constraints=constraints, optimum=optimum)
        for name in names
        if not limits.is_stopped
    ]
    record = {
        "id": group.id,
        "optimum": {
            "status": str(optimum.status),
            "levels": optimum.values_by_level(),
            "loads": {} if optimum.assignment is None else loads(group, optimum.assignment),
            **({"conflict": list(optimum.conflict)} if optimum.conflict else {}),
        },
        "comparisons": [_level_entry(group, comparison, levels) for comparison in comparisons],
        "proof": optimum.proof_by_level(),
    }
    return GroupResult(record, reached=optimum.assignment is not None)


def _level_entry(
    group: Group, comparison: Comparison, levels: Sequence[Level]
) -> dict[str, object]:
    """Convert a comparison by level to JSON, without null values."""
    names = ("assignor", "ending", "detail", "rounds")
    entry = {name: getattr(comparison, name) for name in names}
    values = {
        key: compared(level.name, value, group)
        for level, (key, value) in zip(levels, comparison.levels.items(), strict=True)
    }
    entry |= {"levels": values, "violated": list(comparison.violated)}
    return {key: value for key, value in entry.items() if value is not None}


def _level_rows(record: Record) -> Iterator[Sequence[object]]:
    for entry in record["comparisons"]:
        result = "" if entry["ending"] == "ok" else f"{entry['ending']}: {entry.get('detail', '')}"
        result = "; ".join(filter(None, [result, *(f"violated: {r}" for r in entry["violated"])]))
        for index, (key, values) in enumerate(entry["levels"].items()):
            numbers = ["–" if number is None else number for number in values.values()]
            yield (entry["assignor"] if index == 0 else "", key, *numbers, "" if index else result)


def _rows(record: Record) -> Iterator[Sequence[object]]:
    optimum = record["optimum"]
    measure = optimum["measure"]
    for entry in record["comparisons"]:
        yield (
            entry["assignor"],
            "" if measure == Measure.SUM_OF_SQUARES else level_words(measure),
            entry.get(measure, {}).get("value", "–"),
            _minimum(optimum["imbalance"], optimum["imbalance_bound"]),
            entry.get("movement", {}).get("value", "–"),
            f"{'' if optimum['status'] == Status.OPTIMAL else '≤ '}{optimum['movement']}",
            entry.get("unnecessary_moves", "–"),
            _result(entry),
        )


def _minimum(value: int, bound: int) -> str:
    return f"{value}" if value == bound else f"≤ {value} (bound {bound})"


def _result(entry: Record) -> str:
    if entry["ending"] != "ok":
        return f"{entry['ending']}: {entry.get('detail', '')}"
    if entry.get("least_imbalance") is False:
        return "imbalance not optimal"
    if not entry.get("proven"):
        return "optimum not proven"
    return "unnecessary moves" if entry.get("unnecessary_moves") else "optimal"
