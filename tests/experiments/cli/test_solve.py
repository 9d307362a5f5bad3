import json

import pytest

from tests.experiments.cli.conftest import LOPSIDED_GROUP
from tests.experiments.cli.test_help import modules_after
from tests.stored_cases import stored_cases


@pytest.fixture
def run(kassay, write_groups):
    def solve(group, *options):
        return kassay("solve", write_groups(group), *options)

    return solve


def test_the_record_has_the_documented_keys_in_their_order(run):
    done = run(LOPSIDED_GROUP)
    record = done.record
    assert list(record) == stored_cases("keys_of_solutions")
    assert done.code == 0
    assert record["status"] == "optimal"
    assert record["imbalance"] == {"measure": "sum_of_squares", "value": 8, "bound": 8}
    assert record["movement"] == {"value": 2, "bound": 2}
    assert record["proof"] == {
        "imbalance": "proven by certificate",
        "movement": "proven by certificate",
    }
    assert record["loads"] == {"a": 2, "b": 2}


def test_max_moves_limits_the_moves(run):
    record = run(LOPSIDED_GROUP, "--max-moves", 1).record
    assert (record["imbalance"]["value"], record["movement"]["value"]) == (10, 1)


def test_a_tolerance_allows_fewer_moves(run):
    record = run(LOPSIDED_GROUP, "--imbalance", "makespan", "--tolerance", 0.5).record
    assert (record["imbalance"]["value"], record["movement"]["value"]) == (3, 1)


def test_levels_after_movement_are_solved(run):
    record = run(LOPSIDED_GROUP, "--level", "members_used", "--level", "topic_spread").record
    assert record["members_used"] == {"value": 2, "bound": 2}
    assert record["proof"]["members_used"] == "proven by search"


def test_an_infeasible_group_exits_with_1_and_names_the_conflict(run):
    done = run(LOPSIDED_GROUP, "--max-partitions", 1)
    record = done.record
    assert (done.code, record["status"], record["assignment"]) == (1, "infeasible", None)
    assert record["conflict"] == ["every member has at most 1 partition"]


@pytest.mark.parametrize("topic", [5, {"partitions": 5, "weights": [5, 4, 3, 2, 9]}])
def test_a_small_group_loads_no_large_library(topic, tmp_path):
    group = {
        "id": "g",
        "topics": {"t": topic, "u": 3},
        "members": [
            {"id": "a", "topics": ["t", "u"], "owned": [["t", 0], ["t", 1], ["u", 0]]},
            {"id": "b", "topics": ["t", "u"]},
            {"id": "c", "topics": ["u"]},
        ],
    }
    path = tmp_path / "group.json"
    path.write_text(json.dumps(group))
    large = {"ortools", "scipy", "pandas", "networkx", "numpy.ma", "numpy.random"}
    # Equal weights need the flows of OR-Tools, which load fast.
    permitted = {"ortools"} if topic == 5 else set()
    assert modules_after("solve", path) & large <= permitted
