"""Commits told by the column are those that decoding takes, whatever their neighbours."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kassay.experiments.history.offset_commits import is_complete_batch, plain_list
from kassay.experiments.history.stages import order_of
from kassay.reference.protocol import primitive_types as wire
from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_codec import decode, decode_message
from kassay.reference.protocol.record_schemas import OFFSET_COMMIT
from tests.experiments.history.lives import decode_rows

KEY = bytes.fromhex("0001 0001 67 0001 74 00000002")


def commit(version: int, text: str | None, *, tagged: bool = False) -> bytes:
    compact = version >= 4
    return b"".join(
        (
            wire.integer(version, "h"),
            wire.integer(-7, "q"),
            wire.integer(5, "i") if version >= 3 else b"",
            wire.text(text, compact=compact),
            wire.integer(-1, "q"),
            wire.integer(9, "q") if version == 1 else b"",
            wire.tags([(0, b"later")] if tagged else ()) if compact else b"",
        )
    )


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    raw = bytearray(commit(draw(st.integers(0, 4)), draw(st.text(max_size=4))))
    for _ in range(draw(st.integers(0, 2))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.sampled_from([0, 1, 2, 3, 4, 127, 255]))
    return bytes(raw[: draw(st.integers(0, len(raw)))]) + draw(st.binary(max_size=2))


VALUES = st.none() | damaged() | st.binary(max_size=40)


def readable(value: bytes | None) -> bool:
    try:
        return value is None or bool(decode_message(OFFSET_COMMIT, value))
    except CorruptRecordError:
        return False


@given(values=st.lists(VALUES, max_size=12), skipped=st.integers(0, 3))
@example(values=[b""], skipped=0)
@example(values=[None], skipped=0)
@example(values=[commit(0, "x")[:-1], commit(0, "x")], skipped=1)
def test_what_is_surely_whole_is_readable(values: list[bytes | None], skipped: int) -> None:
    column = pa.array(values, pa.binary()).slice(skipped)
    assert plain_list(column) == values[skipped:]
    for value, sure in zip(values[skipped:], is_complete_batch(column).tolist(), strict=True):
        assert readable(value) or not sure


@pytest.mark.parametrize("version", range(5))
def test_commits_as_brokers_write_them_are_surely_whole(version: int) -> None:
    values = [commit(version, text) for text in ("", "a", "consumer-1/host", "x" * 120)]
    assert is_complete_batch(pa.array(values)).all()
    rare = [commit(version, text) for text in ("é", "", "long" * 9)]
    assert is_complete_batch(pa.array(rare)).tolist() == [False, True, True]


def test_tagged_fields_and_long_texts_of_the_newest_version_are_looked_at_closely() -> None:
    values = [commit(4, "a", tagged=True), commit(4, "x" * 200), commit(4, None)]
    assert is_complete_batch(pa.array(values)).tolist() == [False, False, False]
    assert [readable(value) for value in values] == [True, True, False]


@given(
    records=st.lists(
        st.tuples(st.sampled_from([KEY, KEY[:-1] + b"\3", KEY[:-1], None]), VALUES), max_size=20
    ),
    at_once=st.integers(1, 5),
)
def test_columns_say_what_records_say_one_by_one(records: list, at_once: int) -> None:
    raw = [
        {"key": key, "value": value, "partition": 0, "offset": n, "timestamp": 5}
        for n, (key, value) in enumerate(records)
    ]
    newest, counted, errors = {}, {}, {}
    for row in raw:
        try:
            newest[row["key"]] = (decode(row["key"], row["value"]), row["offset"])
            counted[row["key"]] = counted.get(row["key"], 0) + 1
        except CorruptRecordError as error:
            errors[row["offset"]] = str(error)
    found = list(decode_rows(raw, at_once=at_once))
    assert {row["offset"]: row["error"] for row in found if row["error"]} == errors
    commits = {
        row["topic_partition"]: (row["offset"], row["records"]) for row in found if row["kind"]
    }
    assert commits == {
        record.key["partition"]: (offset, counted[key]) for key, (record, offset) in newest.items()
    }


def test_without_offsets_the_latest_commit_is_the_newest() -> None:
    assert order_of((0, 7, 3)) == 7
    assert order_of((0, None, 3)) == 3
    assert order_of((0, None, None)) == 0
