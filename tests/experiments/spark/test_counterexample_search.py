import pytest

from kassay.experiments.counterexamples.find_counterexample import (
    CounterexampleOptions,
    Shortcoming,
    exhaustive_cases,
    find_counterexample,
)
from kassay.experiments.spark.study_pipeline import search_cases
from kassay.experiments.study.cases import Case
from tests.tiers import short_and_long

pytestmark = pytest.mark.spark

CASES = [
    *exhaustive_cases(members=2, partitions=2, assignor="sticky"),
    *(Case(family="named", seed=seed, assignors=("sticky",)) for seed in range(5)),
    Case(family="no-such-family", seed=0, assignors=("sticky",)),
]


@pytest.mark.parametrize(
    "assignor",
    short_and_long("sticky", "python@60s:kassay.reference.assignors.client.sticky:assign"),
)
def test_spark_finds_the_same_counterexamples_as_one_process(spark, assignor):
    options = CounterexampleOptions(assignor=assignor, shortcoming=Shortcoming.IMBALANCE)
    found = list(search_cases(spark, tuple(CASES), options, tasks=3))
    assert sorted(found, key=lambda result: result.case) == sorted(
        (find_counterexample(case, options) for case in CASES), key=lambda result: result.case
    )
    assert sum(result.smallest is not None for result in found) >= 2
