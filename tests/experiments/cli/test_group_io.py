import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from kassay import Group, InputError
from kassay.experiments.cli.process_groups import GroupResult, GroupSource, process_each_group
from kassay.experiments.cli.write_results import Format, print_table
from tests.stored_cases import stored_cases

GOOD = '{"id": "g%d", "topics": {"t": 1}, "members": []}\n'
BAD = '{"id": "bad", "topics": {"t": -1}, "members": []}\n'


def count_topics(group: Group) -> GroupResult:
    if group.id == "g13":
        raise InputError("group g13 is not supported")
    return GroupResult({"id": group.id, "topics": len(group.topics)}, reached=group.id != "g7")


def run(capsys, path: Path, **options):
    code = 0
    try:
        process_each_group(GroupSource(file=path), count_topics, **options)
    except typer.Exit as exit_:
        code = exit_.exit_code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "groups.jsonl"
        path.write_text(text)
        return path

    return write


def test_other_groups_are_processed_after_a_bad_document(capsys, file):
    code, out, err = run(capsys, file(GOOD % 1 + BAD + GOOD % 2))
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["id"] for record in records] == ["g1", "bad", "g2"]
    assert "groups.jsonl:2: topics['t']" in records[1]["error"]
    assert err.count("\n") == 1
    assert records[1]["error"] in err
    assert code == 2


def test_exit_code_is_1_if_a_condition_is_not_met_and_2_after_bad_input(capsys, file):
    assert run(capsys, file(GOOD % 7))[0] == 1
    assert run(capsys, file(GOOD % 7 + BAD))[0] == 2


def test_json_output_is_an_object_for_one_group_and_a_list_for_several(capsys, file):
    _, out, _ = run(capsys, file(GOOD % 1), output_format=Format.JSON)
    assert json.loads(out) == {"id": "g1", "topics": 1}
    _, out, _ = run(capsys, file(GOOD % 1 + GOOD % 2), output_format=Format.JSON)
    assert [record["id"] for record in json.loads(out)] == ["g1", "g2"]


def test_tables_show_names_with_brackets_and_colons_unchanged(capsys):
    print_table([{"group": "[bold]orders[/bold] :smile:", "moves": 1}])
    assert "[bold]orders[/bold] :smile:" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["solve", "solve --format table", "import"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_one_error_line(write_groups, command, unbuffered):
    groups = write_groups({"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    arguments = [sys.executable, "-m", "kassay", *command.split(), str(groups)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    # A busy machine shows the progress before the error.
    errors = [line for line in done.stderr.splitlines() if not line.endswith(" s")]
    message = "kassay: cannot read or write: no space left on device"
    assert (done.returncode, errors) == (2, [message])


@pytest.mark.parametrize("command", stored_cases("commands_with_a_result_per_group"))
def test_commands_on_groups_fail_if_the_device_of_the_output_is_full(
    kassay, write_groups, monkeypatch, command
):
    groups = write_groups({"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stdout", full)
        done = kassay(*command.split(), groups)
        with contextlib.suppress(OSError):
            full.close()
    assert done.code == 2
    assert done.err.endswith("kassay: cannot read or write: no space left on device\n")
