"""The published samples beside the repository, against the rows stated for them."""

import json
from dataclasses import asdict

import pytest

from kassay.experiments.sources.describe_output import MemberRow, OffsetRow, parse_text
from tests.conftest import SHARED_FIXTURES

SAMPLES = sorted((SHARED_FIXTURES / "describe").glob("*.txt"))


def as_stated(table):
    kind = str(table.kind)
    stated = {"kind": kind}
    if kind in ("offsets", "members"):
        stated["columns"] = list(table.columns)
    rows = []
    for row in table.rows:
        figures = asdict(row)
        figures.pop("line")
        if isinstance(row, OffsetRow) and "OWNER" not in table.columns:
            figures.pop("owner")
        if isinstance(row, MemberRow):
            figures.pop("epoch")
            figures.pop("target")
            assignment = figures.pop("assignment")
            if assignment is not None:
                figures["assignment"] = {topic: list(numbers) for topic, numbers in assignment}
        if kind == "state":
            figures.pop("epoch")
        if kind == "reset":
            figures = {
                "topic": row.topic,
                "partition": str(row.partition),
                "new-offset": str(row.new_offset),
            }
        rows.append(figures)
    return stated | {"rows": rows}


@pytest.mark.skipif(not SAMPLES, reason="no published samples beside this checkout")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_published_sample_gives_the_rows_stated_for_it(sample):
    expected = json.loads((sample.parent / "expected.json").read_text())[sample.name]
    parsed = parse_text(sample.read_text(), name=sample.name)
    notices = [{"kind": "notice", notice.kind: notice.group} for notice in parsed.notices]
    assert [*notices, *map(as_stated, parsed.tables)] == expected
