"""Schemas of the tables, read off the dataclasses that are their rows."""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields

import pyarrow as pa

from kassay.experiments.study.table_rows import (
    AssignmentRow,
    CaseRecord,
    ComparisonRow,
    GroupRow,
    OptimumRow,
    TimingRow,
)

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
    "comparisons": schema_of(ComparisonRow),
    "timings": schema_of(TimingRow),
}

# What a worker sends back: all rows of a case and its place in the wave. The driver takes
# the tables out of it.
PLACE = "place"
RECORDS = pa.schema(
    [pa.field(PLACE, pa.int64(), nullable=False)]
    + [pa.field(name, pa.list_(pa.struct(schema))) for name, schema in TABLES.items()]
)
SEALED = pa.schema([pa.field("records", pa.binary(), nullable=False)])
"""What Spark sees of records. It would take nested columns apart and put them together again,
by code that it compiles anew for every task."""


def record_row(record: CaseRecord) -> dict[str, list[dict[str, object]]]:
    """Return a record as a row of `RECORDS`."""
    return {
        "groups": [_columns(record.group)],
        "optima": [] if record.optimum is None else [_columns(record.optimum)],
        "assignments": [_columns(row) for row in record.assignments],
        "comparisons": [_columns(row) for row in record.comparisons],
        "timings": [_columns(row) for row in record.timings],
    }


def sealed(records: pa.RecordBatch) -> pa.RecordBatch:
    """Seal a batch of `RECORDS` into one row of `SEALED`, as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    return pa.record_batch([[sink.getvalue().to_pybytes()]], schema=SEALED)


def opened(rows: pa.Table) -> pa.Table:
    """Return the `RECORDS` that were sealed into rows of `SEALED`."""
    streams = (row.as_buffer() for row in rows.column("records"))
    tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
    return pa.concat_tables([RECORDS.empty_table(), *tables])


def table_of(records: pa.Table, name: str) -> pa.Table:
    """Take one table out of records: their rows, record after record."""
    structs = records.column(name).combine_chunks().flatten()
    columns = structs.flatten()
    return pa.Table.from_arrays(columns, schema=TABLES[name])


def _columns(
    row: GroupRow | OptimumRow | AssignmentRow | ComparisonRow | TimingRow,
) -> dict[str, object]:
    """Return a row's columns; None for integers beyond 64 bits, which no column holds."""
    columns: dict[str, object] = {}
    for name in row.__slots__:
        value = getattr(row, name)
        columns[name] = None if type(value) is int and value not in _INT64 else value
    return columns
