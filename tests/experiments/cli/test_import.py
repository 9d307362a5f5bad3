import io
import json
import sys

import pytest

OFFSETS = """
GROUP TOPIC     PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG   CONSUMER-ID HOST      CLIENT-ID
{group} orders    0          4               9               5     c1          /10.0.0.1 app
{group} orders    1          -               7               -     c2          /10.0.0.2 app
"""


@pytest.fixture
def run(kassay, tmp_path, monkeypatch):
    def run(*arguments, stdin=""):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        done = kassay("import", *arguments)
        return done.code, done.records, done.err

    return run


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def offsets(group="group"):
    return OFFSETS.format(group=group)


def test_a_cut_table_is_an_error_and_other_groups_are_imported(run, write):
    write("bad.txt", offsets()[:-25])
    write("good.txt", offsets("other"))
    code, lines, err = run("bad.txt", "good.txt")
    assert code == 2
    assert lines[0]["error"].startswith("bad.txt:4: ")
    assert "orders    1" in lines[0]["error"]
    assert lines[1]["id"] == "other"
    assert err.count("bad.txt:4: ") == 1


@pytest.mark.parametrize("command", ["import", "plan", "forecast --current range"])
def test_other_groups_cause_no_error(kassay, write, monkeypatch, tmp_path, command):
    write("set/a.txt", offsets().replace(" orders ", " audit  "))
    write("set/b.txt", offsets("other"))
    write("w.json", '{"orders": [1, 1]}')
    monkeypatch.chdir(tmp_path)
    done = kassay(*f"{command} set --group other --weights w.json".split())
    assert (done.code, "audit" in done.out + done.err) == (0, False)


def test_metadata_and_subscriptions_fill_in_missing_data(run, write):
    write(
        "topics.json",
        json.dumps(
            {
                "brokers": [],
                "topics": [
                    {"topic": "orders", "partitions": [{"partition": n} for n in range(4)]},
                    {"topic": "audit", "partitions": [{"partition": 0}]},
                ],
            }
        ),
    )
    write("s.json", '{"group": {"app": ["orders", "audit"]}}')
    _, (document,), _ = run(
        "-", "--metadata", "topics.json", "--subscriptions", "s.json", stdin=offsets()
    )
    assert document["topics"] == {"audit": 1, "orders": 4}
    assert {tuple(member["topics"]) for member in document["members"]} == {("orders", "audit")}


def test_captures_of_several_files_are_one_group(run, write):
    write("offsets.txt", offsets())
    members = [f"group {name} /10.0.0.1 app {n}\n" for name, n in (("c1", 1), ("c2", 1), ("c3", 0))]
    write("members.txt", "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\n" + "".join(members))
    _, (document,), _ = run("offsets.txt", "members.txt")
    owned = {one["id"]: one.get("owned") for one in document["members"]}
    assert owned == {"c1": [["orders", 0]], "c2": [["orders", 1]], "c3": None}


def test_utf_16_text_with_carriage_returns_is_read(run, write):
    write("windows.txt", b"\xff\xfe" + offsets().replace("\n", "\r\n").encode("utf-16-le"))
    code, (document,), _ = run("windows.txt")
    assert (code, len(document["members"])) == (0, 2)


def test_a_group_without_an_id_gets_the_id_of_the_option_or_the_file_name(run, write):
    text = "\n".join(
        line.removeprefix("GROUP ").removeprefix("group ") for line in offsets().split("\n")
    )
    write("shop.txt", text)
    assert run("shop.txt")[1][0]["id"] == "shop"
    assert run("shop.txt", "--name", "mine")[1][0]["id"] == "mine"
    assert "give --name" in run("-", stdin=text)[2]


def test_an_unreachable_cluster_is_one_error_line(run):
    code, out, err = run("--bootstrap-server", "127.0.0.1:1", "--timeout", "0.3")
    assert (code, out) == (2, [])
    [line] = err.splitlines()
    assert line.startswith("kassay: 127.0.0.1:1: cannot list groups: ")


def test_the_account_is_printed_on_standard_error(run, write):
    write("good.txt", "$ kafka-consumer-groups.sh\n" + offsets() + "^C\n")
    for option in ("--account", "-v"):
        code, lines, err = run("good.txt", option)
        assert (code, [line["id"] for line in lines]) == (0, ["group"])
        assert "good.txt:1: ignored: prompt\n" in err
        assert "good.txt:4-5: read: offsets table\n" in err
        assert "good.txt:6: ignored: interrupt\n" in err


def test_an_option_chooses_one_of_two_snapshots(run, write):
    write("two.txt", offsets() + offsets().replace("c1 ", "c9 "))
    code, lines, _ = run("two.txt")
    assert code == 2
    assert "two.txt:7: a second offsets table of group 'group'; choose one" in lines[0]["error"]
    for snapshot, member in (("first", "c1"), ("last", "c9")):
        code, lines, _ = run("two.txt", "--snapshot", snapshot)
        assert (code, {one["id"] for one in lines[0]["members"]}) == (0, {member, "c2"})
