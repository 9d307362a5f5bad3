"""Rebalances in logs of brokers and clients, with messages as each release writes them."""

# ruff: noqa: E501 - messages are easier to compare with the sources in few lines

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from kassay.experiments.history.log_causes import cause_of, client_of
from kassay.experiments.history.log_files import log_files, summarise_logs
from kassay.experiments.history.log_messages import LogEvent, read_log
from kassay.experiments.history.log_rebalances import LogRebalance, rebalances_of_log
from kassay.reference.model.errors import InputError
from tests.conftest import ROOT
from tests.stored_cases import stored_cases

C1 = "billing-1-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01"
C2 = "billing-2-9c1fe0d1-3f67-4ac5-9d6b-7b1a6a6a2a02"
NEW = "billing-1-77777777-3f67-4ac5-9d6b-7b1a6a6a2a03"
UUID = "hJ9vBzHlQ9CkN6n4mQkZ8A"
SCALA = (
    "[2024-05-01 12:{0}] INFO [GroupCoordinator 1]: {1} (kafka.coordinator.group.GroupCoordinator)"
)
JAVA = (
    "[2024-05-01 12:{0}] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] {1} "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
CLIENT = (
    "2024-05-01T12:{0}+02:00  INFO 1 --- [main] o.a.k.c.c.internals.ConsumerCoordinator  : "
    "[Consumer clientId=billing-1, groupId=orders] {1}"
)
NATIVE = "%7|17145648{0}|CGRP|billing-1#consumer-1| [thrd:main]: {1}"


def log(layout: str, *lines: tuple[str, str]) -> list[bytes]:
    return [layout.format(time, text).encode() + b"\n" for time, text in lines]


def rebalances(lines: list[bytes]) -> list[LogRebalance]:
    return list(rebalances_of_log(read_log(lines, file="a.log")))


def event(layout: str, text: str) -> LogEvent:
    [found] = read_log(log(layout, ("00:00,000", text)), file="a.log")
    return found


LAYOUTS = {"broker": SCALA, "new broker": JAVA, "client": CLIENT, "librdkafka": NATIVE}
MESSAGES = [
    json.loads(line) for line in (ROOT / "tests/data/logs/messages.jsonl").read_text().splitlines()
]
"""The messages of each release, and the values that they contain."""


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["name"])
def test_messages_of_each_release_are_read(message: dict[str, Any]) -> None:
    expected = message["fields"]
    found = event(LAYOUTS.get(message["layout"], message["layout"]), message["text"])
    assert {key: getattr(found, key) for key in expected} == expected
    if "group" not in expected:
        assert found.group == "orders"


@pytest.mark.parametrize("line", stored_cases("other_log_lines"))
def test_other_lines_are_skipped(line: str) -> None:
    assert list(read_log([line.encode()], file="a.log")) == []


@pytest.mark.parametrize(("layout", "time"), stored_cases("layouts_of_log_times"))
def test_times_are_read_in_all_layouts(layout: str, time: int | None) -> None:
    text = "[GroupCoordinator 1]: Stabilized group orders generation 5 with 2 members"
    [found] = read_log([layout.format(text).encode()], file="a.log")
    assert (found.number, found.size, found.time) == (5, 2, time)


def test_times_without_a_date_continue_on_the_next_day() -> None:
    text = "{} INFO [GroupCoordinator 1]: Stabilized group orders generation 5"
    lines = [text.format(time).encode() for time in ("23:59:59.000", "00:00:01.000")]
    first, second = read_log(lines, file="a.log")
    assert first.time is not None
    assert second.time == first.time + 2_000


def preparing(time: str, old: int, reason: str, group: str = "orders") -> tuple[str, str]:
    text = f"Preparing to rebalance group {group} in state PreparingRebalance with old generation "
    return time, f"{text}{old} (__consumer_offsets-3) (reason: {reason})"


def stabilized(time: str, number: int, members: int, group: str = "orders") -> tuple[str, str]:
    text = f"Stabilized group {group} generation {number} (__consumer_offsets-3) with {members}"
    return time, f"{text} members"


