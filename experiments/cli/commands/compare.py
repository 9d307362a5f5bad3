"""``kassay compare``: imbalance and moves of assignors compared with the optimum."""

from collections.abc import Iterator, Sequence

from kassay.experiments.cli.assignor_options import (
    DEFAULT_ASSIGNOR_TIMEOUT,
    AssignorCommand,
    AssignorFunction,
    AssignorNames,
    AssignorTimeout,
    custom_assignors,
)
from kassay.experiments.cli.group_io import (
    STDIN,
    GroupFile,
    GroupResult,
    Record,
    TableLayout,
    process_groups,
)
from kassay.experiments.cli.output_options import Format, OutputFormat
from kassay.experiments.cli.search_options import DeterministicLimit, TimeLimit
from kassay.experiments.compare import CaseLimits, Comparison, solve_optimum
from kassay.experiments.compare import compare as compare_with_optimum
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads


def compare(
    file: GroupFile = STDIN,
    *,
    assignor: AssignorNames = None,
    assignor_cmd: AssignorCommand = None,
    assignor_python: AssignorFunction = None,
    assignor_timeout: AssignorTimeout = DEFAULT_ASSIGNOR_TIMEOUT,
    output_format: OutputFormat = Format.JSONL,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = None,
) -> None:
    """Compare assignors with the proven optimum.

    The optimum has minimum imbalance and, among those assignments, fewest moves. Unnecessary
    moves are moves beyond the minimum for the imbalance that the assignor reaches.

    Example: `kassay compare groups.jsonl --assignor sticky --format table`
    """
    names = [
        *(assignor or ()),
        *custom_assignors(assignor_cmd, assignor_python, assignor_timeout),
    ]
    limits = CaseLimits(time=time_limit, deterministic=deterministic_limit)

    def process(group: Group) -> GroupResult:
        optimum = solve_optimum(group, limits=limits)
        comparisons = [
            compare_with_optimum(group, name, optimum=optimum, limits=limits) for name in names
        ]
        vector = () if optimum.assignment is None else loads(group, optimum.assignment).values()
        return GroupResult(
            {
                "id": group.id,
                "optimum": {
                    "status": str(optimum.status),
                    "measure": optimum.imbalance.name,
                    "imbalance": optimum.imbalance.value,
                    "movement": optimum.movement.value,
                    "loads": list(leximax(vector)) if vector else [],
                },
                "comparisons": [_entry(comparison) for comparison in comparisons],
            }
        )

    layout = TableLayout(
        first=("assignor",),
        numbers=("imbalance", "optimum", "moves", "minimum moves", "unnecessary"),
        last=("result",),
        rows=_rows,
    )
    process_groups(file, process, output_format=output_format, layout=layout)


def _entry(comparison: Comparison) -> dict[str, object]:
    """Return a comparison as JSON, with one object per measure and without absent values."""
    names = ("assignor", "ending", "detail", "rounds", "measure", "proven")
    entry = {name: getattr(comparison, name) for name in names}
    entry["least_imbalance"] = comparison.least_imbalance
    entry["movement_within"] = comparison.movement_within
    entry["unnecessary_moves"] = comparison.unnecessary_moves
    for measure, values in comparison.imbalance.items():
        if values.greedy is not None:
            entry[measure] = {"greedy": values.greedy, "optimum": values.optimum, "gap": values.gap}
    moves = comparison.movement
    if moves.greedy is not None:
        entry["movement"] = {
            "greedy": moves.greedy,
            "optimum": moves.optimum,
            "gap": comparison.movement_gap,
        }
    return {key: value for key, value in entry.items() if value is not None}


def _rows(record: Record) -> Iterator[Sequence[object]]:
    optimum = record["optimum"]
    for entry in record["comparisons"]:
        yield (
            entry["assignor"],
            entry.get(optimum["measure"], {}).get("greedy", "–"),
            optimum["imbalance"],
            entry.get("movement", {}).get("greedy", "–"),
            optimum["movement"],
            entry.get("unnecessary_moves", "–"),
            _result(entry),
        )


def _result(entry: Record) -> str:
    if entry["ending"] != "ok":
        return f"{entry['ending']}: {entry.get('detail', '')}"
    if not entry.get("proven"):
        return "optimum not proven"
    if not entry["least_imbalance"]:
        return "imbalance not optimal"
    return "unnecessary moves" if entry.get("unnecessary_moves") else "optimal"
