"""Rebalances in logs of brokers and clients, with messages as each release writes them."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from kassay.experiments.history.log_messages import LogEvent, cause_of, client_of, read_log
from kassay.experiments.history.log_rebalances import LogRebalance, rebalances_of_log
from kassay.experiments.history.log_summary import log_files, summarise_logs
from kassay.reference.model.errors import InputError
from tests.conftest import ROOT
from tests.stored_cases import stored_cases

C1 = "billing-1-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01"
NEW = "billing-1-77777777-3f67-4ac5-9d6b-7b1a6a6a2a03"
UUID = "hJ9vBzHlQ9CkN6n4mQkZ8A"
LAYOUTS = stored_cases("layouts_of_logs")
"""A line of each program, with places for the time and the message."""
LOGS = ROOT / "tests" / "data" / "logs"
MESSAGES, HISTORIES, SUMMARIES = (
    [json.loads(line) for line in (LOGS / f"{name}.jsonl").read_text().splitlines()]
    for name in ("messages", "histories", "summaries")
)
"""Messages of each release with values, logs with rebalances, logs with causes and changes."""
HISTORY = [line.encode() + b"\n" for line in HISTORIES[0]["lines"]]


def log(*lines: tuple[str, str], layout: str = LAYOUTS["broker"]) -> list[bytes]:
    return [layout.format(time, text).encode() + b"\n" for time, text in lines]


def rebalances(lines: list[bytes]) -> list[LogRebalance]:
    return list(rebalances_of_log(read_log(lines, file="a.log")))


def event(layout: str, text: str) -> LogEvent:
    [found] = read_log(log(("00:00,000", text), layout=layout), file="a.log")
    return found


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


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history["name"])
def test_the_rebalances_in_a_log_are_those_stated(history: dict[str, Any]) -> None:
    found = rebalances([line.encode() for line in history["lines"]])
    assert len(found) == len(history["rebalances"])
    for one, expected in zip(found, history["rebalances"], strict=True):
        assert {key: getattr(one, key) for key in expected} == expected


@pytest.mark.parametrize(("reason", "cause"), stored_cases("reasons_of_rebalances"))
def test_reasons_have_causes(reason: str, cause: str) -> None:
    assert str(cause_of(reason)) == cause


def preparing(time: str, old: int, reason: str, group: str = "orders") -> tuple[str, str]:
    text = f"Preparing to rebalance group {group} in state PreparingRebalance with old generation "
    return time, f"{text}{old} (__consumer_offsets-3) (reason: {reason})"


def stabilized(time: str, number: int, members: int, group: str = "orders") -> tuple[str, str]:
    text = f"Stabilized group {group} generation {number} (__consumer_offsets-3) with {members}"
    return time, f"{text} members"


def assigned(time: str, number: int, leader: str) -> tuple[str, str]:
    text = f"Assignment received from leader {leader} for group orders for generation {number}."
    return time, f"{text} The group has 2 members, 0 of which are static."


def adding(member: str) -> str:
    text = f"Adding new member {member} with group instance id None; client reason: need to re-join"
    return f"{text} with the given member-id"


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
        lines += log(*rebalance)
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


@pytest.mark.parametrize("expected", SUMMARIES, ids=lambda expected: expected["name"])
def test_causes_and_changes_are_those_stated(tmp_path: Path, expected: dict[str, Any]) -> None:
    record = summary(tmp_path, [f"{line}\n".encode() for line in expected["lines"]])
    for name in ("causes", "changes"):
        assert [one["text"] for one in record[name]] == expected[name]


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
    server.write_bytes(b"offset: 5 is not a record\n" + b"".join(HISTORY))
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
        (tmp_path / name).write_bytes(b"".join(HISTORY))
    found = log_files([str(tmp_path)])
    assert found is not None
    assert [file.name for file in found] == [
        "controller.log.gz",
        "server.log",
        "server.log.2024-05-01-11",
    ]


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
