import pytest

from kassay.experiments.counterexamples.exhaustive_search import exhaustive_cases
from kassay.experiments.counterexamples.search import search_case
from kassay.experiments.counterexamples.shortcomings import SearchOptions, Shortcoming
from kassay.experiments.spark.counterexample_search import search_cases
from kassay.experiments.study.case import Case

pytestmark = pytest.mark.spark

CASES = [
    *exhaustive_cases(members=2, partitions=2, assignor="sticky"),
    *(Case(family="named", seed=seed, assignors=("sticky",)) for seed in range(5)),
    Case(family="no-such-family", seed=0, assignors=("sticky",)),
]


@pytest.mark.parametrize(
    "assignor", ["sticky", "python@60s:kassay.reference.assignors.client.sticky:assign"]
)
def test_spark_catches_what_one_process_catches(spark, assignor):
    hunt = SearchOptions(assignor=assignor, shortcoming=Shortcoming.IMBALANCE)
    caught = search_cases(spark, CASES, hunt, tasks=3)
    assert sorted(caught, key=lambda catch: catch.case) == sorted(
        (search_case(case, hunt) for case in CASES), key=lambda catch: catch.case
    )
    assert sum(catch.smallest is not None for catch in caught) >= 2
