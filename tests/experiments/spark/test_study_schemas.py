import pyarrow as pa

from kassay.experiments.study.cases import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.schemas import CASES, CaseRecord, OptimumRow, case_row


def test_rows_of_cases_fit_the_schema():
    record = evaluate_case(Case(family="named", seed=4, assignors=("range",)))
    row = case_row(record, position=7, study="s")
    [found] = pa.Table.from_pylist([row], schema=CASES).to_pylist()
    assert (found["position"], found["study"], found["groups"]["case"]) == (7, "s", "named/4")
    assert [len(found[name]) for name in ("assignments", "comparisons", "timings")] == [1, 1, 2]
    assert found["optima"]["status"] == "optimal"


def test_integers_beyond_64_bits_become_null():
    group = evaluate_case(Case(family="named", seed=0, assignors=())).group
    row = OptimumRow(status="optimal", imbalance_value=2**63)
    columns = case_row(CaseRecord(group=group, optimum=row), position=0, study="")["optima"]
    assert columns["imbalance_value"] is None
