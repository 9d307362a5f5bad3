"""The driver prepares calls as the recorded cases were, so the pinned release reproduces them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kassay.reference.documents.json_codec import parse_group
from tests.conformance.upstream import upstream_assign

pytestmark = pytest.mark.kafka

_GROUP_KEYS = ("id", "topics", "members")
# The release after the recording made the uniform assignor leave balanced groups alone
# (KAFKA-18688): on equal subscriptions the members with one more are others than before.
_CHANGED = ("uniform", "homogeneous")
_CHANGED_CASES = 452


@pytest.mark.slow
def test_the_real_classes_reproduce_every_recorded_case_but_the_one_change(
    shared_fixtures: Path,
) -> None:
    different: Counter[tuple[str, str | None]] = Counter()
    cases = 0
    for case in _cases(shared_fixtures):
        cases += 1
        group = parse_group({key: case[key] for key in _GROUP_KEYS})
        answer = upstream_assign(group, case["assignor"])
        expected = case["expected"]
        thrown = expected.get("error", "").partition(":")[0].rpartition(".")[2] or None
        if (answer.lists, answer.failed) != (expected.get("assignment"), thrown):
            different[case["assignor"], expected.get("branch")] += 1
    assert cases == 12_525 + 79
    assert different == {_CHANGED: _CHANGED_CASES}


def _cases(folder: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "golden_public.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
    with (folder / "edge_cases.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
