import json

import pytest

from kassay.experiments.cli import main

GROUP = '{"id": "mine", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}\n'


def leaves(capsys, *arguments):
    with pytest.raises(SystemExit) as leaving:
        main([*map(str, arguments)])
    said = capsys.readouterr()
    return leaving.value.code, said.out, said.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name one assignor"),
        (("--assignor", "sticky", "--assignor-cmd", "./mine"), "name one assignor"),
        (("--assignor", "stickier"), "no assignor"),
        (("--assignor-python", "os"), "module:function"),
        (("--assignor", "sticky", "--family", "nowhere"), "no family"),
    ],
)
def test_what_cannot_be_hunted_is_refused(capsys, tmp_path, options, said):
    code, _, errors = leaves(capsys, "hunt", *options, "-o", tmp_path / "out")
    assert code == 2
    assert said in " ".join(errors.split())
    assert not (tmp_path / "out").exists()


def test_a_command_that_crashes_is_a_line_of_the_batch(capsys, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP + GROUP)
    code, printed, _ = leaves(capsys, "assign", groups, "--assignor-cmd", "false")
    lines = [json.loads(line) for line in printed.splitlines()]
    assert code == 0
    assert [line["failed"] for line in lines] == ["ended without an answer (exit code 1)"] * 2


def test_a_function_of_ones_own_is_compared_with_the_optimum(capsys, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP)
    function = "kassay.reference.assignors.client.range:assign"
    code, printed, _ = leaves(
        capsys, "compare", groups, "--assignor", "range", "--assignor-python", function
    )
    mine, theirs = json.loads(printed)["comparisons"]
    assert code == 0
    assert mine | {"assignor": ""} == theirs | {"assignor": ""}
    assert {mine["assignor"], theirs["assignor"]} == {"range", f"python:{function}"}
