"""The local search of the benchmark meets the constraints, and reports its own imbalance."""

import numpy as np
import pytest

from benchmarks.several_constraints import LocalSearch, cases
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.constraints import Colocated
from kassay.solver.evaluation import level_value, violated
from kassay.solver.problem import build_problem

CASES = list(cases(12))


@pytest.mark.parametrize("number", [4, 7, 10, 11])
def test_the_local_search_meets_the_constraints(number):
    case = CASES[number]
    assert len(case.rules) >= 2
    problem, search = build_problem(case.group), LocalSearch(case, number)
    lowest = search.lowest(0.3)
    joined = {"b": "a"} if any(isinstance(rule, Colocated) for rule in case.rules) else {}
    placement = np.zeros(problem.partition_count, dtype=np.int32)
    sets: dict[tuple[str, int], int] = {}
    for topic in case.group.topics:
        for partition in range(topic.partitions):
            key = (joined.get(topic.name, topic.name), partition)
            one = sets.setdefault(key, len(sets))
            at = problem.partition_index[TopicPartition(topic.name, partition)]
            placement[at] = search.best[one]
    assert list(violated(problem, case.rules, placement)) == []
    assert lowest == level_value(problem, case.levels[0], placement)
