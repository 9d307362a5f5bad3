"""Imports of share groups, Streams groups and Connect clusters from outputs of real tools."""

import json

import pytest

from tests.conftest import ROOT
from tests.stored_cases import stored_cases

EXAMPLES = ROOT / "examples" / "kinds"


def imported(kassay, *arguments):
    done = kassay("import", *arguments)
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("suffix", ["", "-verbose"])
def test_a_share_group_has_the_members_of_the_table(kassay, suffix):
    document = imported(kassay, EXAMPLES / f"share-members{suffix}.txt")
    assert (document["kind"], document["id"]) == ("share", "share-orders")
    assert document["topics"] == {"lowrate": 6, "orders": 6}
    owned = {member["id"]: member["owned"] for member in document["members"]}
    assert sorted(map(len, owned.values())) == [3, 3, 6]
    assert {tuple(tp) for pairs in owned.values() for tp in pairs} == {
        (topic, number) for topic in ("orders", "lowrate") for number in range(6)
    }
    assert any(
        note.startswith("assumed: each member subscribes to every") for note in document["notes"]
    )


def test_options_give_the_subscriptions_of_a_share_group(kassay, tmp_path):
    file = EXAMPLES / "share-members.txt"
    equal = imported(kassay, file, "--subscriptions", "equal")
    assert {tuple(member["topics"]) for member in equal["members"]} == {("lowrate", "orders")}
    topics = {member["id"]: ["orders"] for member in equal["members"]}
    given = tmp_path / "subscriptions.json"
    given.write_text(json.dumps({"share-orders": topics}))
    known = imported(kassay, file, "--subscriptions", given)
    assert {tuple(member["topics"]) for member in known["members"]} == {("orders",)}
    given.write_text(json.dumps({"share-orders": {}}))
    done = kassay("import", file, "--subscriptions", given)
    assert done.code == 2
    assert "the --subscriptions file lacks member" in json.loads(done.out)["error"]


@pytest.mark.parametrize("suffix", ["", "-verbose"])
def test_a_streams_group_has_the_current_tasks_of_the_table(kassay, suffix):
    document = imported(kassay, EXAMPLES / f"streams-members{suffix}.txt")
    assert (document["kind"], document["id"]) == ("streams-group", "streams-new")
    assert {name: one["partitions"] for name, one in document["subtopologies"].items()} == {
        "0": 6,
        "1": 6,
    }
    tasks = [
        f"{name}_{number}"
        for member in document["members"]
        for name, numbers in member["active"].items()
        for number in numbers
    ]
    assert sorted(tasks) == sorted(f"{name}_{number}" for name in "01" for number in range(6))
    assert len({member["process"] for member in document["members"]}) == 2


def test_a_connect_cluster_has_the_tasks_of_the_rest_answer(kassay):
    document = imported(kassay, EXAMPLES / "connect-status.json", "--name", "workers")
    assert (document["kind"], document["id"]) == ("connect", "workers")
    [step] = document["steps"]
    assert step["connectors"] == {"archive": 4, "audit-log": 3}
    running = step["running"]
    assert sorted(running) == step["workers"]
    assert sorted(task for one in running.values() for task in one["tasks"]) == [
        *(f"archive-{number}" for number in range(4)),
        *(f"audit-log-{number}" for number in range(3)),
    ]


@pytest.mark.parametrize(("text", "message"), stored_cases("damaged_kind_sources"))
def test_damaged_input_is_one_error(kassay, tmp_path, text, message):
    file = tmp_path / "input.txt"
    file.write_text(text)
    done = kassay("import", file)
    assert done.code == 2
    assert message in json.loads(done.out)["error"]
    assert "Traceback" not in done.err


def test_a_directory_mixes_all_kinds_of_groups(kassay, tmp_path):
    for name in ("share-members.txt", "connect-status.json"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    (tmp_path / "group.json").write_text(
        '{"id": "g", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}'
    )
    done = kassay("import", tmp_path)
    assert done.code == 0, done.err
    kinds = [json.loads(line).get("kind") for line in done.out.splitlines()]
    assert kinds == [None, "connect", "share"]
