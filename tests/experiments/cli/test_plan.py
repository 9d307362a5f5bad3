import json
import re
import shlex

import pytest

from tests.experiments.cli.conftest import LOPSIDED_GROUP
from tests.stored_cases import stored_cases

GROUP = stored_cases("groups")["two topics"]


@pytest.fixture
def groups(write_groups):
    return write_groups(GROUP)


def test_a_plan_is_written_as_a_directory_of_files(kassay, groups, tmp_path):
    done = kassay("plan", groups, "-o", tmp_path / "plan")
    assert done.code == 0
    line = done.record
    assert (line["status"], line["makespan"], line["moves"]) == (
        "optimal",
        {"current": 6, "planned": 4},
        2,
    )
    assert sorted(file.name for file in (tmp_path / "plan").iterdir()) == [
        "after.jsonl",
        "loads.csv",
        "moves.csv",
        "plan.json",
        "report.html",
        "static-assignment.json",
        "ticket.md",
    ]


def test_without_output_the_plan_is_printed_with_its_moves(kassay, groups, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = kassay("plan", groups)
    assert done.code == 0
    assert "Moves in order:" in done.out
    assert f"kassay plan {groups} -o plan" in done.out
    assert sorted(tmp_path.iterdir()) == before
    line = kassay("plan", groups, "--format", "jsonl").record
    assert (line["moves"], "directory" in line) == (2, False)


def test_captures_can_be_planned_directly(kassay, tmp_path):
    done = kassay("plan", "examples/captures/returns-sticky", "-o", tmp_path / "p")
    assert done.code == 0
    assert "'returns-sticky': subscriptions are not shown, all topics are assumed" in done.message
    assert done.record["id"] == "returns-sticky"
    static = json.loads((tmp_path / "p" / "static-assignment.json").read_text())
    assert static["client_ids"].keys() == static["members"].keys()
    assert all(member.startswith(client) for member, client in static["client_ids"].items())


def test_several_groups_get_one_directory_each(kassay, groups, tmp_path):
    other = GROUP | {"id": "g/"}
    groups.write_text(json.dumps(GROUP) + "\n" + json.dumps(other) + "\n")
    assert kassay("plan", groups, "-o", tmp_path / "plan").code == 0
    assert sorted(file.name for file in (tmp_path / "plan").iterdir()) == ["g", "g-2"]
    ticket = (tmp_path / "plan" / "g-2" / "ticket.md").read_text()
    assert f"kassay forecast {groups} --group g/ --members +0..+2" in ticket
    assert "ASSIGNOR" not in ticket


def test_a_group_without_an_assignment_gives_exit_code_1(kassay, groups, tmp_path):
    members = [member | {"capacity": 1} for member in GROUP["members"]]
    groups.write_text(json.dumps(GROUP | {"members": members}))
    done = kassay("plan", groups, "-o", tmp_path / "plan")
    assert done.code == 1
    assert "conflict" in done.record


def test_an_infeasible_scenario_gives_exit_code_1(kassay, groups):
    members = [{**one, "capacity": 3} for one in GROUP["members"]]
    groups.write_text(json.dumps({**GROUP, "members": members}))
    done = kassay("forecast", groups, "--members", "+0")
    assert done.code == 1
    assert done.record["forecasts"][1]["status"] == "infeasible"


def test_the_plan_of_a_reconciling_group_starts_from_the_current_assignment(kassay, tmp_path):
    done = kassay("plan", "examples/captures/stuck-reconciling", "-o", tmp_path / "p")
    assert done.code == 0
    assert (done.record["state"], done.record["moves"]) == ("Reconciling", 3)
    assert done.record["makespan"] == {"current": 6, "planned": 3}
    assert done.record["target"] == {"makespan": 3, "moves": 3}
    caveat = "The group is reconciling: the broker completes its target assignment without any"
    assert caveat in done.record["verdict"]
    for file in ("ticket.md", "report.html"):
        assert caveat in (tmp_path / "p" / file).read_text()
    assert (
        "target assignment of the broker | | 3 after 3 moves"
        in (tmp_path / "p" / "ticket.md").read_text()
    )


def test_a_rebalancing_group_with_unknown_subscriptions_is_not_called_optimal(kassay, tmp_path):
    options = ("--subscriptions", "assigned")
    done = kassay("plan", "examples/captures/stuck-rebalancing", "-o", tmp_path / "p", *options)
    assert done.code == 1
    assert "is rebalancing (PreparingRebalance)" in done.record["conflict"]
    assert "does not show the subscription of 'eager-" in done.message
    assert not (tmp_path / "p").exists()
    done = kassay("plan", "examples/captures/stuck-rebalancing", "-o", tmp_path / "p")
    assert (done.code, done.record["state"]) == (0, "PreparingRebalance")
    assert done.record["makespan"] == {"current": 5, "planned": 3}


@pytest.mark.parametrize("command", ["plan", "forecast"])
def test_a_rebalancing_group_without_owners_gives_exit_code_1(kassay, tmp_path, command):
    file = tmp_path / "offsets.txt"
    file.write_text(
        "Warning: Consumer group 'g' is rebalancing.\n\n"
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "g     t     0         4              9              5   -           -    -        \n"
    )
    done = kassay(command, file, *(("-o", tmp_path / "p") if command == "plan" else ()))
    assert done.code == 1
    assert "is rebalancing (Rebalancing): the source shows no owners" in done.message
    assert not (tmp_path / "p").exists()


def test_the_ticket_has_commands_for_the_source_and_the_files_of_the_plan(kassay, groups, tmp_path):
    folder = tmp_path / "plan"
    assert kassay("plan", groups, "-o", folder, "--forbid", "t-0=b").code == 0
    for name in ("ticket.md", "report.html"):
        text = (folder / name).read_text()
        assert f"kassay compare {folder}/after.jsonl" in text
        assert f"kassay forecast {groups} --members +0..+2" in text
        assert "SOURCE" not in text


def test_without_output_the_line_has_the_explanation_and_the_frontier(kassay, write_groups):
    line = kassay("plan", write_groups(LOPSIDED_GROUP), "--format", "jsonl").record
    assert [step["makespan"] for step in line["explanation"]] == [[4, 3], [3, 2]]
    assert line["frontier"]["complete"]
    points = line["frontier"]["points"]
    assert [(one["moves"], one["imbalance"]) for one in points] == [(0, 16), (1, 10), (2, 8)]


def test_a_plan_can_start_from_the_result_of_an_assignor(kassay, write_groups):
    members = [{"id": name, "topics": ["t", "u"]} for name in "ab"]
    path = write_groups({"id": "g", "topics": {"t": 1, "u": 1}, "members": members})
    line = kassay("plan", path, "--assignor", "range", "--format", "jsonl").record
    assert (line["makespan"], line["moves"]) == ({"current": 2, "planned": 1}, 1)
    assert line["explanation"][0]["step"].startswith("a gives ")


UNEVEN = stored_cases("groups")["uneven topics"]


def test_the_printed_command_for_uneven_topics_works(kassay, write_groups):
    source = write_groups(UNEVEN)
    text = kassay("plan", source, "--max-partitions", 8, "--format", "text").out
    assert (
        "topics: 8 of 8 partitions of t are on a (4 partitions per member would be even; " in text
    )
    [command] = re.findall(r"divide topics with: kassay (.*)\n", text)
    assert command == f"plan {source} --max-partitions 8 --even-topics"
    done = kassay(*shlex.split(command), "--format", "jsonl")
    assert done.code == 0
    record = json.loads(done.out)
    assert (record["moves"], record["makespan"]) == (8, {"current": 8, "planned": 8})
    assert record["cause"]["kind"] == "topics-ignored"
    names = [one["configuration"] for one in record["actions"]]
    assert names[0] == "range"
    assert record["to_do"] == record["actions"][0]["action"]
    assert {"configuration", "action", "maximum_load", "moves", "rebalances"} == set(
        record["actions"][0]
    )


def test_a_plan_uses_the_given_assignor_if_the_source_shows_none(kassay, write_groups):
    source = write_groups({key: value for key, value in UNEVEN.items() if key != "assignor"})
    text = kassay("plan", source, "--current", "roundrobin", "--format", "text").out
    assert "The group runs roundrobin" in text
    assert "--current roundrobin --members" in text
    assert kassay("plan", source, "--current", "none").code == 2


def test_all_printed_commands_work(kassay, write_groups, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    members = [
        one | {"rack": rack, "speed": speed, "host": "h", "client_id": one["id"]}
        for one, rack, speed in zip(UNEVEN["members"], "xy", (2, 1), strict=True)
    ]
    topics = UNEVEN["topics"] | {"t": {"partitions": 8, "racks": [["y"]] * 8}}
    source = write_groups(UNEVEN | {"topics": topics, "members": members})
    text = kassay("plan", source, "--format", "text").out
    found = re.findall(r"kassay ((?:plan|forecast|compare) .*?)\n", text)
    assert len(found) >= 3
    for command in found:
        assert kassay(*shlex.split(command)).code == 0, command