def assigned(time: str, number: int, leader: str) -> tuple[str, str]:
    text = f"Assignment received from leader {leader} for group orders for generation {number}."
    return time, f"{text} The group has 2 members, 0 of which are static."


def joining(time: str, state: str, member: str) -> tuple[str, str]:
    text = f"Dynamic member with unknown member id joins group orders in {state} state. Created a"
    return time, f"{text} new member id {member} and request the member to rejoin with this id."


def adding(member: str) -> str:
    text = f"Adding new member {member} with group instance id None; client reason: need to re-join"
    return f"{text} with the given member-id"


JOIN_AND_CRASH = log(
    SCALA,
    joining("00:00,100", "Empty", C1),
    preparing("00:00,200", 0, adding(C1)),
    joining("00:01,000", "PreparingRebalance", C2),
    stabilized("00:03,200", 1, 2),
    assigned("00:03,700", 1, C1),
    ("10:00,000", f"Member {C1} in group orders has failed, removing it from the group"),
    preparing("10:00,001", 1, f"removing member {C1} on heartbeat expiration"),
    stabilized("10:02,000", 2, 1),
    preparing("10:02,001", 2, adding(NEW)),
    stabilized("10:04,000", 3, 2),
    assigned("10:04,001", 3, C2),
)


def test_joins_and_a_crash_of_a_classic_group() -> None:
    first, crash, again = rebalances(JOIN_AND_CRASH)
    assert (first.number, str(first.cause), first.joined) == (1, "join", [C1, C2])
    assert (first.not_stable_ms, first.members) == (3_500, 2)
    assert (crash.number, str(crash.cause), crash.expired) == (2, "session timeout", [C1])
    # It ends when the next one starts, without an assignment.
    assert (crash.member, crash.not_stable_ms) == (C1, 2_000)
    assert (again.number, str(again.cause), again.joined) == (3, "restart", [NEW])
    assert again.after_ms == 2_000


def test_the_client_reason_of_an_explicit_leave_is_the_cause() -> None:
    lines = log(
        JAVA,
        (
            "00:00,000",
            (
                f"[Group orders] Member {C1} has left group through explicit `LeaveGroup` request; "
                "client reason: consumer poll timeout has expired."
            ),
        ),
        preparing("00:00,001", 4, f"explicit `LeaveGroup` request for ({C1}) members."),
        ("00:00,002", "Group orders with generation 5 is now empty."),
    )
    [one] = rebalances(lines)
    assert (str(one.cause), one.timed_out, one.left, one.members) == ("poll timeout", [C1], [], 0)


def test_members_that_do_not_rejoin_have_timed_out() -> None:
    lines = log(
        SCALA,
        ("00:00,000", "Preparing to rebalance group g with old generation 4"),
        ("05:00,000", f"Group g removed dynamic members who haven't joined: Set({C1}, {C2})"),
        stabilized("05:00,000", 5, 3, "g"),
    )
    [one] = rebalances(lines)
    assert (one.timed_out, one.not_stable_ms) == ([C1, C2], 300_000)
    assert str(one.cause) == "unknown"


