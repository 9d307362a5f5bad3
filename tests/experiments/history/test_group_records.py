"""The check of whole columns accepts only commits that decoding accepts."""

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from kassay.experiments.history.group_records import are_valid_commits, to_list
from kassay.reference.protocol.record_codec import (
    CorruptRecordError,
    decode,
    decode_message,
    integer,
    tags,
    text,
)
from kassay.reference.protocol.record_schemas import OFFSET_COMMIT
from tests.experiments.history.sample_records import decode_rows, raw_rows, sample_rows

KEY = bytes.fromhex("0001 0001 67 0001 74 00000002")


def commit(version: int, metadata: str | None, *, tagged: bool = False) -> bytes:
    compact = version >= 4
    return b"".join(
        (
            integer(version, "h"),
            integer(-7, "q"),
            integer(5, "i") if version >= 3 else b"",
            text(metadata, compact=compact),
            integer(-1, "q"),
            integer(9, "q") if version == 1 else b"",
            tags([(0, b"later")] if tagged else ()) if compact else b"",
        )
    )


@st.composite
def damaged_commits(draw: st.DrawFn) -> bytes:
    raw = bytearray(commit(draw(st.integers(0, 4)), draw(st.text(max_size=4))))
    for _ in range(draw(st.integers(0, 2))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.sampled_from([0, 1, 2, 3, 4, 127, 255]))
    return bytes(raw[: draw(st.integers(0, len(raw)))]) + draw(st.binary(max_size=2))


VALUES = st.none() | damaged_commits() | st.binary(max_size=40)


def is_decodable(value: bytes | None) -> bool:
    try:
        return value is None or bool(decode_message(OFFSET_COMMIT, value))
    except CorruptRecordError:
        return False


@given(values=st.lists(VALUES, max_size=12), skipped=st.integers(0, 3))
@example(values=[b""], skipped=0)
@example(values=[None], skipped=0)
@example(values=[commit(0, "x")[:-1], commit(0, "x")], skipped=1)
def test_accepted_commits_are_decodable(values: list[bytes | None], skipped: int) -> None:
    column = pa.array(values, pa.binary()).slice(skipped)
    assert to_list(column) == values[skipped:]
    accepted = [
        value
        for value, is_valid in zip(values[skipped:], are_valid_commits(column), strict=True)
        if is_valid
    ]
    assert all(map(is_decodable, accepted))


@given(
    messages=st.lists(
        st.tuples(st.sampled_from([KEY, KEY[:-1] + b"\3", KEY[:-1], None]), VALUES), max_size=20
    ),
    batch_size=st.integers(1, 5),
)
def test_batches_give_the_same_rows_as_single_records(messages: list, batch_size: int) -> None:
    raw = raw_rows(messages)
    newest, counts, errors = {}, {}, {}
    for row in raw:
        try:
            newest[row["key"]] = (decode(row["key"], row["value"]), row["offset"])
            counts[row["key"]] = counts.get(row["key"], 0) + 1
        except CorruptRecordError as error:
            errors[row["offset"]] = str(error)
    rows = list(decode_rows(raw, batch_size=batch_size))
    assert {row["offset"]: row["error"] for row in rows if row["error"]} == errors
    assert {
        row["topic_partition"]: (row["offset"], row["records"]) for row in rows if row["kind"]
    } == {
        record.key["partition"]: (offset, counts[key]) for key, (record, offset) in newest.items()
    }


def test_only_the_newest_commit_of_a_partition_is_kept() -> None:
    raw = sample_rows("g", "range", seed=1, steps=6)
    rows = [row for row in decode_rows(reversed(raw)) if row["kind"] == 1]
    assert [row["records"] for row in rows] == [6, 6, 6]
    assert all('"offset":60' in row["payload"] for row in rows)


def test_a_damaged_record_becomes_an_error_row_and_the_others_are_decoded() -> None:
    raw = sample_rows("g", "range", seed=1, steps=4)
    raw[4] = {**raw[4], "value": raw[4]["value"][:30]}
    rows = list(decode_rows(raw))
    [error] = [row for row in rows if row["error"]]
    assert error["offset"] == 4
    assert "group metadata" in error["error"]
    assert sum(row["records"] for row in rows) == len(raw)
