"""Digests of results in plain Python, as Spark computes them in `study_summary`."""

from collections.abc import Iterable, Mapping
from typing import Any

from kassay.experiments.study.schemas import GROUP_FIELDS, HINDSIGHT, RESULT_FIELDS, sha256_of_lines


def case_digest(case: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the sorted result rows of a row of the case table."""
    rows = (
        _text(row, names)
        for table, names in RESULT_FIELDS.items()
        for row in case[table] or ()
        if row["assignor"] != HINDSIGHT
    )
    return sha256_of_lines([_text(case["groups"], GROUP_FIELDS), *sorted(rows)])


def family_digest(digests: Iterable[str]) -> str:
    return sha256_of_lines(sorted(digests))


def _text(row: Mapping[str, object], names: Iterable[str]) -> str:
    """Write a row like Spark: values separated by tabs, and nothing for None."""
    values = (row[name] for name in names)
    return "\t".join(
        "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
    )