def test_epochs_of_the_consumer_protocol() -> None:
    lines = log(
        JAVA,
        ("00:00,000", "[GroupId g] Member a joins the consumer group using the consumer protocol."),
        ("00:00,001", "[GroupId g] Bumped group epoch to 2 with metadata hash 5."),
        ("00:00,002", ("[GroupId g] Computed a new target assignment for epoch 2 with 'uniform' "
         "assignor in 1ms.")),
        ("01:00,000", ("[GroupId g] Member a fenced from the group because the member session "
         "expired.")),
        ("01:02,000", ("[GroupId g] Computed a new target assignment for epoch 3 with 'uniform' "
         "assignor in 1ms.")),
        ("02:00,000", "[GroupId g] Member b updated its subscribed topics to: [x]."),
        ("02:00,001", "[GroupId g] Bumped group epoch to 4 with metadata hash 6."),
        ("02:00,100", ("[GroupId g] Member b new assignment state: epoch=4, previousEpoch=3, "
         "state=STABLE, assignedPartitions=[] and revokedPartitions=[].")),
        ("03:00,000", "[GroupId g] Computed new metadata hash: 7."),
        ("03:00,001", "[GroupId g] Bumped group epoch to 5 with metadata hash 7."),
    )  # fmt: skip
    found = rebalances(lines)
    assert [(one.number, str(one.cause)) for one in found] == [
        (2, "join"),
        (3, "session timeout"),
        (4, "subscription"),
        (5, "metadata"),
    ]
    # The partitions of a fenced member have no owner until the next epoch.
    assert [one.not_stable_ms for one in found[:3]] == [2, 2_000, 100]
    assert (found[0].joined, found[1].expired, found[0].assignor) == (["a"], ["a"], "uniform")


def test_a_static_restart_without_a_rebalance_is_no_rebalance() -> None:
    lines = log(
        JAVA,
        (
            "00:00,000",
            (
                "Static member with groupInstanceId=host-1 and unknown member id joins group orders in "
                f"STABLE state. Replacing previously mapped member {C1} with this groupInstanceId."
            ),
        ),
        preparing("09:00,000", 4, f"removing member {C2} on heartbeat expiration."),
    )
    [one] = rebalances(lines)
    assert (one.replaced, one.expired) == ([], [C2])


def java_client(client: str, *lines: tuple[str, str]) -> list[bytes]:
    return [
        f"2024-05-01 12:{time} INFO [Consumer clientId={client}, groupId=g] {text}".encode()
        for time, text in lines
    ]


def synced(client: str, generation: int) -> str:
    return (
        f"Successfully synced group in generation Generation{{generationId={generation}, memberId="
        f"'{client}-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01', protocol='range'}}"
    )


def test_logs_of_two_clients_are_one_history() -> None:
    lines = sorted(
        [
            *java_client(
                "a",
                ("00:00,000", "(Re-)joining group"),
                ("00:00,010", ("Request joining group due to: need to re-join with the given "
                 "member-id: a-1")),
                ("00:03,000", synced("a", 1)),
                ("05:00,000", "Request joining group due to: group is already rebalancing"),
                ("05:00,001", "(Re-)joining group"),
                ("05:01,000", synced("a", 2)),
                ("20:00,000", "Request joining group due to: group is already rebalancing"),
                ("20:03,000", synced("a", 3)),
            ),
            *java_client(
                "b",
                ("04:59,900", "(Re-)joining group"),
                ("05:01,100", synced("b", 2)),
                ("19:59,990", "consumer poll timeout has expired. This means the time between"),
                ("19:59,995", ("Member b-1 sending LeaveGroup request to coordinator x due to "
                 "consumer poll timeout has expired.")),
            ),
        ]
    )  # fmt: skip
    found = rebalances(lines)
    assert [(one.number, str(one.cause), one.member) for one in found] == [
        (1, "join", "a"),
        (2, "join", "b"),
        (3, "poll timeout", "b"),
    ]
    assert [one.not_stable_ms for one in found] == [3_000, 1_200, 3_000]
    assert found[2].timed_out == ["b"]
    assert {one.assignor for one in found} == {"range"}


def test_a_client_of_the_consumer_protocol() -> None:
    state = "Member m-1 with epoch {} transitioned from {} to {}."
    lines = java_client(
        "a",
        ("00:00,000", state.format(0, "UNSUBSCRIBED", "JOINING")),
        ("00:01,000", state.format(2, "ACKNOWLEDGING", "STABLE")),
        ("10:00,000", state.format(3, "STABLE", "RECONCILING")),
        ("10:00,500", state.format(3, "RECONCILING", "ACKNOWLEDGING")),
        ("10:00,700", state.format(3, "ACKNOWLEDGING", "STABLE")),
        ("11:00,000", state.format(3, "STABLE", "FENCED")),
        ("11:00,001", state.format(0, "FENCED", "JOINING")),
        ("11:02,000", state.format(5, "ACKNOWLEDGING", "STABLE")),
    )
    found = rebalances(lines)
    assert [(one.number, str(one.protocol), one.not_stable_ms) for one in found] == [
        (2, "consumer", 1_000),
        (3, "consumer", 700),
        (5, "consumer", 2_000),
    ]


