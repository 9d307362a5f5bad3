"""Published samples beside the repository are parsed to their documented rows."""

import json
from dataclasses import asdict

import pytest

from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.describe_rows import MemberRow, OffsetRow
from tests.conftest import SHARED_FIXTURES

SAMPLES = sorted((SHARED_FIXTURES / "describe").glob("*.txt"))

_CONSUMER_FIELDS = ("consumer_id", "host", "client_id")


def expected_form(table):
    kind = str(table.kind)
    expected_table = {"kind": kind}
    if kind in ("offsets", "members"):
        expected_table["columns"] = list(table.columns)
    rows = []
    for row in table.rows:
        fields = asdict(row)
        fields.pop("line")
        if kind == "offset-checker":
            fields = {key: fields[key] for key in fields if key not in _CONSUMER_FIELDS}
        elif isinstance(row, OffsetRow) and "OWNER" not in table.columns:
            fields.pop("owner")
        if isinstance(row, MemberRow):
            fields.pop("epoch")
            fields.pop("target")
            fields.pop("unnamed")
            assignment = fields.pop("assignment")
            if assignment is not None:
                fields["assignment"] = {topic: list(numbers) for topic, numbers in assignment}
        if kind == "state":
            fields.pop("epoch")
        if kind == "reset":
            fields = {
                "topic": row.topic,
                "partition": str(row.partition),
                "new-offset": str(row.new_offset),
            }
        rows.append(fields)
    return expected_table | {"rows": rows}


@pytest.mark.skipif(not SAMPLES, reason="needs ../shared/fixtures/describe")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_published_samples_are_parsed(sample):
    expected = json.loads((sample.parent / "expected.json").read_text())[sample.name]
    parsed = parse_text(sample.read_text(), name=sample.name)
    notices = [{"kind": "notice", notice.kind: notice.group} for notice in parsed.notices]
    assert [*notices, *map(expected_form, parsed.tables)] == expected
