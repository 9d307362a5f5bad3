"""Table of the families of a study: numbers of groups, and parameters."""

from collections.abc import Iterable, Mapping

import pandas as pd

from kassay.experiments.report.report_table import ReportTable

_COUNTS = {
    "compared": "groups",
    "seeds": "seeds",
    "distinct": "different up to names, at least",
    "with_owners": "with owned partitions",
    "forced": "without choice",
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
    rows = [tuple(map(str, row)) for row in table.to_numpy()]
    return ReportTable.of("families", table.columns, rows)
