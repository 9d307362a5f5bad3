from dataclasses import make_dataclass

import pyarrow as pa
import pytest

from kassay.experiments.study.cases import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.tables import (
    CASES,
    CaseRecord,
    OptimumRow,
    TimingRow,
    case_row,
    schema_of,
)


def test_columns_are_the_fields_of_the_row_type():
    schema = schema_of(OptimumRow)
    assert schema.field("case") == pa.field("case", pa.string(), nullable=False)
    assert schema.field("imbalance_value") == pa.field("imbalance_value", pa.int64())
    seconds = schema_of(TimingRow).field("seconds")
    assert seconds == pa.field("seconds", pa.float64(), nullable=False)


def test_unsupported_field_types_are_rejected():
    with pytest.raises(TypeError, match="column 'loads': no column type"):
        schema_of(make_dataclass("Row", [("loads", tuple)]))


def test_rows_of_cases_fit_the_schema():
    record = evaluate_case(Case(family="named", seed=4, assignors=("range",)))
    row = case_row(record, position=7, study="s")
    [found] = pa.Table.from_pylist([row], schema=CASES).to_pylist()
    assert (found["position"], found["study"], found["groups"]["case"]) == (7, "s", "named/4")
    assert [len(found[name]) for name in ("assignments", "comparisons", "timings")] == [1, 1, 2]
    assert found["optima"]["status"] == "optimal"


def test_integers_beyond_64_bits_become_null():
    group = evaluate_case(Case(family="named", seed=0, assignors=())).group
    row = OptimumRow(case="big", status="optimal", imbalance_value=2**63)
    columns = case_row(CaseRecord(group=group, optimum=row), position=0, study="")["optima"]
    assert columns["imbalance_value"] is None
