"""Section of the study report about groups with racks: three criteria and necessary moves."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_summary import Proportion, scope_rows
from kassay.experiments.report.report_table import ReportTable, number_text
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.summary_columns import APART, assignors_of, families_of

_Row = Mapping[str, int]  # sums of one family and assignor
# How moves are judged, by the prefix of the columns of the table `fronts`.
_MOVES = {
    "same_racks": "no more off-rack reads",
    "any_racks": "any off-rack reads",
    "no_racks": "without racks",
}


def rack_section(results: StudySummary) -> Mapping[str, ReportTable] | None:
    """Create the tables about groups with racks and owned partitions, or None without groups."""
    if results.fronts.empty:
        return None
    fronts = _by_family(results.fronts)
    outcomes = scope_rows(results.outcomes, APART["racks"])
    totals = _by_family(outcomes[["family", "assignor", "groups", "answered"]])
    rows = {
        (family, assignor): {
            **fronts[family, assignor],
            "without_result": total["groups"] - total["answered"],
        }
        for family in families_of(family for family, _ in fronts)
        for assignor in assignors_of(name for other, name in fronts if other == family)
        for total in [totals[family, assignor]]
    }
    return {
        "front": _table("racks-front", _FRONT_COLUMNS, rows),
        "moves": _table("racks-moves", _MOVE_COLUMNS, rows),
    }


def _by_family(rows: pd.DataFrame) -> dict[tuple[str, str], _Row]:
    """Sum the numbers in the rows of each family and assignor."""
    sums = rows.groupby(["family", "assignor"]).sum(numeric_only=True)
    found: Mapping[Any, Mapping[Any, int]] = sums.astype(int).to_dict("index")
    return {key: {str(name): value for name, value in row.items()} for key, row in found.items()}


def _table(
    name: str,
    columns: Mapping[str, Callable[[_Row], str]],
    rows: Mapping[tuple[str, str], _Row],
) -> ReportTable:
    """Create a table with one row per family and assignor. Its CSV file has the exact sums."""
    return ReportTable.of(
        name,
        ("family", "assignor", *columns),
        ((*key, *(cell(row) for cell in columns.values())) for key, row in rows.items()),
        data=[
            {"family": family, "assignor": assignor, **row}
            for (family, assignor), row in rows.items()
        ],
    )


def _share(count: str, total: str) -> Callable[[_Row], str]:
    """Return a function that formats a share with its interval and its numbers of groups."""

    def cell(row: _Row) -> str:
        numbers = " of ".join(digits_in_groups(row[name]) for name in (count, total))
        return f"{Proportion(row[count], row[total]).percent_with_interval}, {numbers}"

    return cell


def _mean(value: str, total: str, factor: int = 1) -> Callable[[_Row], str]:
    """Return a function that formats a sum divided by another sum."""
    return lambda row: number_text(factor * row[value] / row[total]) if row[total] else "–"


def _number(name: str) -> Callable[[_Row], str]:
    return lambda row: digits_in_groups(row[name])


_FRONT_COLUMNS = {
    "groups": _number("groups"),
    "on the front": _share("on_front", "front_known"),
    "avoidable imbalance": _share("avoidable_imbalance_groups", "avoidable_imbalance_known"),
    "avoidable off-rack reads": _share("avoidable_reads_groups", "avoidable_reads_known"),
    "unnecessary moves": _share("same_racks_groups", "same_racks_known"),
    "off-rack reads, % of partitions": _mean("off_rack", "partitions", 100),
    "avoidable off-rack reads per group": _mean("avoidable_reads", "avoidable_reads_known"),
    "without a result": _number("without_result"),
}
_MOVE_COLUMNS = {
    "groups": _number("groups"),
    "moves per rebalance": _mean("moves", "groups"),
    **{
        f"groups with unnecessary moves: {title}": _share(f"{name}_groups", f"{name}_known")
        for name, title in _MOVES.items()
    },
    **{
        f"unnecessary moves per rebalance: {title}": _mean(name, f"{name}_known")
        for name, title in _MOVES.items()
    },
}
