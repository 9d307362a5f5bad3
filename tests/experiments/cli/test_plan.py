import json

import pytest

from kassay.experiments.cli import main
from tests.experiments.cli.test_members import GROUP


@pytest.fixture
def run(capsys):
    def command(*arguments: str):
        code = 0
        try:
            main(list(arguments))
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.jsonl"
    path.write_text(json.dumps(GROUP) + "\n")
    return path


def test_a_plan_is_a_directory_of_files(run, groups, tmp_path):
    code, out, _ = run("plan", str(groups), "-o", str(tmp_path / "plan"))
    assert code == 0
    line = json.loads(out)
    assert (line["status"], line["makespan"], line["moves"]) == (
        "optimal",
        {"today": 6, "then": 4},
        2,
    )
    assert sorted(file.name for file in (tmp_path / "plan").iterdir()) == [
        "after.jsonl",
        "loads.csv",
        "moves.csv",
        "plan.json",
        "report.html",
        "static-assignment.json",
        "sticky-seed.json",
        "ticket.md",
    ]


def test_captures_are_planned_from_as_they_are(run, tmp_path):
    code, out, err = run("plan", "examples/captures/returns-sticky", "-o", str(tmp_path / "p"))
    assert (code, err) == (0, "")
    assert json.loads(out)["id"] == "returns-sticky"


def test_several_groups_get_a_directory_each(run, groups, tmp_path):
    other = GROUP | {"id": "g/"}
    groups.write_text(json.dumps(GROUP) + "\n" + json.dumps(other) + "\n")
    code, _, _ = run("plan", str(groups), "-o", str(tmp_path / "plan"))
    assert code == 0
    assert sorted(file.name for file in (tmp_path / "plan").iterdir()) == ["g", "g-2"]


def test_a_group_that_is_not_there_is_named(run, groups, tmp_path):
    code, _, err = run("plan", str(groups), "-o", str(tmp_path / "plan"), "--group", "h")
    assert code == 2
    assert "no group 'h' in it" in err


def test_a_bad_document_costs_only_itself(run, groups, tmp_path):
    groups.write_text('{"topics": {}, "members": 3}\n' + json.dumps(GROUP) + "\n")
    code, out, err = run("plan", str(groups), "-o", str(tmp_path / "plan"))
    assert code == 2
    assert "members" in err
    assert "error" in json.loads(out.splitlines()[0])
    assert (tmp_path / "plan" / "report.html").exists()


def test_a_group_without_an_assignment_is_a_result(run, groups, tmp_path):
    members = [member | {"capacity": 1} for member in GROUP["members"]]
    groups.write_text(json.dumps(GROUP | {"members": members}))
    code, out, _ = run("plan", str(groups), "-o", str(tmp_path / "plan"))
    assert code == 1
    assert "conflict" in json.loads(out)


def test_what_if_tells_today_and_every_scenario(run, groups):
    code, out, _ = run("what-if", str(groups), "--members", "+1..+2")
    assert code == 0
    scenarios = json.loads(out)["scenarios"]
    assert [one["scenario"] for one in scenarios] == ["today", "members +1", "members +2"]
    assert [one["makespan"]["value"] for one in scenarios] == [4, 3, 2]


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_what_if_draws(run, groups, tmp_path, ending):
    file = tmp_path / f"picture.{ending}"
    code, _, _ = run("what-if", str(groups), "--members", "2..4", "--plot", str(file))
    assert code == 0
    assert file.stat().st_size > 1000


def test_what_if_refuses_what_it_cannot_read(run, groups):
    code, out, err = run("what-if", str(groups), "--members", "many")
    assert (code, out) == (2, "")
    assert "got 'many'" in err


def test_what_if_leaves_with_1_where_there_is_no_assignment(run, groups):
    code, out, _ = run("what-if", str(groups), "--capacity", "3")
    assert code == 1
    assert json.loads(out)["scenarios"][1]["status"] == "infeasible"
