"""The measures of share groups, Streams applications and Connect clusters on Spark."""

import pytest

from kassay.experiments.spark.study_pipeline import evaluate_cases, query
from kassay.experiments.study.cases import Batch, family_cases
from kassay.experiments.study.evaluate_case import evaluate_case

FAMILIES = {"share-mixed-join": 2, "streams-join": 2, "connect-restart-40s": 2}


@pytest.mark.spark
def test_the_sums_are_those_of_the_rows(spark):
    cases = family_cases(FAMILIES, assignors=("share", "connect-incremental"))
    frame = evaluate_cases(spark, cases, Batch(0, 0, len(cases)), tasks=1)
    found = {
        (row["family"], row["measure"]): (row["answers"], row["value"], row["above"], row["excess"])
        for row in query("measures", cases=frame).collect()
    }
    expected = {}
    for case in cases:
        for row in evaluate_case(case).measures:
            excess = row.value - row.minimum if row.minimum == row.bound is not None else 0
            added = (1, row.value, int(excess > 0), excess)
            old = expected.get((case.family, row.measure), (0, 0, 0, 0))
            expected[case.family, row.measure] = tuple(map(sum, zip(old, added, strict=True)))
    assert found == expected
    assert found["streams-join", "state_moves"][2] == 2
