"""``kassay compare``: imbalance and moves of assignors compared with the optimum."""

from collections.abc import Iterator, Sequence

from kassay.experiments.cli import assignor_options, group_io, output_options, search_options
from kassay.experiments.compare import CaseLimits, Comparison, solve_optimum
from kassay.experiments.compare import compare as compare_with_optimum
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads


def compare(
    file: group_io.GroupFile = group_io.STDIN,
    *,
    assignor: assignor_options.AssignorNames = None,
    assignor_cmd: assignor_options.AssignorCommand = None,
    assignor_python: assignor_options.AssignorFunction = None,
    assignor_timeout: assignor_options.AssignorTimeout = assignor_options.DEFAULT_ASSIGNOR_TIMEOUT,
    output_format: output_options.OutputFormat = output_options.Format.JSONL,
    time_limit: search_options.TimeLimit = 60.0,
    deterministic_limit: search_options.DeterministicLimit = None,
) -> None:
    """Compare assignors with the proven optimum.

    The optimum has minimum imbalance and, among those assignments, fewest moves. Unnecessary
    moves are moves beyond the minimum for the imbalance that the assignor reaches.

    Example: `kassay compare groups.jsonl --assignor sticky --format table`
    """
    names = [
        *(assignor or ()),
        *assignor_options.custom_assignors(assignor_cmd, assignor_python, assignor_timeout),
    ]
    limits = CaseLimits(time=time_limit, deterministic=deterministic_limit)

    def process(group: Group) -> group_io.GroupResult:
        optimum = solve_optimum(group, limits=limits)
        comparisons = [
            compare_with_optimum(group, name, optimum=optimum, limits=limits) for name in names
        ]
        vector = () if optimum.assignment is None else loads(group, optimum.assignment).values()
        return group_io.GroupResult(
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

    layout = group_io.TableLayout(
        first=("assignor",),
        numbers=("imbalance", "optimum", "moves", "minimum moves", "unnecessary"),
        last=("result",),
        rows=_rows,
    )
    group_io.process_groups(file, process, output_format=output_format, layout=layout)


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


def _rows(record: group_io.Record) -> Iterator[Sequence[object]]:
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


def _result(entry: group_io.Record) -> str:
    if entry["ending"] != "ok":
        return f"{entry['ending']}: {entry.get('detail', '')}"
    if not entry.get("proven"):
        return "optimum not proven"
    if not entry["least_imbalance"]:
        return "imbalance not optimal"
    return "unnecessary moves" if entry.get("unnecessary_moves") else "optimal"
