import json
from pathlib import Path

import pytest

from kassay.experiments.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "groups.jsonl"


@pytest.fixture
def explain(capsys):
    def run(*arguments):
        code = 0
        try:
            main(["explain", *(str(argument) for argument in arguments)])
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    return run


def test_the_chains_of_the_example_groups_are_told_in_words(explain):
    code, records, _ = explain(EXAMPLES)
    assert code == 0
    assert [record["id"] for record in records] == ["A", "B", "C", "D", "E"]
    last = records[-1]["steps"]
    assert [len(record["steps"]) for record in records] == [1, 1, 1, 1, 1]
    assert last[0]["words"].endswith(
        "M3 drops from 11 to 10, M1 rises from 9 to 10, two more owned partitions move"
    )
    assert (last[0]["direct"], last[0]["moves"], len(last[0]["transfers"])) == (False, 2, 2)


def test_each_group_gets_its_picture_of_transfers_and_loads(explain, tmp_path):
    code, _, _ = explain(EXAMPLES, "--plot", tmp_path / "why.svg")
    assert code == 0
    names = ["why-2.svg", "why-3.svg", "why-4.svg", "why-5.svg", "why.svg"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    picture = (tmp_path / "why-5.svg").read_text()
    for text in ("M1", "M2", "M3", "T1-9", "T2-4", "before", "after", "step 1"):
        assert f">{text}<" in picture
    explain(EXAMPLES, "--plot", tmp_path / "again.svg")
    assert (tmp_path / "again-5.svg").read_text() == picture


def test_an_optimal_assignment_is_drawn_as_such(explain, tmp_path):
    group = {"id": "g", "topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}
    (tmp_path / "group.json").write_text(json.dumps(group))
    code, _, _ = explain(tmp_path / "group.json", "--plot", tmp_path / "why.svg")
    assert code == 0
    assert "g: optimal" in (tmp_path / "why.svg").read_text()


def test_a_picture_of_another_kind_is_refused(explain):
    code, _, err = explain(EXAMPLES, "--plot", "why.gif")
    assert code == 2
    assert "'why.gif'" in err
