"""The option --subscriptions replaces assumptions of an import, and never facts in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stored_cases import stored_cases

IDLE = "every member has partitions"
ASSIGNED = f"{IDLE} and every member subscribes only to the topics of its partitions"
EQUAL = f"{IDLE} and every member subscribes to every topic of the group"
CAPTURE = (
    "GROUP TOPIC   PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
    "g     orders  0         0              76             76  a           /1   a        \n"
    "g     orders  1         0              75             75  a           /1   a        \n"
    "g     lowrate 0         0              0              0   b           /2   b        \n"
)


def imported(kassay: Callable[..., Any], path: Path, *options: str) -> Path:
    capture = path / "offsets.txt"
    capture.write_text(CAPTURE)
    file = path / "group.jsonl"
    assert kassay("import", capture, "--weights", "lag", *options, "-o", file).code == 0
    return file


def topics(document: dict[str, Any]) -> list[list[str]]:
    return [member["topics"] for member in document["members"]]


def test_the_option_of_each_command_replaces_the_assumption(kassay: Any, tmp_path: Path) -> None:
    file = imported(kassay, tmp_path)
    [plain, assigned] = [
        kassay("solve", file, *options).record for options in ((), ("--subscriptions", "assigned"))
    ]
    assert plain["condition"] == EQUAL
    assert assigned["condition"] == ASSIGNED
    assert (plain["imbalance"]["value"], assigned["imbalance"]["value"]) == (76, 151)
    back = imported(kassay, tmp_path, "--subscriptions", "assigned")
    assert kassay("solve", back, "--subscriptions", "equal").record["imbalance"]["value"] == 76
    done = kassay("import", back, "--subscriptions", "equal").record
    assert topics(done) == [["lowrate", "orders"]] * 2
    assert "--subscriptions equal: all topics are assumed" in done["notes"][-1]


@pytest.mark.parametrize(
    "command",
    stored_cases("commands_with_both_readings"),
    ids=lambda command: " ".join(command[:2]),
)
def test_each_command_prints_the_condition(
    kassay: Any, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = imported(kassay, tmp_path)
    assert kassay(command[0], file, *command[1:], "--format", "jsonl").record["condition"] == EQUAL
    table = kassay(command[0], file, *command[1:], "--format", "table")
    assert EQUAL in table.err
    assert (f"recommended if {EQUAL}: " in table.err) == ("--current" in command)


def test_an_assumption_does_not_change_known_subscriptions(kassay: Any, tmp_path: Path) -> None:
    file = imported(kassay, tmp_path, "--subscriptions", "assigned")
    known = file.read_text().replace(', "assumed": ["topics"]', "")
    file.write_text(known)
    done = kassay("import", file, "--subscriptions", "equal").record
    assert topics(done) == [["orders"], ["lowrate"]]
    note = "--subscriptions equal has no effect: the source shows all subscriptions"
    assert done["notes"][-1] == note
    assert note in kassay("solve", file, "--subscriptions", "equal").err
    assert note in kassay("plan", file, "--subscriptions", "equal", "--format", "text").out


def test_a_file_replaces_known_subscriptions_with_a_note(kassay: Any, tmp_path: Path) -> None:
    file = imported(kassay, tmp_path, "--subscriptions", "assigned")
    stated = tmp_path / "subscriptions.json"
    stated.write_text(json.dumps({"g": {"a": ["orders"], "b": ["lowrate", "orders"]}}))
    done = kassay("import", file, "--subscriptions", stated).record
    assert topics(done) == [["orders"], ["lowrate", "orders"]]
    assert "assumed" not in done["members"][0]
    assert not any("replaces" in note for note in done["notes"])
    file.write_text(file.read_text().replace(', "assumed": ["topics"]', ""))
    done = kassay("import", file, "--subscriptions", stated).record
    assert done["notes"][-1] == (
        "the file of --subscriptions replaces the subscription that the source shows of member 'b'"
    )
