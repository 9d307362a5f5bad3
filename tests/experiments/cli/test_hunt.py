import pytest

GROUP = '{"id": "mine", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give exactly one"),
        (("--assignor", "sticky", "--assignor-cmd", "./mine"), "give exactly one"),
        (("--assignor", "stickier"), "unknown assignor"),
        (("--assignor-python", "os"), "module:function"),
        (("--assignor", "sticky", "--family", "nowhere"), "unknown family"),
    ],
)
def test_invalid_options_write_nothing(kassay, tmp_path, options, message):
    done = kassay("hunt", *options, "-o", tmp_path / "out")
    assert done.code == 2
    assert message in done.message
    assert not (tmp_path / "out").exists()


def test_an_assignor_command_that_fails_is_a_result(kassay, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP + GROUP)
    done = kassay("assign", groups, "--assignor-cmd", "false")
    assert done.code == 0
    assert [record["failed"] for record in done.records] == [
        "the process ended without an answer (exit code 1)"
    ] * 2


def test_an_assignor_function_is_compared_with_the_optimum(kassay, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP)
    function = "kassay.reference.assignors.client.range:assign"
    done = kassay("compare", groups, "--assignor", "range", "--assignor-python", function)
    mine, theirs = done.record["comparisons"]
    assert done.code == 0
    assert mine | {"assignor": ""} == theirs | {"assignor": ""}
    assert {mine["assignor"], theirs["assignor"]} == {"range", f"python:{function}"}
