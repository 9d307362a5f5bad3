"""Ports compared with recorded results of Kafka's classes."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kassay.reference.assignors import ASSIGNORS
from tests.goldens.cases import MISMATCHES, PINNED, ported, read, recorded
from tests.tiers import short_and_long

Cases = dict[str, list[dict[str, Any]]]
CLIENT = ("range", "roundrobin", "sticky", "cooperative-sticky")
BROKER = ("uniform", "server-range")
# The shared fixtures were recorded in October 2024. KAFKA-18688 (4.1.0) changed which
# members with equal subscriptions get one more partition.
CHANGED_BY_KAFKA_18688 = 452
BEFORE_KAFKA_18688 = "uniform-4.0"


@pytest.mark.parametrize("assignor", CLIENT + BROKER)
def test_port_agrees_with_the_results_of_kafka_4_4(assignor: str) -> None:
    cases = [case for case in read(PINNED) if case["assignor"] == assignor]
    assert len(cases) > 80
    assert _mismatches(cases, assignor) == []


def test_ports_agree_with_kafka_on_groups_of_earlier_mismatches() -> None:
    cases = list(read(MISMATCHES))
    assert cases
    assert [case["id"] for case in cases if ported(case, case["assignor"]) != recorded(case)] == []


def test_recorded_results_contain_exceptions_and_nontermination() -> None:
    results = [recorded(case) for case in read(PINNED)]
    exceptions = {result["failed"] for result in results} - {None}
    assert exceptions == {
        "ArithmeticException",
        "ArrayIndexOutOfBoundsException",
        "IllegalArgumentException",
        "IllegalStateException",
        "NullPointerException",
        "PartitionAssignorException",
    }
    assert any(not result["terminated"] for result in results)


@pytest.fixture(scope="module")
def october_2024(shared_fixtures: Path) -> Cases:
    """Return the cases that were recorded in October 2024, by assignor."""
    cases: Cases = {}
    for name in ("golden_public.jsonl.gz", "edge_cases.jsonl"):
        for case in read(shared_fixtures / name):
            cases.setdefault(case["assignor"], []).append(case)
    assert all(len(cases[assignor]) >= 2000 for assignor in CLIENT + BROKER)
    return cases


@pytest.mark.parametrize("step", short_and_long(4, 1))
@pytest.mark.parametrize("assignor", [*CLIENT, "server-range"])
def test_port_reproduces_the_results_recorded_in_october_2024(
    assignor: str, step: int, october_2024: Cases
) -> None:
    assert _mismatches(october_2024[assignor][::step], assignor) == []


@pytest.mark.parametrize("step", short_and_long(4, 1))
def test_uniform_4_0_reproduces_the_results_recorded_in_october_2024(
    step: int, october_2024: Cases
) -> None:
    assert _mismatches(october_2024["uniform"][::step], BEFORE_KAFKA_18688) == []


@pytest.mark.long
def test_uniform_differs_from_the_2024_results_only_for_equal_subscriptions(
    october_2024: Cases,
) -> None:
    cases = october_2024["uniform"]
    differing = set(_mismatches(cases, "uniform"))
    branches = Counter(c["expected"].get("branch") for c in cases if c["id"] in differing)
    assert branches == {"homogeneous": CHANGED_BY_KAFKA_18688}


@pytest.mark.parametrize("assignor", CLIENT + BROKER)
def test_results_do_not_depend_on_the_order_of_calls(assignor: str) -> None:
    cases = [case for case in read(PINNED) if case["assignor"] == assignor]
    shuffled = random.Random(assignor).sample(cases, len(cases))
    assert _mismatches(shuffled, assignor) == []


def test_assignor_names_are_complete() -> None:
    names = {*CLIENT, *BROKER, BEFORE_KAFKA_18688, "legacy-range", "legacy-roundrobin", "uniform2"}
    assert set(ASSIGNORS) == names


def _mismatches(cases: list[dict[str, Any]], assignor: str) -> list[str]:
    return [case["id"] for case in cases if ported(case, assignor) != recorded(case)]
