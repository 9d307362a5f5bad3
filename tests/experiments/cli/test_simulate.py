"""``kassay simulate`` on the command line."""

from __future__ import annotations

import json

import pytest

from kassay.experiments.cli import main


def _run(*arguments: str) -> int:
    try:
        main(["simulate", *arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_timeline_is_printed_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("crash", "--policy", "range") == 0
    printed = capsys.readouterr().out
    assert "01:02.000  c2       crash" in printed
    assert "2 rebalances" in printed


def test_a_history_is_one_json_line_whose_rebalances_are_group_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("crash", "--policy", "range", "--policy", "uniform", "--format", "jsonl") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["policy"] for line in lines] == ["range", "uniform"]
    last = lines[0]["rebalances"][-1]
    assert len(last["group"]["members"]) == 5
    assert sum(map(len, last["assignment"].values())) == 24


def test_costs_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("crash", "--policy", "range", "--policy", "sticky", "--format", "table") == 0
    printed = capsys.readouterr().out
    assert "range" in printed
    assert "sticky" in printed


def test_a_picture_is_drawn(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "crash.svg"
    assert _run("crash", "--policy", "sticky", "--draw", str(picture)) == 0
    assert picture.read_text().startswith("<?xml")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such-script",), "no file or built-in script is called 'no-such-script'"),
        (("crash", "--policy", "stikcy"), "no policy is called 'stikcy'"),
        (("crash", "scale-in", "--draw", "x.svg"), "--draw takes one script"),
        (("there/is/none.yaml",), "there/is/none.yaml: no such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_bad_script_names_its_line(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "bad.yaml"
    script.write_text("topics: {t: 1}\nmembers:\n  - {id: a, topics: [u]}\n")
    assert _run(str(script)) == 2
    assert "bad.yaml:3: members[0].topics[0]: no topic is called 'u'" in capsys.readouterr().err
