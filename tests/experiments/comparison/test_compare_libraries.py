"""Agreement of assignors with a reference, and between releases."""

import sys
from threading import Event

import pytest

from kassay import Assignment
from kassay.experiments.comparison import compare_libraries
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.comparison.compare_libraries import (
    Agreement,
    AgreementCounts,
    add_agreements,
    agreement_of,
    compare_with_reference,
    run_releases,
)
from kassay.experiments.implementations import run_assignor
from kassay.experiments.implementations.client_libraries import libraries
from kassay.experiments.implementations.run_assignor import Ending, StableResult, close_processes
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from tests.notation import group

GROUPS = [NAMED_GROUPS[name].group for name in "ABC"]
PAIR = group("t:2", a="t", b="t")
_DRIVER = """
import json, random, sys
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    print(json.dumps({answer}), flush=True)
"""


def count_agreements(groups, assignors, **options):
    counts = {name: AgreementCounts(name) for name in assignors}
    add_agreements(counts, groups, **options)
    return list(counts.values())


@pytest.fixture
def drivers(tmp_path, monkeypatch):
    """Replace the drivers by Python programs; the key is a part of the name of the assignor."""
    answers = {}

    def command(assignor):
        answer = next(text for key, text in answers.items() if key in str(assignor))
        script = tmp_path / f"{assignor.library.name}-{assignor.version}.py"
        script.write_text(_DRIVER.format(answer=answer))
        return (sys.executable, str(script))

    monkeypatch.setattr(run_assignor, "driver_command", command)
    yield answers
    close_processes()


def result(lists):
    return StableResult(ending=Ending.OK, assignment=Assignment(lists), rounds=1)


def test_exchanged_partitions_have_the_same_loads():
    one, other = (
        result({"a": [("t", 0)], "b": [("t", 1)]}),
        result({"a": [("t", 1)], "b": [("t", 0)]}),
    )
    assert agreement_of(PAIR, one, other) is Agreement.SAME_LOADS
    assert agreement_of(PAIR, one, result({"a": [("t", 0), ("t", 1)]})) is Agreement.OTHER_LOADS


def test_a_signal_is_a_crash_and_an_exception_is_a_failure():
    def failed(detail):
        return StableResult(ending=Ending.FAILED, assignment=None, rounds=1, detail=detail)

    good = result({"a": [("t", 0)], "b": [("t", 1)]})
    assert agreement_of(PAIR, failed("ended (signal SIGSEGV)"), good) is Agreement.CRASHED
    assert agreement_of(PAIR, failed("KeyError: t"), good) is Agreement.FAILED
    assert agreement_of(PAIR, good, failed("KeyError: t")) is Agreement.INCOMPARABLE


def test_counts_contain_the_smallest_group_of_each_kind(monkeypatch):
    monkeypatch.setattr(compare_libraries, "reference_of", lambda _: "sticky")
    (counts,) = count_agreements(GROUPS, ["range"])
    assert counts.agreements.total() == len(GROUPS)
    assert set(map(str, counts.agreements)) <= set(counts.smallest)
    smallest = counts.smallest["other loads"]
    others = [
        group
        for group in GROUPS
        for one in compare_with_reference(group, ["range"])
        if one.agreement is Agreement.OTHER_LOADS
    ]
    assert smallest.partition_count == min(group.partition_count for group in others)


def test_an_assignor_with_varying_results_is_compared_by_loads_only(drivers):
    drivers["sarama"] = '{"a": [["t", number % 2]], "b": [["t", 1 - number % 2]]}'
    (one,) = compare_with_reference(PAIR, ["sarama:sticky"])
    assert one.agreement is Agreement.SAME_LOADS
    assert (one.distinct_assignments, one.distinct_loads) == (2, 1)
    assert one.least_imbalance


def test_an_alias_does_not_change_the_agreement(drivers):
    drivers["sarama"] = '{"a": [["t", 0]], "b": [["t", 1]]}'
    found = compare_with_reference(PAIR, ["sarama:sticky", "mine=sarama:sticky"])
    assert [one.agreement for one in found] == [Agreement.SAME_LOADS] * 2


def test_the_worst_of_several_runs_counts(drivers):
    drivers["sarama"] = (
        '{"a": [["t", 0], ["t", 1]]} if number == 3 else {"a": [["t", 0]], "b": [["t", 1]]}'
    )
    (one,) = compare_with_reference(PAIR, ["sarama:sticky"])
    assert one.agreement is Agreement.OTHER_LOADS
    assert one.least_imbalance is False


def test_releases_show_the_first_difference_with_the_known_changes(drivers):
    old, new = '{"a": [["t", 0]], "b": [["t", 1]]}', '{"a": [["t", 1]], "b": [["t", 0]]}'
    drivers |= {"@2.2.2": old, "@2.4.0": old, "@3.8.0": new, "@4.0.0": new}
    versions = ["4.0.0", "2.2.2", "3.8.0", "2.4.0"]
    results = list(run_releases(PAIR, libraries()["kafka-clients"], "sticky", versions, seconds=20))
    assert [one["version"] for one in results] == ["2.2.2", "2.4.0", "3.8.0", "4.0.0"]
    assert ["known_changes" in one for one in results] == [False, False, True, False]
    assert any("KAFKA-16277" in change for change in results[2]["known_changes"])


def test_a_stopped_count_has_no_group_that_is_not_complete():
    stop = Event()
    counts = {name: AgreementCounts(name) for name in ("range", "roundrobin")}

    def groups():
        yield GROUPS[0]
        stop.set()
        yield GROUPS[1]

    add_agreements(counts, groups(), limits=CaseLimits(stop=stop))
    assert [one.agreements.total() for one in counts.values()] == [1, 1]
