"""Recorded cases: results of Kafka's classes, and of the ports on the same groups."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import parse_group

PINNED = Path(__file__).with_name("kafka_4_4_results.jsonl.gz")
MISMATCHES = Path(__file__).with_name("mismatches.jsonl")
_GROUP_KEYS = ("id", "topics", "members")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a JSON Lines file, compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def recorded(case: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded result of a case."""
    expected = case["expected"]
    error = expected.get("error", "").partition(":")[0].rpartition(".")[2]
    return {
        "assignment": expected.get("assignment"),
        "failed": expected.get("failed") or error or None,
        "terminated": expected.get("terminated", True),
    }


def ported(case: dict[str, Any], assignor: str) -> dict[str, Any]:
    """Return the result of the port in the form of `recorded`."""
    group = parse_group({key: case[key] for key in _GROUP_KEYS if key in case})
    outcome = run_assignor(group, assignor)
    lists = outcome.assignment
    return {
        "assignment": None if lists is None else {m: [[*tp] for tp in lists[m]] for m in lists},
        "failed": None if outcome.failed is None else outcome.failed.java_class,
        "terminated": outcome.terminated,
    }
