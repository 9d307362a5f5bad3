import json

import pytest

from kassay.experiments.cli import main

TWO = {
    "topics": {"t": 4},
    "members": [
        {"id": "a", "topics": ["t"], "owned": {"t": [0, 1, 2, 3]}},
        {"id": "b", "topics": ["t"]},
    ],
}


@pytest.fixture
def run(capsys, tmp_path):
    def solve(group: object, *options: str):
        path = tmp_path / "group.json"
        path.write_text(json.dumps(group))
        code = 0
        try:
            main(["solve", str(path), *options])
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return solve


def test_the_record_has_the_documented_keys_in_their_order(run):
    code, out, _ = run({"id": "g", **TWO})
    record = json.loads(out)
    assert list(record) == [
        "id",
        "status",
        "method",
        "imbalance",
        "movement",
        "loads",
        "assignment",
        "seconds",
    ]
    assert code == 0
    assert record["status"] == "optimal"
    assert record["imbalance"] == {"measure": "sum_of_squares", "value": 8, "bound": 8}
    assert record["movement"] == {"value": 2, "bound": 2}
    assert record["loads"] == {"a": 2, "b": 2}


def test_at_most_k_moves_are_made_when_asked(run):
    record = json.loads(run(TWO, "--max-moves", "1")[1])
    assert (record["imbalance"]["value"], record["movement"]["value"]) == (10, 1)


def test_a_tolerance_buys_fewer_moves(run):
    record = json.loads(run(TWO, "--imbalance", "makespan", "--tolerance", "0.5")[1])
    assert (record["imbalance"]["value"], record["movement"]["value"]) == (3, 1)


def test_further_levels_follow_movement(run):
    record = json.loads(run(TWO, "--then", "members_used", "--then", "topic_spread")[1])
    assert record["members_used"] == {"value": 2, "bound": 2}


def test_an_infeasible_group_exits_with_1_and_names_the_conflict(run):
    code, out, _ = run(TWO, "--max-partitions", "1")
    record = json.loads(out)
    assert (code, record["status"], record["assignment"]) == (1, "infeasible", None)
    assert record["conflict"] == ["every member has at most 1 partitions"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--imbalance", "leximax", "--tolerance", "0.1"), "leximax takes no tolerance"),
        (("--colocate", "t,u"), "no topic 'u'"),
        (("--max-moves", "-1"), "--max-moves"),
        (("--then", "speed"), "no level 'speed'"),
        (("--imbalance", "speed"), "--imbalance"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_what_cannot_be_asked_for_is_one_clear_error(run, options, reason):
    code, _, err = run(TWO, *options)
    assert code == 2
    assert reason in err
    assert "Traceback" not in err


def test_a_table_can_be_read(run):
    code, out, _ = run({"id": "g", **TWO}, "--format", "table")
    assert code == 0
    assert "group" in out
