"""``kassay frontier``: find the minimum imbalance for each number of moves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    TableOptions,
    format_option,
    numbered,
    plot_option,
)
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.search_options import SearchOptions, measure_option
from kassay.experiments.cli.source_options import GroupSource
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, loads
from kassay.solver.frontier.frontier import frontier as find_frontier
from kassay.solver.frontier.frontier_points import Frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierOptions(TableOptions):
    """Command-line options of ``kassay frontier``."""

    imbalance: Measure | None = measure_option()
    plot: Path | None = plot_option()
    output_format: Format = format_option(Format.JSONL)


def frontier(options: FrontierOptions, source: GroupSource, search: SearchOptions) -> None:
    """Find the minimum imbalance for each number of moves.

    Each point of the output has the lowest imbalance found for its number of moves, and lower
    bounds; a proven point is a Pareto optimum. The time limit applies to each group. Exits with 1
    if no assignment of a group is found within the capacities and the time limit.

    Example: `kassay frontier groups.jsonl --plot frontier.svg --format table`
    """
    files = numbered(options.plot)

    def process(group: Group) -> GroupResult:
        result = find_frontier(
            group,
            measure=options.imbalance,
            limits=search.limits(),
            seed=search.seed,
        )
        if options.plot is not None:
            from kassay.experiments.plotting.matplotlib_figures import draw_frontier
            from kassay.experiments.plotting.svg_drawings import FrontierCurve

            curve = FrontierCurve.of(result)
            draw_frontier(curve, next(files), measure=str(result.measure), title=group.id)
        record = _record(group, result)
        return GroupResult(record, reached=bool(result.points))

    layout = TableLayout(
        first=("measure",),
        numbers=(
            *("moves", "moves bound", "imbalance", "imbalance bound"),
            *("minimum load", "maximum load"),
        ),
        optional=("measure", "minimum load"),
        last=("proven",),
        rows=_rows,
    )
    process_each_group(
        source, process, options.output_format, layout, both_readings=options.plot is None
    )


def _record(group: Group, result: Frontier) -> dict[str, object]:
    record: dict[str, object] = {
        "id": group.id,
        "measure": str(result.measure),
        "complete": result.complete,
        "points": [
            row.record() | {"loads": loads(group, point.assignment)}
            for row, point in zip(result.table(), result.points, strict=True)
        ],
    }
    if result.conflict:
        record["conflict"] = list(result.conflict)
    return record


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if not record["points"]:
        yield (
            "; ".join(record.get("conflict", ())) or "no assignment found within the time limit",
        )
        return
    for point in record["points"]:
        bound, vector = point["bound"], point["loads"].values()
        yield (
            record["measure"],
            point["moves"],
            bound["moves"],
            point["imbalance"],
            bound["imbalance"],
            min(vector, default=0),
            max(vector, default=0),
            "yes" if point["proven"] else "no",
        )
    if not record["complete"]:
        yield ("incomplete: further points can exist",)
