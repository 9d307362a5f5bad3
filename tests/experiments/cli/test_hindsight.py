"""Fewest moves over the groups of a source, which are one group at successive rebalances."""

import json

import pytest


def group(*names, partitions=4):
    members = [{"id": name, "topics": ["t"]} for name in names]
    return {"topics": {"t": partitions}, "members": members}


STREAM = [group("a", "b"), group("a"), group("a", "b")]


@pytest.fixture
def run(kassay, tmp_path):
    def hindsight(*options, groups=STREAM):
        file = tmp_path / "stream.jsonl"
        file.write_text("\n".join(map(json.dumps, groups)))
        return kassay("forecast", file, "--hindsight", *options)

    return hindsight


def test_the_result_has_the_fewest_moves_in_total_and_those_of_assignors(run):
    done = run("--assignor", "sticky")
    assert done.code == 0
    assert done.record["moves"] == {"value": 2, "bound": 2}
    assert [one["moves"] for one in done.record["rebalances"]] == [0, 0, 2]
    assert done.record["partition_seconds_without_owner"]["cooperative"] == 2 * 3.5
    assert done.record["one_after_the_other"] == done.record["assignors"]["sticky"]["moves"] == 2
    assigned = [one["assignments"]["hindsight"] for one in done.record["rebalances"]]
    assert [[*map(len, one.values())] for one in assigned] == [[2, 2], [4], [2, 2]]


@pytest.mark.parametrize("share", ["0.5", "50%"])
def test_a_tolerance_of_the_maximum_load_saves_moves(run, share):
    record = run("--imbalance", "makespan", "--tolerance", share).record
    assert record["moves"] == {"value": 1, "bound": 1}


def test_weights_limit_the_maximum_load_of_each_rebalance(run):
    topics = {"t": {"partitions": 4, "weights": [5, 3, 3, 1]}}
    record = run("--tolerance", "0", groups=[{**one, "topics": topics} for one in STREAM]).record
    assert record["rule"] == "the minimum of the maximum load"
    assert record["moves"] == {"value": 2, "bound": 2}


def test_the_table_has_a_row_per_rebalance_and_the_totals(run):
    done = run("--assignor", "range", "--format", "table")
    assert "rebalance" in done.out
    assert "at least 2" in done.out


@pytest.mark.parametrize("option", ["--level=cross_rack", "--max-moves=1", "--events=x.yaml"])
def test_other_objectives_are_usage_errors(run, option):
    assert run(option).code == 2


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (1, "expected an object"),
        (group("a", partitions=-1), "topics['t']"),
        (
            {**group("a"), "topics": {"t": {"partitions": 2, "weights": [1, 2**44]}}},
            "the total load must be below",
        ),
    ],
)
def test_bad_input_gives_exit_code_2(run, last, message):
    done = run(groups=[group("a"), last])
    assert done.code == 2
    assert message in done.message