def test_a_client_of_librdkafka() -> None:
    response = (
        "JoinGroup response: GenerationId {}, Protocol range, LeaderId n-1 (me), my MemberId n-1, "
        "member metadata count 2: (no error)"
    )
    steady = 'Group "orders" changed join state wait-assign-call -> steady (state up)'
    lines = log(
        NATIVE,
        ("00.000", 'Group "orders": Joining group without an assignment: Metadata is available'),
        ("01.000", response.format(4)),
        ("01.500", steady),
        ("30.000", ("Application maximum poll interval (6000ms) exceeded by 12ms (adjust "
         "max.poll.interval.ms for long-running message processing): leaving group")),
        ("31.000", 'Group "orders": Rejoining group without an assignment: Unassignment done'),
        ("32.000", response.format(6)),
        ("32.250", steady),
    )  # fmt: skip
    found = rebalances(lines)
    assert [(one.number, str(one.cause), one.not_stable_ms) for one in found] == [
        (4, "join", 1_500),
        (6, "poll timeout", 1_250),
    ]
    assert (found[0].members, found[0].assignor) == (2, "range")


def test_the_coordinator_knows_more_than_a_client() -> None:
    lines = sorted(
        [
            *JOIN_AND_CRASH,
            *(
                line.replace(b"groupId=g", b"groupId=orders").replace(b"2024", b"[2024", 1)
                for line in java_client(
                    "billing-2",
                    ("10:00,500", "Request joining group due to: group is already rebalancing"),
                    ("10:02,000", synced("billing-2", 2)),
                )
            ),
        ],
        key=lambda line: re.findall(rb"12:\d\d:\d\d", line),
    )
    found = rebalances(lines)
    assert [(one.number, str(one.cause)) for one in found] == [
        (1, "join"),
        (2, "session timeout"),
        (3, "restart"),
    ]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ((f"Leader {C1} re-joining group during Stable; client reason: cached metadata has changed "
         "from (version6: {}) at the beginning of the rebalance to (version7: {})"), "metadata"),
        (f"leader {C1} re-joining group during Stable", "metadata"),
        ((f"Updating metadata for member {C1} during Stable; client reason: need to revoke "
         "partitions [a-1] as indicated by the current assignment and re-join"), "cooperative"),
        (f"Updating metadata for member {C1} during CompletingRebalance", "subscription"),
        (f"Removing Set({C1}) on pending sync request expiration", "rebalance timeout"),
        ((f"Group's selectedProtocol will change because static member {C1} with instance id h "
         "joined with change of protocol; client reason: not provided"), "protocol"),
        ((f"Updating metadata for static member {C1} with instance id h; client reason: not "
         "provided"), "static member"),
        (("Freshly-loaded group is over capacity (3). Rebalancing in order to give a chance for "
         "consumers to commit offsets"), "coordinator"),
        (f"error when storing group assignment during SyncGroup (member: {C1})", "coordinator"),
        ("Subscribed topic(s) no longer exist", "metadata"),
        ("an unknown text", "unknown"),
    ],
)  # fmt: skip
def test_reasons_have_causes(reason: str, cause: str) -> None:
    assert str(cause_of(reason)) == cause


def test_client_ids_are_the_start_of_member_ids() -> None:
    assert client_of(C1) == "billing-1"
    assert client_of(UUID) == UUID


# ---- Summaries ----------------------------------------------------------------


def storm(number: int, *, seconds: int, reason: str) -> list[bytes]:
    """Return the log of a group with a rebalance every ``seconds``, each two seconds long."""
    lines = []
    for n in range(number):
        start, end = (f"{at // 60:02d}:{at % 60:02d},000" for at in (n * seconds, n * seconds + 2))
        rebalance = (
            preparing(start, n, reason),
            stabilized(end, n + 1, 3),
            assigned(end, n + 1, C1),
        )
        lines += log(SCALA, *rebalance)
    return lines


