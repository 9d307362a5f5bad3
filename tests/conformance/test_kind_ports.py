"""The ports of the assignors of Connect and Streams equal Kafka's classes on random problems.

Each port is compared on 10,000 problems. A problem of Connect is a sequence of events.
"""

import json
import os
from random import Random

import pytest

from kassay.experiments.implementations.client_libraries import install, parse_library_assignor
from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from tests.conformance.kind_problems import random_application, random_cluster

pytestmark = pytest.mark.kafka
PROBLEMS = int(os.environ.get("KASSAY_KIND_PROBLEMS", "10000"))


@pytest.mark.parametrize(
    ("port", "library", "kind", "problem"),
    [
        (
            "connect-incremental",
            "kafka-connect@4.3.1@300s:incremental",
            Kind.CONNECT,
            random_cluster,
        ),
        ("connect-eager", "kafka-connect@4.3.1@300s:eager", Kind.CONNECT, random_cluster),
        (
            "streams-high-availability",
            "kafka-streams@4.3.1@300s:high-availability",
            Kind.STREAMS,
            random_application,
        ),
    ],
)
def test_the_port_equals_the_class(port, library, kind, problem):
    parsed = parse_library_assignor(library)
    install(parsed.library, parsed.version)
    for seed in range(PROBLEMS):
        document = parse_kind_document(problem(Random(seed)), kind=kind)
        expected = run_on_document(document, library)
        found = run_on_document(document, port)
        assert found.failed == expected.failed, (seed, document.content)
        assert json.loads(json.dumps(found.answer)) == expected.answer, (seed, document.content)
