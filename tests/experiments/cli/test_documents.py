import io
import json
import sys
from pathlib import Path

import pytest
import typer

from kassay.experiments.cli import main
from kassay.experiments.cli.group_io import STDIN, Answer, Format, answer_groups
from kassay.reference import Group, InputError

GOOD = '{"id": "g%d", "topics": {"t": 1}, "members": []}\n'
BAD = '{"id": "bad", "topics": {"t": -1}, "members": []}\n'


def count_topics(group: Group) -> Answer:
    if group.id == "g13":
        raise InputError("thirteen is not taken")
    return Answer({"id": group.id, "topics": len(group.topics)}, reached=group.id != "g7")


def run(capsys, path: Path, **options):
    code = 0
    try:
        answer_groups(path, count_topics, **options)
    except typer.Exit as leaving:
        code = leaving.exit_code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "groups.jsonl"
        path.write_text(text)
        return path

    return write


def test_answers_come_one_a_line_in_input_order(capsys, file):
    code, out, err = run(capsys, file(GOOD % 1 + GOOD % 2))
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["g1", "g2"]
    assert (code, err) == (0, "")


def test_a_bad_document_gives_a_line_and_a_message_and_the_rest_still_run(capsys, file):
    code, out, err = run(capsys, file(GOOD % 1 + BAD + GOOD % 2))
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["id"] for record in records] == ["g1", "bad", "g2"]
    assert "groups.jsonl:2: topics['t']" in records[1]["error"]
    assert err.count("\n") == 1
    assert records[1]["error"] in err
    assert code == 2


def test_claims_that_do_not_hold_are_reported_and_cost_nothing(capsys, file):
    member = '{"id": "a", "topics": ["t"], "owned": [["t", 5], ["gone", 0], ["t", 0]]}'
    code, out, err = run(
        capsys, file('{"id": "g", "topics": {"t": 1}, "members": [' + member + "]}\n")
    )
    assert (code, json.loads(out)["id"]) == (0, "g")
    assert err == (
        "kassay: group 'g': dropped the claim of 'a' to gone-0, no such topic, and 1 more\n"
    )


def test_a_group_that_the_command_cannot_take_is_bad_input_too(capsys, file):
    code, out, _ = run(capsys, file(GOOD % 13 + GOOD % 1))
    assert [json.loads(line).get("error") for line in out.splitlines()] == [
        "thirteen is not taken",
        None,
    ]
    assert code == 2


def test_what_was_not_reached_ends_with_one_unless_something_was_bad(capsys, file):
    assert run(capsys, file(GOOD % 7))[0] == 1
    assert run(capsys, file(GOOD % 7 + BAD))[0] == 2


def test_a_single_answer_is_one_json_object_and_several_are_a_list(capsys, file):
    _, out, _ = run(capsys, file(GOOD % 1), output=Format.JSON)
    assert json.loads(out) == {"id": "g1", "topics": 1}
    _, out, _ = run(capsys, file(GOOD % 1 + GOOD % 2), output=Format.JSON)
    assert [record["id"] for record in json.loads(out)] == ["g1", "g2"]


def test_a_table_has_a_column_a_key(capsys, file):
    _, out, _ = run(capsys, file(GOOD % 1 + BAD), output=Format.TABLE)
    assert all(word in out for word in ("id", "topics", "error", "g1", "bad"))


def test_standard_input_is_read_and_named(capsys, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(BAD.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    code, out, _ = run(capsys, STDIN)
    assert json.loads(out)["error"].startswith("standard input:1: ")
    assert code == 2


def test_a_file_without_documents_is_an_error(file):
    with pytest.raises(InputError, match="no group document in it"):
        answer_groups(file("\n"), count_topics)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["assign", "--assignor", "range", "nowhere.json"],
            "nowhere.json: no such file or directory",
        ),
        (["assign", "--assignor", "range", "."], ".: is a directory"),
    ],
)
def test_files_that_cannot_be_read_are_one_line_and_exit_code_two(capsys, arguments, message):
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 2
    assert capsys.readouterr().err == f"kassay: {message}\n"


def test_usage_errors_exit_with_two(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["no-such-command"])
    assert leaving.value.code == 2
    assert "no-such-command" in capsys.readouterr().err


def test_the_version_names_solver_and_spark(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("kassay", "ortools", "pyspark", "Python"))
