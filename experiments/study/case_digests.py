"""SHA-256 digests of the results of a study, to compare them with those of another machine.

The digest of a family depends on the results of all cases of the family, not on their order. It
contains neither run times nor the text of error messages, and no hindsight optimum, because its
search has a time limit. `kassay study` computes it on Spark.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import fields

from kassay.experiments.comparison.comparison_row import ComparisonRow
from kassay.experiments.study.evaluate_event_stream import HINDSIGHT
from kassay.experiments.study.table_rows import (
    CaseRecord,
    FrontDistanceRow,
    MeasureRow,
    RebalanceRow,
)

GROUP_FIELDS = ("family", "seed", "start", "renaming_hash")
RESULT_FIELDS = {
    table: tuple(field.name for field in fields(row) if field.name not in ("case", "detail"))
    for table, row in (
        ("comparisons", ComparisonRow),
        ("rebalances", RebalanceRow),
        ("front_distances", FrontDistanceRow),
        ("measures", MeasureRow),
    )
}
"""Fields of the results in a digest, by table."""


def case_digest(record: CaseRecord) -> str:
    """Return the SHA-256 of the sorted result rows of a case."""
    rows = (
        _text(row, names)
        for table, names in RESULT_FIELDS.items()
        for row in getattr(record, table)
        if row.assignor != HINDSIGHT
    )
    return sha256_of_lines([_text(record.group, GROUP_FIELDS), *sorted(rows)])


def family_digest(digests: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted digests of the cases of a family."""
    return sha256_of_lines(sorted(digests))


def _text(row: object, names: Iterable[str]) -> str:
    """Write a row like Spark: values separated by tabs, and nothing for None."""
    values = (getattr(row, name) for name in names)
    return "\t".join(
        "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
    )


def sha256_of_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines, without a line break after the last line."""
    digest, separator = hashlib.sha256(), ""
    for line in lines:
        digest.update(f"{separator}{line}".encode())
        separator = "\n"
    return digest.hexdigest()
