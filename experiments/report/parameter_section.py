"""Section of the study report about the effects of group parameters on assignors."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from kassay.experiments.report.assignor_summary import main_scope, scope_rows
from kassay.experiments.report.report_table import ReportTable
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.statistics.significance import SIGNIFICANT
from kassay.experiments.study.statistics.within_family_correlations import MEASURED, within_families

_COUNTS = {
    "compared": "groups",
    "seeds": "seeds",
    "distinct": "different up to names, at least",
    "with_owners": "with owned partitions",
    "forced": "without choice",
}


def parameter_section(
    results: StudySummary, families: Sequence[Mapping[str, object]], compared: Sequence[str]
) -> Mapping[str, object]:
    """Create the tables of the report section about parameters."""
    parameters = scope_rows(results.parameters, main_scope(results.outcomes))
    correlations = within_families(parameters, assignors=compared)
    return {
        "families": family_table(results.families, families),
        "within": _within_table(correlations, compared),
    }


def describe_family(family: Mapping[str, object]) -> str:
    """Describe the parameters of a family in one line of text.

    Examples
    --------
    >>> describe_family({"name": "demo", "mixed": True, "event": None, "members": [3, 20]})
    'mixed, members 3 to 20'
    """
    parts: list[str] = []
    for key, value in family.items():
        label = key.replace("_", " ")
        match value:
            case None | False:
                continue
            case True:
                parts.append(label)
            case [int(low), int(high)] if key in ("members", "topics", "partitions"):
                parts.append(f"{label} {low} to {high}")
            case list():
                parts.append(f"{label} {'/'.join(map(_value_text, value))}")
            case dict():
                parts.append(describe_family(value))
            case _ if key != "name":
                parts.append(f"{label} {value}")
    return ", ".join(part for part in parts if part)


def _value_text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def family_table(counted: pd.DataFrame, families: Iterable[Mapping[str, object]]) -> ReportTable:
    """Create the table of the families: numbers of groups, and parameters."""
    counts = counted.set_index("family")
    table = pd.DataFrame(
        [
            (
                name,
                *(int(counts[column].get(name, 0)) for column in _COUNTS),
                describe_family(family),
            )
            for family in families
            for name in (str(family["name"]),)
        ],
        columns=["family", *_COUNTS.values(), "parameters"],
    )
    return ReportTable(
        name="families",
        columns=tuple(table.columns),
        rows=tuple(tuple(map(str, row)) for row in table.to_numpy()),
        csv=table.to_csv(index=False),
    )


def _within_table(correlations: pd.DataFrame, names: Sequence[str]) -> ReportTable:
    """Create a table of correlations between group parameters and missed minimums."""
    missed = correlations[correlations["outcome"] == "missed"]
    cells = {
        (str(row["family"]), str(row["assignor"]), str(row["parameter"])): (
            f"{row['rho']:.2f}".replace("-", "−") + ("*" if row["p_adjusted"] < SIGNIFICANT else "")
        )
        for row in missed.to_dict("records")
    }
    keys = sorted({key[:2] for key in cells}, key=lambda key: (key[0], names.index(key[1])))
    return ReportTable(
        name="effect-within-families",
        columns=("family", "assignor", *MEASURED),
        rows=tuple((*key, *(cells.get((*key, name), "–") for name in MEASURED)) for key in keys),
        csv=correlations.to_csv(index=False),
    )