def summary(tmp_path: Path, lines: list[bytes]) -> dict:
    file = tmp_path / "server.log"
    file.write_bytes(b"".join(lines))
    [record] = summarise_logs([file])
    return record


def test_a_storm_of_session_timeouts(tmp_path: Path) -> None:
    reason = f"removing member {C1} on heartbeat expiration"
    record = summary(tmp_path, storm(20, seconds=60, reason=reason))
    assert record["rebalances"] == 20
    assert record["rebalances_per_hour"] == 20.0
    assert record["busiest_hour"] == {"from": "2024-05-01T12:00:00.000", "rebalances": 20}
    assert record["not_stable_seconds"] == 40.0
    [found] = record["longest_storms"]
    assert found["rebalances"] == 20
    assert found["not_stable_seconds"] == 40.0
    assert (found["cause"], found["member"]) == ("session timeout", "billing-1")
    assert (found["from"], found["to"]) == ("2024-05-01T12:00:00.000", "2024-05-01T12:19:02.000")
    [cause] = record["causes"]
    assert cause["text"].startswith("20 of 20 rebalances: a member sent no heartbeat")
    assert cause["members"] == {"billing-1": 20}
    line = cause["lines"][0]
    assert line["line"] == 1
    assert line["file"].endswith("server.log")
    assert reason in line["text"]
    settings = [change["setting"] for change in record["changes"]]
    assert settings == ["session.timeout.ms", "partition.assignment.strategy"]
    assert all(change["lines"] for change in record["changes"])


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        (f"Removing member {C1} on LeaveGroup; client reason: consumer poll timeout has expired.",
         "max.poll.interval.ms"),
        ((f"Leader {C1} re-joining group during Stable; client reason: cached metadata has changed "
         "from a to b"), "topics"),
    ],
)  # fmt: skip
def test_a_frequent_cause_has_a_setting(tmp_path: Path, reason: str, setting: str) -> None:
    record = summary(tmp_path, storm(3, seconds=600, reason=reason))
    assert [change["setting"] for change in record["changes"]] == [setting]
    assert record["storms"] == 0


def test_flapping_clients_need_static_membership(tmp_path: Path) -> None:
    lines = []
    for n in range(3):
        for second, reason in (
            (0, f"Removing member {C1} on LeaveGroup; client reason: the consumer is being closed"),
            (9, adding(NEW)),
        ):
            old = 2 * n + (second > 0)
            lines += log(SCALA, preparing(f"{5 * n:02d}:{second:02d},000", old, reason))
    record = summary(tmp_path, lines)
    [change] = [one for one in record["changes"] if one["setting"] == "group.instance.id"]
    assert "above 9 s" in change["text"]
    assert "3 times" in change["text"]


def test_a_cooperative_group_needs_no_cooperative_assignor(tmp_path: Path) -> None:
    reason = f"Updating metadata for member {C1} during Stable; client reason: need to revoke "
    record = summary(tmp_path, storm(9, seconds=60, reason=reason + "partitions and re-join"))
    assert record["storms"] == 1
    assert record["changes"] == []


def test_rotated_logs_in_any_order_are_one_history(tmp_path: Path) -> None:
    lines = storm(20, seconds=60, reason=f"removing member {C1} on heartbeat expiration")
    whole = summary(tmp_path, lines)
    early, late = tmp_path / "server.log.2024-05-01-11.gz", tmp_path / "server.log.2024-05-01-12"
    early.write_bytes(gzip.compress(b"".join(lines[:31])))
    late.write_bytes(b"".join(lines[31:]))
    [record] = summarise_logs([late, early])
    for name in ("rebalances", "not_stable_seconds", "storms", "hours", "from", "to"):
        assert record[name] == whole[name]


