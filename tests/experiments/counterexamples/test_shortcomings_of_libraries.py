"""Shortcomings of assignors with results that vary between runs."""

from fractions import Fraction

from kassay.experiments.counterexamples import shortcomings
from kassay.experiments.counterexamples.shortcomings import (
    CounterexampleOptions,
    Shortcoming,
    measure_shortfall,
)
from kassay.experiments.implementations.convergence import Ending, StableResult
from kassay.reference import Assignment, Group, Member, Topic

GROUP = Group(
    topics=(Topic(name="t", partitions=2),),
    members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
)


def test_the_worst_run_of_a_varying_assignor_counts(monkeypatch):
    bad, good = {"a": [("t", 0), ("t", 1)]}, {"a": [("t", 0)], "b": [("t", 1)]}
    lists = iter([good, good, bad, good, good])

    def run(_group, _assignor):
        return StableResult(ending=Ending.OK, assignment=Assignment(next(lists)), rounds=1)

    monkeypatch.setattr(shortcomings, "run_until_stable", run)
    options = CounterexampleOptions(assignor="sarama:sticky", shortcoming=Shortcoming.IMBALANCE)
    assert measure_shortfall(GROUP, options).severity == Fraction(2)
