"""Record goldens from the pinned release: ``python -m tests.goldens.record``.

Kafka's classes assign the groups of seeded histories. The first groups of each kind are
recorded, so the file is small and reproducible.
"""

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.group import Group
from tests.conformance.groups import history
from tests.conformance.upstream import NAMES, UpstreamResult, upstream_assign

FILE = Path(__file__).with_name("kafka_4_4_results.jsonl.gz")
_HISTORIES = 400
_MAX_PARTITIONS = 120
_GROUPS_PER_KIND = 3
_LIMIT = 3.0


_NAMED: tuple[dict[str, Any], ...] = (
    {
        "id": "an owner of an earlier generation takes no part",
        "topics": {"orders": 4, "audit": 1},
        "members": [
            {"id": "a", "topics": ["orders"], "owned": {"orders": [0, 1, 2, 3]}, "generation": 2},
            {"id": "b", "topics": ["orders"]},
            {"id": "c", "topics": ["audit"], "owned": {"orders": [0]}, "generation": 1},
        ],
    },
    {
        "id": "a loop without end",
        "topics": {"t0": 5, "t13": 3, "t2": 5, "t5": 2, "t6": 6},
        "members": [
            {"id": "c01", "topics": ["t13", "t6"], "owned": {"t6": [0, 1, 3, 5]}, "generation": 7},
            {"id": "c02", "topics": ["t0", "t5"], "owned": {"t0": [0, 2, 4]}, "generation": 7},
            {"id": "c07", "topics": ["t2", "t6"], "owned": {"t6": [2, 4]}, "generation": 7},
            {"id": "c08", "topics": ["t0", "t5"], "owned": {"t0": [1, 3]}, "generation": 7},
            {"id": "cNEW", "topics": ["t0", "t6"]},
        ],
    },
)


def _kind(group: Group, result: UpstreamResult) -> tuple[object, ...]:
    """Return the kind of a case."""
    return (
        result.kind,
        result.failed,
        len({member.subscription for member in group.members}) <= 1,
        any(member.rack for member in group.members),
        any(member.instance_id for member in group.members),
        any(len(member.owned) for member in group.members),
        len({member.generation for member in group.members}) > 1,
    )


def _cases(assignor: str) -> Iterator[dict[str, Any]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for group, result in _results(assignor):
        kind = _kind(group, result)
        if group.partition_count > _MAX_PARTITIONS or counts[kind] == _GROUPS_PER_KIND:
            continue
        counts[kind] += 1
        expected: dict[str, Any] = {"assignment": result.lists}
        if result.failed is not None:
            expected["failed"] = result.failed
        if not result.terminated:
            expected["terminated"] = False
        yield {**group_document(group), "assignor": assignor, "expected": expected}


def _results(assignor: str) -> Iterator[tuple[Group, UpstreamResult]]:
    for document in _NAMED:
        group = parse_group(document)
        yield group, upstream_assign(group, assignor, limit=_LIMIT)
    for seed in range(_HISTORIES):
        steps = history(assignor, seed)
        current: Group | None = next(steps)
        while current is not None:
            result = upstream_assign(current, assignor, limit=_LIMIT)
            yield current, result
            try:
                current = steps.send(result.lists)
            except StopIteration:
                current = None


def record() -> None:
    """Write the recording."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as lines:
        for assignor in NAMES:
            for case in _cases(assignor):
                lines.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")
    FILE.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    record()