def test_records_and_logs_are_told_apart_by_their_content(tmp_path: Path) -> None:
    server, dump, table = (tmp_path / name for name in ("dump.txt", "server.log", "part-1"))
    server.write_bytes(b"offset: 5 is not a record\n" + b"".join(JOIN_AND_CRASH))
    dump.write_text("[2024-05-01 12:00:00,000] WARN ...\nDumping /tmp/__consumer_offsets-1/0.log\n")
    table.write_bytes(b"PAR1" + bytes(40))
    assert log_files([str(server)]) == [server]
    assert log_files([str(dump)]) is None
    assert log_files([str(table)]) is None
    assert log_files(["s3a://bucket/records"]) is None
    with pytest.raises(InputError, match="separate commands"):
        log_files([str(server), str(dump)])
    with pytest.raises(InputError, match="no such file"):
        log_files([str(tmp_path / "missing.log")])


def test_a_directory_of_logs(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.2024-05-01-11", "controller.log.gz", "notes.md"):
        (tmp_path / name).write_bytes(b"".join(JOIN_AND_CRASH))
    found = log_files([str(tmp_path)])
    assert found is not None
    assert [file.name for file in found] == [
        "controller.log.gz",
        "server.log",
        "server.log.2024-05-01-11",
    ]


def record(number: int, *members: str) -> bytes:
    """Return a record as GroupMetadataMessageFormatter prints it until Kafka 3.7."""
    texts = [
        f"{one} -> MemberMetadata(memberId={one}, groupInstanceId=Some(null), clientId=billing, "
        f"clientHost=/10.0.0.1, sessionTimeoutMs=10000, supportedProtocols=List(range), )"
        for one in members
    ]
    return (
        f"orders::GroupMetadata(groupId=orders, generation={number}, protocolType=Some(consumer), "
        f"currentState={'Stable' if members else 'Empty'}, members=Map({', '.join(texts)}))"
    ).encode()


def test_records_of_the_console_consumer_are_generations() -> None:
    found = rebalances(
        [record(1, C1), record(2, C1, C2), b"orders::NULL", record(3, C2), record(4)]
    )
    assert [(one.number, str(one.cause), one.members, one.joined, one.left) for one in found] == [
        (1, "join", 1, [C1], []),
        (2, "join", 2, [C2], []),
        (3, "leave", 1, [], [C1]),
        (4, "leave", 0, [], [C2]),
    ]
    assert [one.assignor for one in found] == ["range", "range", "range", None]


def test_records_of_the_console_consumer_in_json_have_times() -> None:
    value = {"generation": 5, "protocol": "range", "currentStateTimestamp": 1772359210000}
    members = [{"memberId": C1}, {"memberId": C2}]
    data = {"key": {"type": 2, "data": {"group": "orders"}}, "value": {"version": 3}}
    data["value"]["data"] = {**value, "members": members}
    [one] = rebalances([json.dumps(data).encode(), b'{"currentStateTimestamp": 1}'])
    assert (one.number, one.members, one.assignor) == (5, 2, "range")
    assert one.started == one.ended == 1772359210000


def test_a_file_without_rebalances_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "describe.txt"
    file.write_text("GROUP TOPIC PARTITION\norders a 0\n")
    with pytest.raises(InputError, match=r"describe\.txt: the file contains neither a message"):
        summarise_logs([file])


@pytest.mark.parametrize("seed", range(20))
def test_damaged_logs_raise_no_error(seed: int) -> None:
    rng = random.Random(seed)
    texts = [
        LAYOUTS.get(one["layout"], one["layout"]).format("00:00,000", one["text"]).encode()
        for one in MESSAGES
    ]
    lines = []
    for _ in range(200):
        line = bytearray(rng.choice(texts))
        for _ in range(rng.randrange(3)):
            line[rng.randrange(len(line))] = rng.randrange(256)
        start, end = sorted(rng.choices(range(len(line) + 1), k=2))
        lines.append(bytes(line[start:end]) if rng.random() < 0.3 else bytes(line))
    for one in rebalances(lines):
        assert json.dumps(one.group)
