import json

import pytest

from kassay.experiments.cli import main

GROUP = {
    "id": "g",
    "topics": {"t": 4},
    "members": [
        {"id": "a", "topics": ["t"], "owned": {"t": [0, 1, 2, 3]}},
        {"id": "b", "topics": ["t"]},
    ],
}


@pytest.fixture
def run(capsys, tmp_path):
    def frontier(*options: str, groups=(GROUP,)):
        path = tmp_path / "groups.jsonl"
        path.write_text("\n".join(json.dumps(group) for group in groups))
        code = 0
        try:
            main(["frontier", str(path), *options])
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return frontier


def test_every_point_is_given_with_its_bounds_and_loads(run):
    code, out, _ = run()
    record = json.loads(out)
    assert code == 0
    assert list(record) == ["id", "measure", "complete", "points"]
    assert record["complete"]
    assert [(p["moves"], p["imbalance"]) for p in record["points"]] == [(0, 16), (1, 10), (2, 8)]
    assert record["points"][1] == {
        "moves": 1,
        "imbalance": 10,
        "bound": {"moves": 1, "imbalance": 10},
        "proven": True,
        "loads": {"a": 3, "b": 1},
    }


def test_few_points_keep_both_ends(run):
    _, out, _ = run("--points", "2")
    record = json.loads(out)
    assert [p["moves"] for p in record["points"]] == [0, 2]
    assert not record["complete"]


def test_assignments_come_on_request(run):
    _, out, _ = run("--assignments")
    assert all("assignment" in point for point in json.loads(out)["points"])


def test_the_staircase_is_drawn_for_every_group_and_always_the_same(run, tmp_path):
    file = tmp_path / "f.svg"
    run("--plot", str(file), groups=[GROUP, {**GROUP, "id": "h"}])
    once = file.read_text()
    assert "partitions moved" in once
    assert (tmp_path / "f-2.svg").exists()
    run("--plot", str(file))
    assert file.read_text() == once


def test_a_plot_of_another_kind_is_refused(run):
    code, out, err = run("--plot", "f.gif")
    assert (code, out) == (2, "")
    assert "f.gif" in err


def test_a_group_without_any_assignment_is_a_result_with_exit_code_1(run):
    members = [{**member, "capacity": 1} for member in GROUP["members"]]
    code, out, _ = run(groups=[{**GROUP, "members": members}])
    record = json.loads(out)
    assert (code, record["points"]) == (1, [])
    assert record["conflict"]


def test_the_table_has_a_row_for_each_point(run):
    _, out, _ = run("--format", "table")
    assert out.count("sum_of_squares") == 3
