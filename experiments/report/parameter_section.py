"""Section of the study report about the effects of group parameters on assignors."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from kassay.experiments.plotting.page_figures import Plot, shares_by_level
from kassay.experiments.report.assignor_summary import (
    Proportion,
    ReportTable,
    main_scope,
    scope_rows,
)
from kassay.experiments.report.output_reader import StudySummary
from kassay.experiments.study.statistics.parameter_effects import (
    MEASURED,
    levels,
    within_families,
)

_COUNTS = {
    "compared": "groups",
    "seeds": "seeds",
    "distinct": "different up to names",
    "with_owners": "with owned partitions",
    "forced": "without choice",
}
_OUTCOMES = {"missed": "misses the minimum imbalance", "wasteful": "makes unnecessary moves"}


def parameter_section(
    results: StudySummary, families: Sequence[Mapping[str, object]], compared: Sequence[str]
) -> Mapping[str, object]:
    """Create the tables and figures of the report section about parameters."""
    scope = main_scope(results.outcomes)
    parameters, outcomes = (
        scope_rows(table, scope) for table in (results.parameters, results.outcomes)
    )
    answered = outcomes.assign(groups=outcomes["answered"])
    shares = levels(parameters, answered, families=families, assignors=compared)
    correlations = within_families(parameters, assignors=compared)
    return {
        "families": _family_table(results.families, families),
        "levels": _level_table(shares, compared),
        "within": _within_table(correlations, compared),
        "effect_plots": tuple(_plots(shares)),
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


def _family_table(counted: pd.DataFrame, families: Iterable[Mapping[str, object]]) -> ReportTable:
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


def _level_table(shares: pd.DataFrame, names: Sequence[str]) -> ReportTable:
    """Create a table of outcome proportions, with one row per range of a parameter."""
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    groups: dict[tuple[str, str], int] = {}
    for row in shares.to_dict("records"):
        key = (str(row["parameter"]), str(row["level"]))
        groups[key] = max(groups.get(key, 0), int(row["groups"]))
        cell = Proportion(int(row["count"]), int(row["groups"])).percent_with_interval
        if not math.isnan(row["within"]):
            cell += f"; {100 * row['within']:+.1f}".replace("-", "−")
        cells.setdefault(key, {})[str(row["outcome"]), str(row["assignor"])] = cell
    columns = [(outcome, name) for outcome in _OUTCOMES for name in names]
    headings = (f"{name} {_OUTCOMES[outcome]}" for outcome, name in columns)
    return ReportTable(
        name="levels-of-parameters",
        columns=("parameter", "level", "groups", *headings),
        rows=tuple(
            (*key, str(groups[key]), *(level_cells.get(column, "–") for column in columns))
            for key, level_cells in cells.items()
        ),
        csv=shares.to_csv(index=False),
    )


def _within_table(correlations: pd.DataFrame, names: Sequence[str]) -> ReportTable:
    """Create a table of correlations between group parameters and missed minimums."""
    missed = correlations[correlations["outcome"] == "missed"]
    cells = {
        (str(row["family"]), str(row["assignor"]), str(row["parameter"])): (
            f"{row['rho']:.2f}".replace("-", "−") + ("*" if row["p_adjusted"] < 0.05 else "")
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


def _plots(shares: pd.DataFrame) -> Iterator[Plot]:
    for outcome, verb in _OUTCOMES.items():
        rows = shares[shares["outcome"] == outcome]
        for parameter, table in rows.groupby("parameter", sort=False):
            if len(set(table["level"])) > 1 and table["count"].sum():
                title = f"{parameter}: {verb}"
                yield Plot(
                    name=f"{outcome}-by-{str(parameter).replace(' ', '-')}",
                    title=title,
                    caption=f"x: {parameter}. y: share of groups in %, with 95 % intervals.",
                    svg=shares_by_level(table, label=title),
                    csv=table.to_csv(index=False),
                )
