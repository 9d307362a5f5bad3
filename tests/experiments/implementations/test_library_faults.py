"""Faults of client libraries, each with its smallest known group."""

import json
from pathlib import Path

import pytest

from kassay.experiments.comparison.library_agreement import compare_with_reference
from kassay.experiments.implementations.installation import driver_command
from kassay.experiments.implementations.library_catalogue import repetitions_of
from kassay.experiments.implementations.runner import Ending, run_until_stable
from kassay.reference.documents.json_codec import load_group, parse_group
from tests.experiments.implementations.test_installed_libraries import require

pytestmark = pytest.mark.libraries

PAGE = Path(__file__).parents[3] / "docs" / "results" / "implementations.md"
FAULTS = Path(__file__).parents[3] / "examples" / "library-faults"
HANGS = (Ending.NONTERMINATING, "no assignment within 2 seconds")
SEGFAULTS = (Ending.FAILED, "(signal SIGSEGV)")
WORKS = (Ending.OK, "")
UNASSIGNED = (Ending.INVALID, "u-0 is not assigned")
WRONG_MEMBER = (Ending.INVALID, "member 'b' is assigned topic 'u', but does not subscribe to it")


@pytest.mark.parametrize(
    ("name", "assignor", "ending", "detail"),
    [
        ("livelock", "aiokafka@2s:sticky", *HANGS),
        ("livelock", "sarama@2s:sticky", *HANGS),
        ("livelock", "kafka-python@3.0.11@2s:sticky", *HANGS),
        ("livelock", "kafka-clients@2s:sticky", *HANGS),
        ("livelock", "kafka-python@3.0.12:sticky", *WORKS),
        ("livelock", "franz-go:sticky", *WORKS),
        ("use-after-free", "librdkafka:cooperative-sticky", *SEGFAULTS),
        ("use-after-free", "librdkafka@1.8.2:cooperative-sticky", *SEGFAULTS),
        ("fresh-hang", "librdkafka@2.5.3@2s:cooperative-sticky", *HANGS),
        ("new-member", "librdkafka:cooperative-sticky", *SEGFAULTS),
        ("new-member", "librdkafka@2.5.3:cooperative-sticky", *WORKS),
        ("deleted-partition", "kafka-clients@2.8.2:sticky", Ending.INVALID, "does not exist"),
        (
            "deleted-partition",
            "kafka-clients@3.6.2:cooperative-sticky",
            Ending.FAILED,
            "IllegalStateException: No more unfilled consumers",
        ),
        ("deleted-partition", "kafka-clients@3.7.2:sticky", *WORKS),
        ("movement-record", "kafka-broker@3.9.1:uniform", Ending.FAILED, "Mismatch in partition"),
        ("movement-record", "kafka-broker@4.0.0:uniform", *WORKS),
        ("unsubscribed-claim", "librdkafka:cooperative-sticky", Ending.INVALID, "topic 'u'"),
        ("unsubscribed-claim", "kafka-clients:cooperative-sticky", *WORKS),
        ("fresh-hang", "librdkafka@2.6.1:cooperative-sticky", *WORKS),
        ("fresh-hang", "librdkafka:cooperative-sticky", *WORKS),
        ("skipped-member", "kafka-python:roundrobin", Ending.FAILED, "KeyError"),
        ("skipped-member", "kafka-python@2.3.3:roundrobin", Ending.FAILED, "KeyError"),
        ("skipped-member", "kafka-python@2.2.21:roundrobin", *WORKS),
        ("rejoin", "kafka-python@2.0.2:sticky", Ending.FAILED, "TypeError"),
        ("rejoin", "kafka-python@2.1.6:sticky", *WORKS),
        ("topic-of-a-follower", "kafkajs:roundrobin", *UNASSIGNED),
        ("topic-of-a-follower", "platformatic-kafka:roundrobin", *UNASSIGNED),
        ("topic-of-a-follower", "platformatic-kafka:cooperative-sticky", *UNASSIGNED),
        ("topic-of-the-leader", "kafkajs:roundrobin", *WRONG_MEMBER),
        ("topic-of-the-leader", "platformatic-kafka:roundrobin", *WRONG_MEMBER),
        ("topic-of-the-leader", "platformatic-kafka:cooperative-sticky", *WORKS),
    ],
)
def test_a_fault_is_found_again(name, assignor, ending, detail):
    result = run_until_stable(load_group(FAULTS / f"{name}.json"), require(assignor))
    assert result.ending is ending, result.detail
    assert detail in (result.detail or "")


def _smallest_groups():
    """Return the rows of the documented table: shortcoming, assignor and group."""
    table = PAGE.read_text().partition("<!-- smallest groups: begin -->")[2]
    for line in table.partition("<!-- smallest groups: end -->")[0].splitlines()[4:]:
        if not line:
            continue
        kind, assignors, group = (cell.strip() for cell in line.strip("|").split(" | "))
        for assignor in assignors.split(", "):
            yield kind, assignor.strip("`"), json.loads(group.strip("`"))


@pytest.mark.parametrize(("kind", "assignor", "document"), list(_smallest_groups()))
def test_a_documented_group_shows_the_shortcoming_of_an_assignor(kind, assignor, document):
    name, _, method = require(assignor).partition(":")
    limit = 3 if kind == "nonterminating" else 30
    compared = compare_with_reference(
        parse_group(document),
        [f"{name}@{limit}s:{method}"],
        repetitions=20 if repetitions_of(assignor) > 1 else 1,
    )
    kinds = {"crash": "crashed", "failure": "failed"}
    assert kinds.get(kind, kind) in next(compared).kinds


def test_the_address_sanitizer_names_the_function_of_a_crash(monkeypatch):
    monkeypatch.setenv("KASSAY_SANITIZER", "address")
    driver_command.cache_clear()
    name = require("librdkafka:cooperative-sticky")
    result = run_until_stable(load_group(FAULTS / "use-after-free.json"), name)
    driver_command.cache_clear()
    assert result.ending is Ending.FAILED
    assert "SUMMARY: AddressSanitizer: heap-use-after-free" in (result.detail or "")
