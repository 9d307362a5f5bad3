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
from tests.stored_cases import stored_cases

FILE = Path(__file__).with_name("kafka_4_4_results.jsonl.gz")
_HISTORIES = 400
_MAX_PARTITIONS = 120
_GROUPS_PER_KIND = 3
_LIMIT = 3.0


_NAMED: tuple[dict[str, Any], ...] = stored_cases("named_goldens")


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
