"""Section of the study report about share groups, Streams applications and Connect clusters."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_results import Proportion
from kassay.experiments.report.report_table import ReportTable, number_text
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.experiments.study.output_reader import StudySummary

MAIN_MEASURES = (
    *("slots", "sum_of_squares", "movement"),
    *("task_sum_of_squares", "task_topic_spread", "task_movement", "task_stopped_ms"),
    *("task_starts", "state_moves", "standby_moves", "probing_ms", "rebalances"),
)
"""Measures of the findings and of the published tables."""
COLUMNS = (
    *("family", "assignor", "measure", "above the minimum"),
    *("mean excess of those", "mean value"),
)
_MILLISECONDS = "_ms"

_Row = Mapping[str, Any]


class MeasureSection(NamedTuple):
    """Number of cases, findings as sentences, and the table of measures."""

    cases: int
    findings: tuple[str, ...]
    table: ReportTable


def measure_section(results: StudySummary, *, only_main: bool = False) -> MeasureSection | None:
    """Create the table and the findings of the measures of a study, or None without measures.

    The table has all measures, or the `MAIN_MEASURES` if ``only_main`` is true.
    """
    if results.measures.empty:
        return None
    rows = _ordered(results)
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
        findings=tuple(_findings(main)),
        table=ReportTable.of("measures", COLUMNS, map(_cells, shown), data=rows),
    )


def _ordered(results: StudySummary) -> list[_Row]:
    """Return the sums in the order of the families and of the main measures."""
    families, main = list(DOCUMENT_FAMILIES), list(MAIN_MEASURES)
    records: list[Any] = results.measures.to_dict("records")

    def place(row: _Row) -> tuple[object, ...]:
        name = row["measure"]
        rank = main.index(name) if name in main else len(main)
        return families.index(row["family"]), row["assignor"], rank, name

    return sorted(records, key=place)


def _cells(row: _Row) -> tuple[str, ...]:
    name, unit = row["measure"], 1
    if name.endswith(_MILLISECONDS):
        name, unit = f"{name.removesuffix(_MILLISECONDS)}_s", 1000
    above = "–"
    if row["proven"]:
        share = Proportion(row["above"], row["proven"])
        above = f"{share.percent_with_interval}, {_count(row['above'])} of {_count(row['proven'])}"
    excess = number_text(row["excess"] / unit / row["above"]) if row["above"] else "–"
    return (
        *(row["family"], row["assignor"], name, above, excess),
        number_text(row["value"] / unit / row["answers"]),
    )


def _findings(rows: list[_Row]) -> Iterator[str]:
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
