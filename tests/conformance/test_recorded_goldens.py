"""Reproduction of the recorded cases by the pinned release."""

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
# After the recording, KAFKA-18688 changed which members with equal subscriptions get one
# more partition from the uniform assignor.
_CHANGED = ("uniform", "homogeneous")
_CHANGED_CASES = 452


def test_kafkas_classes_reproduce_the_recorded_cases_except_one_change(
    shared_fixtures: Path,
) -> None:
    different: Counter[tuple[str, str | None]] = Counter()
    cases = 0
    for case in _cases(shared_fixtures):
        cases += 1
        group = parse_group({key: case[key] for key in _GROUP_KEYS})
        result = upstream_assign(group, case["assignor"])
        expected = case["expected"]
        exception = expected.get("error", "").partition(":")[0].rpartition(".")[2] or None
        if (result.lists, result.failed) != (expected.get("assignment"), exception):
            different[case["assignor"], expected.get("branch")] += 1
    assert cases == 12_525 + 79
    assert different == {_CHANGED: _CHANGED_CASES}


def _cases(folder: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "golden_public.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
    with (folder / "edge_cases.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
