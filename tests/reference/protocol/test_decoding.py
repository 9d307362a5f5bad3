"""Every version of every record decodes, and damage is told from it."""

import json
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol import consumer_records
from kassay.reference.protocol import primitive_types as wire
from kassay.reference.protocol.classic_records import GroupMetadata, MemberMetadata, OffsetCommit
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription
from kassay.reference.protocol.decoding import decode, read_versioned
from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_schemas import ASSIGNMENT, KEYS, SUBSCRIPTION, Field, Schema


def encode(schema: Schema, version: int, value: dict) -> bytes:
    """Write what the tables describe, knowing nothing of how they are read."""
    compact = version >= schema.flexible
    return wire.integer(version, "h") + _struct(schema.fields, version, value, compact=compact)


def _struct(fields: tuple[Field, ...], version: int, value: dict, *, compact: bool) -> bytes:
    parts = [
        _one(f, version, value[f.name], compact=compact)
        for f in fields
        if f.since <= version <= f.until
    ]
    return b"".join(parts) + (wire.tags([(77, b"later")]) if compact else b"")


def _one(field: Field, version: int, value, *, compact: bool) -> bytes:
    if isinstance(field.kind, tuple):
        items = (_struct(field.kind, version, each, compact=compact) for each in value)
        return wire.array(items, compact=compact)
    widths = {"int8": "b", "int32": "i", "int64": "q"}
    if field.kind in widths:
        return wire.integer(value, widths[field.kind])
    match field.kind:
        case "text":
            return wire.text(value, compact=compact)
        case "texts":
            return wire.array((wire.text(v, compact=compact) for v in value), compact=compact)
        case "int32s":
            return wire.array((wire.integer(v, "i") for v in value), compact=compact)
        case "bytes":
            return wire.blob(value, compact=compact)
        case "uuid":
            return value.bytes
    raise AssertionError(field.kind)


INT32 = st.integers(-(2**31), 2**31 - 1)


def values(fields: tuple[Field, ...], version: int):
    return st.fixed_dictionaries({f.name: _value(f, version) for f in fields})


def _value(field: Field, version: int):
    if not field.since <= version <= field.until:
        return st.just([] if isinstance(field.kind, tuple) else field.default)
    if isinstance(field.kind, tuple):
        return st.lists(values(field.kind, version), max_size=3)
    plain = {
        "int8": st.integers(-128, 127),
        "int32": INT32,
        "int64": st.integers(-(2**63), 2**63 - 1),
        "text": st.text(max_size=8),
        "texts": st.lists(st.text(max_size=5), max_size=3),
        "int32s": st.lists(INT32, max_size=4),
        "bytes": st.binary(max_size=8),
        "uuid": st.uuids(),
    }[field.kind]
    return plain | st.none() if field.nullable else plain


FORMATS = [
    (schema, version)
    for schema in (*dict.fromkeys(schema for _, schema in KEYS.values()), SUBSCRIPTION, ASSIGNMENT)
    for version in range(schema.newest + 1)
]


# Some clients end a subscription early: what follows the user data may be missing.
_START = Schema("start of a subscription", 3, SUBSCRIPTION.fields[: SUBSCRIPTION.required])


@pytest.mark.parametrize(
    ("schema", "version"), FORMATS, ids=[f"{schema.name} {version}" for schema, version in FORMATS]
)
@given(data=st.data())
@settings(max_examples=30)
def test_what_is_written_is_read_and_no_part_of_it(schema, version, data) -> None:
    value = data.draw(values(schema.fields, version))
    written = encode(schema, version, value)
    read = read_versioned(schema, written)
    assert _listed(read) == value | {"version": version}
    cut = data.draw(st.integers(0, len(written) - 1))
    if schema is SUBSCRIPTION and cut >= len(encode(_START, version, value)):
        return
    with pytest.raises(CorruptRecordError):
        read_versioned(schema, written[:cut])
    with pytest.raises(CorruptRecordError, match="1 bytes too many"):
        read_versioned(schema, written + b"\0")


def _listed(value):
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, tuple | list) else value


@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
def test_any_bytes_give_a_record_or_the_error_of_one(key, value) -> None:
    try:
        decode(key, value)
    except CorruptRecordError:
        return


@pytest.mark.parametrize(
    "changed", ["version", "null array", "null text", "bad text", "huge array", "null bytes"]
)
def test_damage_is_located(changed: str) -> None:
    group = wire.integer(2, "h") + wire.text("g")
    head = wire.integer(3, "h") + wire.text("consumer") + wire.integer(1, "i")
    rest = wire.text("range") + wire.text("m") + wire.integer(5, "q")
    member = b"".join(map(wire.text, ("m", None, "c", "/h"))) + wire.integer(1, "i") * 2
    value, says = {
        "version": (b"\0\5" + head[2:] + rest, "group metadata: version 5 is not known"),
        "null array": (head + rest + b"\xff" * 4, "members: an array of -1"),
        "null text": (wire.integer(3, "h") + b"\xff\xff", "protocol_type: a string is null"),
        "bad text": (wire.integer(3, "h") + b"\0\1\xff", "protocol_type: 'utf-8'"),
        "huge array": (head + rest + b"\x7f\xff\xff\xff", "members: an array of 2147483647"),
        "null bytes": (
            head + rest + wire.integer(1, "i") + member + b"\xff" * 8,
            "members: subscription: bytes are null",
        ),
    }[changed]
    with pytest.raises(CorruptRecordError, match=says):
        decode(group, value)


