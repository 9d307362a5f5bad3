"""Records are read from the output of kafka-dump-log."""

from __future__ import annotations

import base64
import json

import pytest

from kassay.experiments.history.group_records import record_row
from kassay.experiments.history.history_rows import generation_rows
from kassay.experiments.history.log_dumps import read_dump
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.member_messages import StickyUserData, encode_sticky_user_data

HEAD = "| offset: {offset} CreateTime: {time} keySize: 9 valueSize: 70 sequence: -1 headerKeys: []"


def line(key: object, payload: object, *, offset: int = 5, time: int = 60) -> str:
    shown = [each if isinstance(each, str) else json.dumps(each) for each in (key, payload)]
    return f"{HEAD.format(offset=offset, time=time)} key: {shown[0]} payload: {shown[1]}"


MEMBER = {
    "memberId": "m",
    "groupInstanceId": None,
    "clientId": "c",
    "clientHost": "/h",
    "rebalanceTimeout": 1,
    "sessionTimeout": 2,
    "subscription": {
        "topics": ["t"],
        "userData": None,
        "ownedPartitions": [{"topic": "t", "partitions": [0]}],
        "generationId": 3,
        "rackId": "r",
    },
    "assignment": {"assignedPartitions": [{"topic": "t", "partitions": [0, 2]}], "userData": None},
}
GROUP = {
    "protocolType": "consumer",
    "generation": 4,
    "protocol": "range",
    "leader": "m",
    "currentStateTimestamp": 99,
    "members": [MEMBER],
}


def read_line(text: str, name: str = "dump.txt"):
    [result] = read_dump(text.splitlines(), name=name)
    return result


def test_group_metadata_contains_subscriptions_and_assignments() -> None:
    result = read_line(
        line({"type": "2", "data": {"group": "g"}}, {"version": "3", "data": GROUP}),
        "/x/__consumer_offsets-12/00.log.txt",
    )
    assert (result.partition, result.offset, result.timestamp) == (12, 5, 60)
    assert result.record.key == {"group": "g"}
    value = result.record.value
    assert (value["generation"], value["protocol"], value["timestamp"]) == (4, "range", 99)
    [member] = value["members"]
    assert member["subscription"]["topics"] == ["t"]
    assert member["subscription"]["owned"] == [{"topic": "t", "partitions": [0]}]
    assert member["subscription"]["rack"] == "r"
    assert member["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 2]}]


def test_tombstones_other_record_types_and_failures_are_distinguished() -> None:
    deleted = read_line(line({"type": "2", "data": {"group": "g"}}, "<DELETE>"))
    assert deleted.record.value is None
    other = read_line(
        f"{HEAD.format(offset=1, time=2)} key: Unknown record type 11 at offset 1, skipping."
    )
    assert (other.record.kind, other.record.known) == (11, False)
    failed = read_line(
        f"{HEAD.format(offset=1, time=2)} key: Error at offset 1, skipping. Bad bytes"
    )
    assert failed.record is None
    assert failed.error == "dump.txt:1: the tool cannot decode the record: Bad bytes"


def test_output_of_older_releases_is_read() -> None:
    payload = {"protocolType": "consumer", "protocol": "range", "generationId": 2}
    result = read_line(
        line("group_metadata::group=g", payload | {"assignment": "{a=[t-0, u-x-1],b=[]}"})
    )
    assert result.record.value["generation"] == 2
    assert [(m["member_id"], m["assignment"]) for m in result.record.value["members"]] == [
        (
            "a",
            {"assigned": [{"topic": "t", "partitions": [0]}, {"topic": "u-x", "partitions": [1]}]},
        ),
        ("b", {"assigned": []}),
    ]
    commit = read_line(line("offset_commit::group=g,partition=a-b-3", "offset=17"))
    assert commit.record.key == {"group": "g", "topic": "a-b", "partition": 3}
    assert commit.record.value["offset"] == 17


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line("\x00\x01\x00\x01g", "\x00\x03"), "the dump does not contain the bytes"),
        (line({"type": "2", "data": {"group": "g"}}, '{"version": "3", "da'), "dump.txt:1: "),
        (line({"type": "2", "data": {}}, "<DELETE>"), "the field group is missing"),
        (
            f"{HEAD.format(offset=1, time=2)} key: " + '{"type":"2","data":{"group":"g"}}',
            "truncated",
        ),
    ],
)
def test_damaged_lines_become_errors(text: str, message: str) -> None:
    result = read_line(text)
    assert result.record is None
    assert message in result.error


def test_subscriptions_and_assignments_in_base_64_are_decoded() -> None:
    # As kafka-go writes them: version 1, and no field after the user data.
    subscription = bytes.fromhex("0001 00000001 0001 74 00000000")
    assignment = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000002 00000000")
    member = MEMBER | {
        "subscription": base64.b64encode(subscription).decode(),
        "assignment": base64.b64encode(assignment).decode(),
    }
    payload = {"version": "3", "data": GROUP | {"members": [member]}}
    [decoded] = read_line(line({"type": "2", "data": {"group": "g"}}, payload)).record.value[
        "members"
    ]
    assert decoded["subscription"]["topics"] == ["t"]
    assert decoded["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 2]}]


def test_the_user_data_of_sticky_members_contain_generation_and_owned_partitions() -> None:
    data = encode_sticky_user_data(StickyUserData(Partitions.of([("t", 3)]), 7))
    subscription = MEMBER["subscription"] | {"userData": base64.b64encode(data).decode()}
    group = GROUP | {"protocol": "sticky", "members": [MEMBER | {"subscription": subscription}]}
    payload = {"version": "3", "data": group}
    record = read_line(line({"type": "2", "data": {"group": "g"}}, payload)).record
    [decoded] = record.value["members"]
    assert decoded["subscription"]["user_data"] == {
        "previous_assignment": [{"topic": "t", "partitions": [3]}],
        "generation": 7,
    }
    rows = generation_rows(
        [record_row(record, {"partition": 0, "offset": 1, "timestamp": 2})], topic_names={}
    )
    [member] = next(rows)["members"]
    assert member["claimed"] == [{"topic": "t", "partitions": [3]}]
    assert member["claimed_generation"] == 7
