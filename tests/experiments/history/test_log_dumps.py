"""Records are read from the output of kafka-dump-log."""

from __future__ import annotations

import base64
import json

import pytest

from benchmarks.record_encoder import encode_sticky_user_data
from kassay.experiments.history.group_records import from_row, read_dump
from kassay.experiments.history.recorded_rebalances import generation_rows
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.group_messages import StickyUserData
from tests.stored_cases import stored_cases

HEAD = "| offset: {offset} CreateTime: {time} keySize: 9 valueSize: 70 sequence: -1 headerKeys: []"


def line(key: object, payload: object, *, offset: int = 5, time: int = 60) -> str:
    shown = [each if isinstance(each, str) else json.dumps(each) for each in (key, payload)]
    return f"{HEAD.format(offset=offset, time=time)} key: {shown[0]} payload: {shown[1]}"


MEMBER = stored_cases("dumped_member")
GROUP = {
    "protocolType": "consumer",
    "generation": 4,
    "protocol": "range",
    "leader": "m",
    "currentStateTimestamp": 99,
    "members": [MEMBER],
}


def read_line(text: str, name: str = "dump.txt"):
    [row] = read_dump(text.splitlines(), name=name)
    return row


def read_record(text: str, name: str = "dump.txt"):
    return from_row(read_line(text, name))


def test_group_metadata_contains_subscriptions_and_assignments() -> None:
    result = read_record(
        line({"type": "2", "data": {"group": "g"}}, {"version": "3", "data": GROUP}),
        "/x/__consumer_offsets-12/00.log.txt",
    )
    assert (result.partition, result.offset, result.timestamp) == (12, 5, 60)
    assert result.key == {"group": "g"}
    value = result.value
    assert (value["generation"], value["protocol"], value["timestamp"]) == (4, "range", 99)
    [member] = value["members"]
    assert member["subscription"]["topics"] == ["t"]
    assert member["subscription"]["owned"] == [{"topic": "t", "partitions": [0]}]
    assert member["subscription"]["rack"] == "r"
    assert member["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 2]}]


def test_tombstones_other_record_types_and_failures_are_distinguished() -> None:
    deleted = read_record(line({"type": "2", "data": {"group": "g"}}, "<DELETE>"))
    assert deleted.value is None
    other = read_line(
        f"{HEAD.format(offset=1, time=2)} key: Unknown record type 11 at offset 1, skipping."
    )
    assert (other["kind"], other["payload"]) == (11, None)
    failed = read_line(
        f"{HEAD.format(offset=1, time=2)} key: Error at offset 1, skipping. Bad bytes"
    )
    assert failed["error"] == "dump.txt:1: kafka-dump-log.sh cannot decode the record: Bad bytes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line("\x00\x01\x00\x01g", "\x00\x03"), "run kafka-dump-log.sh of Kafka 4.0 or later"),
        (line("group_metadata::group=g", {"generationId": 2}), "Kafka 4.0 or later"),
        (line({"type": "2", "data": {"group": "g"}}, '{"version": "3", "da'), "dump.txt:1: "),
        (line({"type": "2", "data": {}}, "<DELETE>"), "the record lacks the field group"),
        (
            f"{HEAD.format(offset=1, time=2)} key: " + '{"type":"2","data":{"group":"g"}}',
            "truncated",
        ),
    ],
)
def test_damaged_lines_become_errors(text: str, message: str) -> None:
    result = read_line(text)
    assert result["payload"] is None
    assert message in result["error"]


def test_subscriptions_and_assignments_in_base_64_are_decoded() -> None:
    # As kafka-go writes them: version 1, and no field after the user data.
    subscription = bytes.fromhex("0001 00000001 0001 74 00000000")
    assignment = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000002 00000000")
    member = MEMBER | {
        "subscription": base64.b64encode(subscription).decode(),
        "assignment": base64.b64encode(assignment).decode(),
    }
    payload = {"version": "3", "data": GROUP | {"members": [member]}}
    [decoded] = read_record(line({"type": "2", "data": {"group": "g"}}, payload)).value["members"]
    assert decoded["subscription"]["topics"] == ["t"]
    assert decoded["assignment"]["assigned"] == [{"topic": "t", "partitions": [0, 2]}]


def test_the_user_data_of_sticky_members_contain_generation_and_owned_partitions() -> None:
    data = encode_sticky_user_data(StickyUserData(Partitions.of([("t", 3)]), 7))
    subscription = MEMBER["subscription"] | {"userData": base64.b64encode(data).decode()}
    group = GROUP | {"protocol": "sticky", "members": [MEMBER | {"subscription": subscription}]}
    payload = {"version": "3", "data": group}
    row = read_line(line({"type": "2", "data": {"group": "g"}}, payload))
    [decoded] = from_row(row).value["members"]
    assert decoded["subscription"]["user_data"] == {
        "previous_assignment": [{"topic": "t", "partitions": [3]}],
        "generation": 7,
    }
    [member] = next(generation_rows([row], topic_names={}))["members"]
    assert member["claimed"] == (("t", (3,)),)
    assert member["claimed_generation"] == 7