def test_a_newer_subscription_is_read_as_the_newest_known() -> None:
    subscription = ConsumerSubscription(
        ("t",), owned=Partitions.of([("t", 1)]), generation=4, rack="r", memory=None
    )
    newer = wire.integer(9, "h") + subscription.encode()[2:] + b"what is to come"
    assert read_versioned(SUBSCRIPTION, newer) == {
        "topics": ["t"],
        "user_data": None,
        "owned": [{"topic": "t", "partitions": [1]}],
        "generation": 4,
        "rack": "r",
        "version": 9,
    }


def test_a_subscription_may_end_before_what_is_owned() -> None:
    written = encode(_START, 1, {"topics": ["t"], "user_data": None})
    found = read_versioned(SUBSCRIPTION, written)
    assert (found["topics"], found["owned"], found["generation"]) == (["t"], (), -1)


def test_what_the_simulated_coordinator_writes_is_read() -> None:
    commit = OffsetCommit("g", TopicPartition("t", 3), offset=41, moment=7)
    assert decode(commit.key, commit.value).value["offset"] == 41
    subscription = ConsumerSubscription(
        ("t",), owned=Partitions.of([]), generation=-1, rack=None, memory=None
    )
    member = MemberMetadata(
        "m", "i", "c", "/h", 1, 2, subscription, Partitions.of([("t", 0), ("t", 1)])
    )
    group = GroupMetadata("g", "consumer", 5, "range", "m", 99, (member,))
    [found] = decode(group.key, group.value).value["members"]
    assert found["subscription"]["topics"] == ["t"]
    assert found["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 1]}]
    topic = uuid.UUID(int=5)
    target = consumer_records.target_assignment("g", "m", ((topic, (2, 0)),))
    record = decode(target.key, target.value)
    assert record.key == {"group": "g", "member_id": "m"}
    assert record.value["assigned"] == [{"topic_id": topic, "partitions": [2, 0]}]
    epoch = consumer_records.group_epoch("g", 3, 17)
    assert decode(epoch.key, epoch.value).value == {"epoch": 3, "version": 0}


def test_groups_that_are_not_of_consumers_keep_their_own_bytes() -> None:
    key = wire.integer(2, "h") + wire.text("connect")
    member = b"".join(map(wire.text, ("m", "c", "/h"))) + wire.integer(9, "i")
    value = b"".join(
        (
            wire.integer(0, "h"),
            wire.text("connect"),
            wire.integer(1, "i"),
            wire.text("sessioned"),
            wire.text("m"),
            wire.array([member + wire.blob(b"\1") + wire.blob(b"\2\3")]),
        )
    )
    [found] = decode(key, value).value["members"]
    assert found["subscription"] == b"\1"
    assert found["assignment"] == b"\2\3"


def test_kinds_of_other_groups_are_told_from_damage() -> None:
    assert not decode(wire.integer(11, "h") + wire.text("share"), b"anything").known
    with pytest.raises(CorruptRecordError, match="key: type -1"):
        decode(wire.integer(-1, "h"), None)


# ---- Recorded vectors -------------------------------------------------------


@pytest.fixture
def vectors(shared_fixtures: Path) -> dict:
    path = shared_fixtures / "offsets" / "burrow-binary-vectors.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} beside this checkout")
    return json.loads(path.read_text())


def _pair(vector: dict) -> tuple[bytes, bytes]:
    """Key and value; vectors give keys without the type, which the kind or the key tells."""
    body = bytes.fromhex(vector.get("key_hex", "000167"))
    offsets = "Offset" in vector.get("kind", "") or vector["hex"].find("74657374646174") >= 0
    if "Offset" in vector.get("kind", "") and "key_hex" not in vector:
        body = wire.text("g") + wire.text("t") + wire.integer(0, "i")
    prefix = b"" if body.startswith(b"\0\3\0\t") else b"\0\1" if offsets else b"\0\2"
    return prefix + body, bytes.fromhex(vector["hex"])


def _flat(record) -> dict:
    found = {**record.key, **record.value}
    names = {
        "protocolType": "protocol_type",
        "currentStateTimestamp": "timestamp",
        "leaderEpoch": "leader_epoch",
        "commitTimestamp": "commit_timestamp",
    }
    flat = {name: found[ours] for name, ours in names.items() if ours in found} | found
    for member in found.get("members", ()):
        flat |= {
            "members": len(found["members"]),
            "memberId": member["member_id"],
            "groupInstanceId": member["instance_id"],
            "clientId": member["client_id"],
            "clientHost": member["client_host"],
            "rebalanceTimeout": member["rebalance_timeout"],
            "sessionTimeout": member["session_timeout"],
            "assignment": {
                each["topic"]: each["partitions"] for each in member["assignment"]["assigned"]
            },
        }
    return flat


def test_recorded_vectors_decode_to_their_stated_fields(vectors: dict) -> None:
    for vector in vectors["good"]:
        key, value = _pair(vector)
        if "Burrow" in vector["kind"].title():
            with pytest.raises(CorruptRecordError, match="tagged fields"):
                decode(key, value)
            value += b"\0"
        flat = _flat(decode(key, value))
        if flat.get("leaderEpoch") == -1:
            flat.pop("leaderEpoch")
        stated = {name: want for name, want in vector["expect"].items() if name != "note"}
        assert {name: flat[name] for name in stated} == stated, vector["name"]


def test_damaged_vectors_give_errors(vectors: dict) -> None:
    for vector in vectors["bad_truncated_or_bad_version"]:
        key, value = _pair(vector)
        if value.startswith(b"\0\2") and b"testdata" in value:
            # Some tools know no version 2; the published schema does, and it is whole.
            assert decode(key, value).value["offset"] == 8372
            continue
        with pytest.raises(CorruptRecordError):
            decode(key, value)
