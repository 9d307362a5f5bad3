"""Arrow schemas of the tables of a study, derived from the dataclasses of their rows."""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa

from kassay.experiments.comparison.comparison_row import ComparisonRow
from kassay.experiments.study import table_rows

_ARROW = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
_INT64 = range(-(2**63), 2**63)


def schema_of(row: type) -> pa.Schema:
    """Derive an Arrow schema from a dataclass. Optional fields become nullable columns."""
    hints = typing.get_type_hints(row)
    return pa.schema([_field(field.name, hints[field.name]) for field in fields(row)])


def _field(name: str, hint: object) -> pa.Field:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    nullable = type(None) in options
    (kind,) = (option for option in options if option is not type(None))
    if kind not in _ARROW:
        raise TypeError(f"column {name!r}: no column type for {hint!r}")
    return pa.field(name, _ARROW[kind], nullable=nullable)


TABLES: Mapping[str, pa.Schema] = {
    "groups": schema_of(table_rows.GroupRow),
    "assignments": schema_of(table_rows.AssignmentRow),
    "optima": schema_of(table_rows.OptimumRow),
    "comparisons": schema_of(ComparisonRow),
    "timings": schema_of(table_rows.TimingRow),
    "rebalances": schema_of(table_rows.RebalanceRow),
    "front_distances": schema_of(table_rows.FrontDistanceRow),
    "measures": schema_of(table_rows.MeasureRow),
}

LISTS = ("assignments", "comparisons", "timings", "rebalances", "front_distances", "measures")
"""Tables with any number of rows per case."""

KEY = "case"
POSITION, STUDY = "position", "study"


def _nested(name: str) -> pa.Field:
    """Return the nested column that contains a table's rows for one case.

    Only the table ``groups`` keeps the key.
    """
    # A nullable struct, such as an optimum, must have nullable fields.
    fields = [
        field.with_nullable(True) for field in TABLES[name] if name == "groups" or field.name != KEY
    ]
    struct = pa.struct(fields)
    return pa.field(name, pa.list_(struct) if name in LISTS else struct)


CASES = pa.schema(
    [
        pa.field(POSITION, pa.int64(), nullable=False),
        pa.field(STUDY, pa.string(), nullable=False),
        *map(_nested, TABLES),
    ]
)
"""One row per case: its position, the digest of the study, and the rows of all tables."""


def case_row(record: table_rows.CaseRecord, *, position: int, study: str) -> dict[str, object]:
    """Convert the record of an evaluated case to a row of the case table."""
    return {
        POSITION: position,
        STUDY: study,
        "groups": _columns(record.group),
        "optima": record.optimum and _columns(record.optimum),
        **{name: [_columns(row) for row in getattr(record, name)] for name in LISTS},
    }


def _columns(row: Any) -> dict[str, object]:
    """Convert a row dataclass to a dictionary. Integers above 64 bits become None."""
    columns: dict[str, object] = {}
    for name in row.__slots__:
        value = getattr(row, name)
        columns[name] = None if type(value) is int and value not in _INT64 else value
    return columns
