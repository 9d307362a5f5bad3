"""Tables and findings of the measures of other kinds of groups, and the prices of goals."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_results import (
    Proportion,
    ReportTable,
    number_text,
    short_number,
)
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.tables import OPTIMUM, assignors_of

MAIN_MEASURES = (
    *("slots", "sum_of_squares", "movement"),
    *("task_sum_of_squares", "task_topic_spread", "task_movement", "task_stopped_ms"),
    *("task_starts", "state_moves", "standby_moves", "probing_ms", "rebalances"),
)
"""Measures of the findings and of the published tables."""
_COLUMNS = ("family", "assignor", "measure", "above the minimum")
_MEASURE_COLUMNS = (*_COLUMNS, "mean excess of those", "mean value")
_PRICE_COLUMNS = (*_COLUMNS, "mean excess of all", "largest excess")

_MeasureRow = Mapping[str, Any]


class MeasureSection(NamedTuple):
    """Number of cases, findings as sentences, and the table of measures."""

    cases: int
    findings: tuple[str, ...]
    table: ReportTable


def measure_section(results: StudySummary, *, only_main: bool = False) -> MeasureSection | None:
    """Create the table and the findings of the measures of a study, or None without measures.

    The table has all measures, or the `MAIN_MEASURES` if ``only_main`` is true.
    """
    rows = _ordered_measures(results)
    if not rows:
        return None
    # Standbys are not configured in families without moves of standbys.
    main = [
        row
        for row in rows
        if row["measure"] in MAIN_MEASURES and (row["value"] or row["measure"] != "standby_moves")
    ]
    families = results.families[results.families["family"].isin(DOCUMENT_FAMILIES)]
    shown = main if only_main else rows
    return MeasureSection(
        cases=int(families["groups"].sum()),
        findings=tuple(_measure_findings(main)),
        table=ReportTable.of("measures", _MEASURE_COLUMNS, map(_measure_cells, shown), data=rows),
    )


def _ordered_measures(results: StudySummary) -> list[_MeasureRow]:
    """Return the sums in the order of the families and of the main measures."""
    families, main = list(DOCUMENT_FAMILIES), list(MAIN_MEASURES)
    own = results.measures[results.measures["family"].isin(families)]
    records: list[Any] = own.to_dict("records")

    def place(row: _MeasureRow) -> tuple[object, ...]:
        name = row["measure"]
        rank = main.index(name) if name in main else len(main)
        return families.index(row["family"]), row["assignor"], rank, name

    return sorted(records, key=place)


def _measure_cells(row: _MeasureRow) -> tuple[str, ...]:
    name, unit = row["measure"], 1
    if name.endswith("_ms"):
        name, unit = f"{name.removesuffix('_ms')}_s", 1000
    above = "–"
    if row["proven"]:
        share = Proportion(row["above"], row["proven"])
        above = f"{share.percent_with_interval}, {_count(row['above'])} of {_count(row['proven'])}"
    excess = number_text(row["excess"] / unit / row["above"]) if row["above"] else "–"
    return (
        *(row["family"], row["assignor"], name, above, excess),
        number_text(row["value"] / unit / row["answers"]),
    )


def price_table(results: StudySummary) -> ReportTable | None:
    """Create the table of the prices of goals, or None without groups that have prices.

    The excess is relative to the minimum for loads, and a number of partitions for moves, whose
    minimum is often 0. The mean is that of all groups with a proven minimum.
    """
    prices = results.measures[~results.measures["family"].isin(DOCUMENT_FAMILIES)]
    ranks = {name: place for place, name in enumerate(assignors_of(prices["assignor"]))}
    ranks[OPTIMUM] = -1
    rows: list[Any] = prices.to_dict("records")
    rows.sort(key=lambda row: (row["family"], ranks[row["assignor"]], row["measure"]))
    if not rows:
        return None
    return ReportTable.of("prices", _PRICE_COLUMNS, map(_price_cells, rows), data=rows)


def _price_cells(row: _MeasureRow) -> tuple[str, ...]:
    share, total = Proportion(row["above"], row["proven"], is_sample=False), row["proven"]
    name, factor, unit = row["assignor"], 1e-4, "\u00a0%"
    mean, most = row["excess_ppm"], row["largest_ppm"]
    if "moves" in row["measure"]:
        mean, most, factor, unit = row["excess"], row["largest_excess"], 1, ""
    return (
        *(row["family"], "every assignor" if name == OPTIMUM else name, row["measure"]),
        f"{share.percent}, {_count(row['above'])} of {_count(total)}" if total else "–",
        short_number(factor * mean / total) + unit if total else "–",
        short_number(factor * most) + unit if total else "–",
    )


def _measure_findings(rows: list[_MeasureRow]) -> Iterator[str]:
    """Yield one sentence per family and assignor, with the measures above their minimum."""
    for family, assignor in dict.fromkeys((row["family"], row["assignor"]) for row in rows):
        parts = []
        for row in rows:
            if (row["family"], row["assignor"]) == (family, assignor) and row["above"]:
                share = Proportion(row["above"], row["proven"]).percent_with_interval
                parts.append(f"{row['measure']} in {share} of {_count(row['proven'])} cases")
        if parts:
            yield f"{family}: {assignor} is above the proven minimum of {', '.join(parts)}."
        else:
            yield f"{family}: {assignor} reaches the minimum of each compared measure."


def _count(number: int) -> str:
    return digits_in_groups(int(number))
