"""Our ports against answers recorded from Kafka's own classes."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kassay.reference.assignors import ASSIGNORS
from tests.goldens.cases import FOUND, OWN, ported, read, recorded

CLIENT = ("range", "roundrobin", "sticky", "cooperative-sticky")
BROKER = ("uniform", "server-range")
# The recording beside the repository is of October 2024. KAFKA-18688 (4.1.0) changed which
# members of equal subscriptions get one partition more.
CHANGED_BY_KAFKA_18688 = 452
BEFORE_KAFKA_18688 = "uniform-4.0"


@pytest.mark.parametrize("assignor", CLIENT + BROKER)
def test_a_port_answers_as_the_pinned_release_does(assignor: str) -> None:
    cases = [case for case in read(OWN) if case["assignor"] == assignor]
    assert len(cases) > 80
    assert _mismatches(cases, assignor) == []


def test_what_a_soak_once_found_stays_mended() -> None:
    cases = list(read(FOUND))
    assert cases
    assert [case["id"] for case in cases if ported(case, case["assignor"]) != recorded(case)] == []


def test_the_committed_goldens_hold_exceptions_and_loops_without_end() -> None:
    answers = [recorded(case) for case in read(OWN)]
    thrown = {answer["failed"] for answer in answers} - {None}
    assert thrown == {
        "ArithmeticException",
        "ArrayIndexOutOfBoundsException",
        "IllegalArgumentException",
        "IllegalStateException",
        "NullPointerException",
        "PartitionAssignorException",
    }
    assert any(not answer["terminated"] for answer in answers)


@pytest.mark.parametrize("assignor", [*CLIENT, "server-range"])
def test_a_port_reproduces_every_recorded_case_of_october_2024(
    assignor: str, shared_fixtures: Path
) -> None:
    cases = _october_2024(shared_fixtures, assignor)
    assert len(cases) >= 2000
    assert _mismatches(cases, assignor) == []


def test_the_uniform_port_of_4_0_reproduces_every_recorded_case_of_october_2024(
    shared_fixtures: Path,
) -> None:
    cases = _october_2024(shared_fixtures, "uniform")
    assert len(cases) >= 2000
    assert _mismatches(cases, BEFORE_KAFKA_18688) == []


def test_the_uniform_port_differs_from_october_2024_on_equal_subscriptions_alone(
    shared_fixtures: Path,
) -> None:
    cases = _october_2024(shared_fixtures, "uniform")
    differing = set(_mismatches(cases, "uniform"))
    branches = Counter(c["expected"].get("branch") for c in cases if c["id"] in differing)
    assert branches == {"homogeneous": CHANGED_BY_KAFKA_18688}


@pytest.mark.parametrize("assignor", CLIENT + BROKER)
def test_answers_hang_on_nothing_but_the_group(assignor: str) -> None:
    cases = [case for case in read(OWN) if case["assignor"] == assignor]
    shuffled = random.Random(assignor).sample(cases, len(cases))
    assert _mismatches(shuffled, assignor) == []


def test_every_assignor_has_a_port() -> None:
    names = {*CLIENT, *BROKER, BEFORE_KAFKA_18688, "legacy-range", "legacy-roundrobin"}
    assert set(ASSIGNORS) == names


def _october_2024(folder: Path, assignor: str) -> list[dict[str, Any]]:
    return [
        case
        for name in ("golden_public.jsonl.gz", "edge_cases.jsonl")
        for case in read(folder / name)
        if case["assignor"] == assignor
    ]


def _mismatches(cases: list[dict[str, Any]], assignor: str) -> list[str]:
    return [case["id"] for case in cases if ported(case, assignor) != recorded(case)]
