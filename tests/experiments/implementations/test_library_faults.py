"""Faults of client libraries, each with its smallest known group."""

from pathlib import Path

import pytest

from kassay.experiments.implementations.convergence import Ending, run_until_stable
from kassay.experiments.implementations.installation import driver_command
from kassay.reference.documents.json_codec import load_group
from tests.experiments.implementations.test_installed_libraries import require

FAULTS = Path(__file__).parents[3] / "examples" / "library-faults"
NO_ANSWER = "no assignment within 2 seconds"
UNASSIGNED = "u-0 is not assigned"
WRONG_MEMBER = "member 'b' is assigned topic 'u', but does not subscribe to it"


@pytest.mark.parametrize(
    ("name", "assignor", "ending", "detail"),
    [
        ("livelock", "aiokafka@2s:sticky", Ending.NONTERMINATING, NO_ANSWER),
        ("livelock", "sarama@2s:sticky", Ending.NONTERMINATING, NO_ANSWER),
        ("livelock", "kafka-python@3.0.11@2s:sticky", Ending.NONTERMINATING, NO_ANSWER),
        ("livelock", "kafka-clients@2s:sticky", Ending.NONTERMINATING, NO_ANSWER),
        ("livelock", "kafka-python@3.0.12:sticky", Ending.OK, ""),
        ("livelock", "franz-go:sticky", Ending.OK, ""),
        ("use-after-free", "librdkafka:cooperative-sticky", Ending.FAILED, "(signal SIGSEGV)"),
        (
            "use-after-free",
            "librdkafka@1.8.2:cooperative-sticky",
            Ending.FAILED,
            "(signal SIGSEGV)",
        ),
        (
            "fresh-hang",
            "librdkafka@2.5.3@2s:cooperative-sticky",
            Ending.NONTERMINATING,
            NO_ANSWER,
        ),
        ("unsubscribed-claim", "librdkafka:cooperative-sticky", Ending.INVALID, "topic 'u'"),
        ("unsubscribed-claim", "kafka-clients:cooperative-sticky", Ending.OK, ""),
        ("fresh-hang", "librdkafka@2.6.1:cooperative-sticky", Ending.OK, ""),
        ("fresh-hang", "librdkafka:cooperative-sticky", Ending.OK, ""),
        ("skipped-member", "kafka-python:roundrobin", Ending.FAILED, "KeyError"),
        ("skipped-member", "kafka-python@2.3.3:roundrobin", Ending.FAILED, "KeyError"),
        ("skipped-member", "kafka-python@2.2.21:roundrobin", Ending.OK, ""),
        ("rejoin", "kafka-python@2.0.2:sticky", Ending.FAILED, "TypeError"),
        ("rejoin", "kafka-python@2.1.6:sticky", Ending.OK, ""),
        ("topic-of-a-follower", "kafkajs:roundrobin", Ending.INVALID, UNASSIGNED),
        ("topic-of-a-follower", "platformatic-kafka:roundrobin", Ending.INVALID, UNASSIGNED),
        (
            "topic-of-a-follower",
            "platformatic-kafka:cooperative-sticky",
            Ending.INVALID,
            UNASSIGNED,
        ),
        ("topic-of-the-leader", "kafkajs:roundrobin", Ending.INVALID, WRONG_MEMBER),
        ("topic-of-the-leader", "platformatic-kafka:roundrobin", Ending.INVALID, WRONG_MEMBER),
        ("topic-of-the-leader", "platformatic-kafka:cooperative-sticky", Ending.OK, ""),
    ],
)
def test_a_fault_is_found_again(name, assignor, ending, detail):
    result = run_until_stable(load_group(FAULTS / f"{name}.json"), require(assignor))
    assert result.ending is ending, result.detail
    assert detail in (result.detail or "")


def test_the_address_sanitizer_names_the_function_of_a_crash(monkeypatch):
    monkeypatch.setenv("KASSAY_SANITIZER", "address")
    driver_command.cache_clear()
    name = require("librdkafka:cooperative-sticky")
    result = run_until_stable(load_group(FAULTS / "use-after-free.json"), name)
    driver_command.cache_clear()
    assert result.ending is Ending.FAILED
    assert "SUMMARY: AddressSanitizer: heap-use-after-free" in (result.detail or "")
