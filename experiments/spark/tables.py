"""Schemas of the tables, read off the dataclasses that are their rows."""

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, fields

import pyarrow as pa

from experiments.compare import Comparison
from experiments.families import Case
from experiments.rows import AssignmentRow, GroupRow, OptimumRow, Record

_ARROW = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
_INT64 = range(-(2**63), 2**63)


def schema_of(row: type) -> pa.Schema:
    """Return the Arrow schema of a row type: a field a column, optional ones nullable.

    Raises
    ------
    TypeError
        If a field is neither int, float, bool nor str, nor optional one of them.
    """
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
    "groups": schema_of(GroupRow),
    "assignments": schema_of(AssignmentRow),
    "optima": schema_of(OptimumRow),
    "comparisons": schema_of(Comparison),
}

CASES = pa.schema(
    [
        pa.field("family", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("assignors", pa.list_(pa.string()), nullable=False),
        pa.field("start", pa.string()),
        pa.field("document", pa.string()),
    ]
)

# What a worker sends back: all rows of a case, taken apart into the tables afterwards.
RECORDS = pa.schema(
    [
        pa.field("groups", pa.list_(pa.struct(TABLES["groups"]))),
        pa.field("optima", pa.list_(pa.struct(TABLES["optima"]))),
        pa.field("assignments", pa.list_(pa.struct(TABLES["assignments"]))),
        pa.field("comparisons", pa.list_(pa.struct(TABLES["comparisons"]))),
    ]
)


def case_row(case: Case) -> dict[str, object]:
    """Return a case as a row of `CASES`."""
    return asdict(case) | {"assignors": list(case.assignors)}


def case_of(row: Mapping[str, typing.Any]) -> Case:
    """Return the case of a row of `CASES`."""
    return Case(**{**row, "assignors": tuple(row["assignors"])})


def record_row(record: Record) -> dict[str, list[dict[str, object]]]:
    """Return a record as a row of `RECORDS`."""
    return {
        "groups": [_columns(record.group)],
        "optima": [] if record.optimum is None else [_columns(record.optimum)],
        "assignments": [_columns(row) for row in record.assignments],
        "comparisons": [_columns(row) for row in record.comparisons],
    }


def _columns(row: GroupRow | OptimumRow | AssignmentRow | Comparison) -> dict[str, object]:
    """Return a row's columns; None for integers beyond 64 bits, which no column holds."""
    return {
        name: None if type(value) is int and value not in _INT64 else value
        for name, value in asdict(row).items()
    }
