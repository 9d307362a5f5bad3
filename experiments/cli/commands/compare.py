"""``kassay compare``: assignors against the optimum, group by group."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from kassay.experiments.cli.assignor_options import (
    AssignorCommand,
    AssignorFunction,
    AssignorSeconds,
    custom_assignors,
)
from kassay.experiments.cli.common_options import AssignorNames, DeterministicLimit, TimeLimit
from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
)
from kassay.experiments.compare import CaseLimits, Comparison, solve_optimum
from kassay.experiments.compare import compare as compare_one
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads


def compare(
    file: GroupFile = STDIN,
    *,
    assignor: AssignorNames = None,
    assignor_cmd: AssignorCommand = None,
    assignor_python: AssignorFunction = None,
    assignor_timeout: AssignorSeconds = None,
    output: OutputFormat = Format.JSONL,
    time_limit: TimeLimit = 60.0,
    deterministic_limit: DeterministicLimit = None,
) -> None:
    """Compare assignors with the proven optimum: imbalance and moves, gap by gap.

    Example: `kassay compare groups.jsonl --assignor sticky --format table`
    """
    names = [
        *(assignor or ()),
        *custom_assignors(assignor_cmd, assignor_python, assignor_timeout),
    ]
    limits = CaseLimits(time=time_limit, deterministic=deterministic_limit)

    def work(group: Group) -> Answer:
        optimum = solve_optimum(group, limits=limits)
        comparisons = [compare_one(group, name, optimum=optimum, limits=limits) for name in names]
        least = optimum.assignment
        vector = [] if least is None else leximax(loads(group, least).values())
        return Answer(
            {
                "id": group.id,
                "optimum": {
                    "status": str(optimum.status),
                    "measure": optimum.imbalance.name,
                    "imbalance": optimum.imbalance.value,
                    "movement": optimum.movement.value,
                    "loads": list(vector),
                },
                "comparisons": [_entry(comparison) for comparison in comparisons],
            }
        )

    answer_groups(file, work, output=output, table=_table)


def _entry(comparison: Comparison) -> dict[str, object]:
    """Return a comparison as JSON: a measure's three figures together, absent ones left out."""
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


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group")
    table.add_column("assignor", no_wrap=True)
    for title in ("imbalance", "least", "moves", "fewest", "unnecessary"):
        table.add_column(title, justify="right")
    table.add_column("verdict")
    for record in records:
        if "error" in record:
            table.add_row(record["id"], *[""] * 6, record["error"])
            continue
        optimum = record["optimum"]
        for entry in record["comparisons"]:
            figures = entry.get(optimum["measure"], {})
            table.add_row(
                record["id"],
                entry["assignor"],
                _shown(figures.get("greedy")),
                _shown(optimum["imbalance"]),
                _shown(entry.get("movement", {}).get("greedy")),
                _shown(optimum["movement"]),
                _shown(entry.get("unnecessary_moves")),
                _verdict(entry),
            )
    return table


def _verdict(entry: Mapping[str, Any]) -> str:
    if entry["ending"] != "ok":
        return f"{entry['ending']}: {entry.get('detail', '')}"
    if not entry.get("proven"):
        return "optimum not proven"
    if not entry["least_imbalance"]:
        return "misses the optimum"
    return "moves too much" if entry.get("unnecessary_moves") else "optimal"


def _shown(value: object) -> str:
    return "–" if value is None else str(value)
