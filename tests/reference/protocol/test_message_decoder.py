"""Encoding and decoding of records: every version, damaged bytes, recorded vectors."""

import json
import re
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.record_encoder import (
    array,
    blob,
    encode_message,
    encode_record,
    encode_subscription,
    group_epoch,
    integer,
    tags,
    target_assignment,
    text,
)
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    GroupMetadata,
    JoinRequest,
    MemberMetadata,
    OffsetCommit,
    SupportedProtocol,
)
from kassay.reference.protocol.message_decoder import (
    ASSIGNMENT,
    RECORD_SCHEMAS,
    SUBSCRIPTION,
    CorruptRecordError,
    Field,
    Schema,
    decode,
    decode_message,
)
from tests.stored_cases import stored_cases

INT32 = st.integers(-(2**31), 2**31 - 1)


def values(fields: tuple[Field, ...], version: int):
    return st.fixed_dictionaries({f.name: _value(f, version) for f in fields})


def _value(field: Field, version: int):
    if not field.since <= version <= field.until:
        return st.just([] if isinstance(field.type, tuple) else field.default)
    if isinstance(field.type, tuple):
        return st.lists(values(field.type, version), max_size=3)
    plain = {
        "int8": st.integers(-128, 127),
        "int32": INT32,
        "int64": st.integers(-(2**63), 2**63 - 1),
        "string": st.text(max_size=8),
        "[]string": st.lists(st.text(max_size=5), max_size=3),
        "[]int32": st.lists(INT32, max_size=4),
        "bytes": st.binary(max_size=8),
        "uuid": st.uuids(),
    }[field.type]
    return plain | st.none() if field.nullable else plain


SCHEMAS = (
    *dict.fromkeys(schema.value for schema in RECORD_SCHEMAS.values()),
    SUBSCRIPTION,
    ASSIGNMENT,
)
VERSIONS = [
    pytest.param(schema, version, id=f"{schema.name} {version}")
    for schema in SCHEMAS
    for version in range(schema.newest + 1)
]
# Some clients end a subscription after the user data.
SHORT_SUBSCRIPTION = Schema("short subscription", 3, SUBSCRIPTION.fields[: SUBSCRIPTION.required])


@pytest.mark.parametrize(("schema", "version"), VERSIONS)
@given(data=st.data())
@settings(max_examples=30)
def test_every_version_survives_a_round_trip_and_truncation_is_an_error(
    schema, version, data
) -> None:
    value = data.draw(values(schema.fields, version))
    encoded = encode_message(schema, version, value)
    assert _with_lists(decode_message(schema, encoded)) == value | {"version": version}
    complete = len(encoded)
    if schema is SUBSCRIPTION:
        complete = len(encode_message(SHORT_SUBSCRIPTION, version, value))
    cut = data.draw(st.integers(0, complete - 1))
    with pytest.raises(CorruptRecordError):
        decode_message(schema, encoded[:cut])
    with pytest.raises(CorruptRecordError, match="expected no bytes after the last field, got 1"):
        decode_message(schema, encoded + b"\0")


def _with_lists(value):
    if isinstance(value, dict):
        return {key: _with_lists(each) for key, each in value.items()}
    return [_with_lists(each) for each in value] if isinstance(value, tuple | list) else value


def test_unknown_tagged_fields_are_skipped() -> None:
    schema = RECORD_SCHEMAS[3].value
    encoded = integer(0, "h") + integer(9, "i") + tags([(77, b"later")])
    assert decode_message(schema, encoded) == {"epoch": 9, "metadata_hash": 0, "version": 0}


@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
def test_decoding_any_bytes_returns_a_record_or_raises_corrupt_record_error(key, value) -> None:
    try:
        record = decode(key, value)
    except CorruptRecordError:
        return
    assert record.kind == int.from_bytes(key[:2], "big")


def test_a_subscription_of_a_newer_version_is_decoded_as_the_newest_known() -> None:
    subscription = ConsumerSubscription(
        ("t",), owned=Partitions.of([("t", 1)]), generation=4, rack="r", user_data=None
    )
    newer = integer(9, "h") + encode_subscription(subscription)[2:] + b"later fields"
    assert decode_message(SUBSCRIPTION, newer) == {
        "topics": ["t"],
        "user_data": None,
        "owned": [{"topic": "t", "partitions": [1]}],
        "generation": 4,
        "rack": "r",
        "version": 9,
    }


def test_a_subscription_without_owned_partitions_is_decoded() -> None:
    encoded = encode_message(SHORT_SUBSCRIPTION, 1, {"topics": ["t"], "user_data": None})
    found = decode_message(SUBSCRIPTION, encoded)
    assert (found["topics"], found["owned"], found["generation"]) == (["t"], (), -1)


def test_records_of_groups_are_decoded() -> None:
    commit = OffsetCommit("g", TopicPartition("t", 3), offset=41, timestamp=7)
    assert decode(*encode_record(commit)).value["offset"] == 41
    subscription = ConsumerSubscription(
        ("t",), owned=Partitions.of([]), generation=-1, rack=None, user_data=None
    )
    member = MemberMetadata(
        JoinRequest("m", (SupportedProtocol("range", subscription),), "c", "i", 2, 1),
        Partitions.of([("t", 0), ("t", 1)]),
    )
    group = GroupMetadata("g", "consumer", 5, "range", "m", 99, (member,))
    [found] = decode(*encode_record(group)).value["members"]
    assert found["subscription"]["topics"] == ["t"]
    assert found["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 1]}]
    topic = uuid.UUID(int=5)
    target = target_assignment("g", "m", ((topic, (2, 0)),))
    record = decode(*encode_record(target))
    assert record.key == {"group": "g", "member_id": "m"}
    assert record.value["assigned"] == [{"topic_id": topic, "partitions": [2, 0]}]
    epoch = group_epoch("g", 3, 17)
    assert decode(*encode_record(epoch)).value == {"epoch": 3, "metadata_hash": 17, "version": 0}


def test_metadata_of_groups_with_other_protocol_types_stay_encoded() -> None:
    key = integer(2, "h") + text("connect")
    member = b"".join(map(text, ("m", "c", "/h"))) + integer(9, "i")
    value = b"".join(
        (
            integer(0, "h"),
            text("connect"),
            integer(1, "i"),
            text("sessioned"),
            text("m"),
            array([member + blob(b"\1") + blob(b"\2\3")]),
        )
    )
    [found] = decode(key, value).value["members"]
    assert found["subscription"] == b"\1"
    assert found["assignment"] == b"\2\3"


def test_record_types_of_other_groups_are_not_errors() -> None:
    assert decode(integer(11, "h") + text("share"), b"anything").key == {}
    with pytest.raises(CorruptRecordError, match="the record type must be at least 0, got -1"):
        decode(integer(-1, "h"), None)


# The first vectors are those of the tests of Burrow, which reads these records too.
@pytest.mark.parametrize(("name", "key", "value", "expected"), stored_cases("record_vectors"))
def test_vectors_have_their_fields_or_errors(name, key, value, expected) -> None:
    if isinstance(expected, str):
        with pytest.raises(CorruptRecordError, match=re.escape(expected)):
            decode(bytes.fromhex(key), bytes.fromhex(value))
        return
    record = decode(bytes.fromhex(key), bytes.fromhex(value))
    found = json.dumps({**record.key, **record.value}, default=bytes.hex)
    assert json.loads(found) == expected, name
