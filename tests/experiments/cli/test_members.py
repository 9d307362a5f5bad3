import json

import pytest

from kassay.experiments.cli import main

GROUP = {
    "id": "g",
    "topics": {"t": 6, "u": 2},
    "members": [
        {"id": "a", "topics": ["t", "u"], "owned": {"t": [0, 1, 2, 3], "u": [0, 1]}},
        {"id": "b", "topics": ["t"], "owned": {"t": [4, 5]}},
    ],
}


@pytest.fixture
def run(capsys, tmp_path):
    def members(*options: str, group=GROUP):
        path = tmp_path / "group.json"
        path.write_text(json.dumps(group))
        code = 0
        try:
            main(["members", str(path), *options])
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return members


def test_the_number_needed_comes_with_what_its_neighbours_can_do(run):
    code, out, _ = run("--makespan", "3")
    record = json.loads(out)
    assert code == 0
    assert list(record) == ["id", "today", "needed", "bound", "proven", "sizes"]
    assert (record["today"], record["needed"], record["proven"]) == (2, 3, True)
    assert [size["members"] for size in record["sizes"]] == [2, 3, 4]
    assert record["sizes"][0] == {
        "members": 2,
        "enough": False,
        "makespan": {"value": 4, "bound": 4},
        "imbalance": 32,
        "movement": {"value": 2, "bound": 2},
    }


def test_a_sweep_shows_every_number_in_its_range_and_no_other(run):
    _, out, _ = run("--capacity", "4", "--from", "1", "--to", "4")
    record = json.loads(out)
    assert [size["members"] for size in record["sizes"]] == [1, 2, 3, 4]
    assert [size["enough"] for size in record["sizes"]] == [False, True, True, True]


def test_a_wish_out_of_reach_is_a_result_with_its_reason_and_exit_code_1(run):
    code, out, _ = run("--makespan", "1", "--like", "b")
    record = json.loads(out)
    assert (code, record["needed"]) == (1, None)
    assert "'u'" in record["reason"]


def test_resilience_tells_today_from_the_optimum(run):
    _, out, _ = run("--makespan", "4", "--resilience")
    found = json.loads(out)["resilience"]
    assert found["current"]["losses"] == {"a": 6, "b": 8}
    assert found["optimal"] == {
        "makespan": {"value": 8, "bound": 8},
        "lost": "b",
        "unserved": 2,
        "losses": {"a": 6, "b": 8},
    }


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--makespan", "1", "--capacity", "1"),
        ("--makespan", "1", "--from", "2"),
        ("--makespan", "1", "--from", "3", "--to", "2"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, options):
    code, out, err = run(*options)
    assert (code, out) == (2, "")
    assert "--" in err


def test_an_unknown_member_to_be_like_is_one_clear_line(run):
    code, _, err = run("--makespan", "1", "--like", "z")
    assert code == 2
    assert err.strip() == "kassay: no member 'z' in group 'g'"


def test_the_table_names_topics_that_too_few_members_would_leave(run):
    members = [{"id": "b", "topics": ["t"]}, {"id": "a", "topics": ["u"]}]
    _, out, _ = run("--makespan", "6", "--format", "table", group={**GROUP, "members": members})
    assert "no, nobody consumes u" in out


def test_the_table_marks_the_fewest_and_today(run):
    _, out, _ = run("--makespan", "3", "--resilience", "--format", "table")
    assert "yes, the fewest" in out
    assert "no, today" in out
    assert "optimal, b lost" in out
