import pytest


def test_the_default_output_is_a_timeline(kassay):
    done = kassay("simulate", "crash", "--policy", "range")
    assert done.code == 0
    assert "01:02.000  c2       crash" in done.out
    assert "2 rebalances" in done.out


def test_jsonl_output_has_the_group_of_each_rebalance(kassay):
    policies = ("--policy", "range", "--policy", "uniform")
    lines = kassay("simulate", "crash", *policies, "--format", "jsonl").records
    assert [line["policy"] for line in lines] == ["range", "uniform"]
    last = lines[0]["rebalances"][-1]
    assert len(last["group"]["members"]) == 5
    assert sum(map(len, last["assignment"].values())) == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such-script",), "'no-such-script' is neither a file nor a built-in script"),
        (("crash", "--policy", "stikcy"), "unknown policy 'stikcy'"),
        (("there/is/none.yaml",), "there/is/none.yaml: no such file or directory"),
    ],
)
def test_bad_arguments_give_exit_code_2(arguments: tuple[str, ...], message: str, kassay):
    done = kassay("simulate", *arguments)
    assert done.code == 2
    assert message in done.message


def test_an_error_in_a_script_has_its_line(tmp_path, kassay):
    script = tmp_path / "bad.yaml"
    script.write_text("topics: {t: 1}\nmembers:\n  - {id: a, topics: [u]}\n")
    done = kassay("simulate", script)
    assert done.code == 2
    assert "bad.yaml:3: members[0].topics[0]: unknown topic 'u'" in done.err
