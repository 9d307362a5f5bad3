from tests.experiments.cli.conftest import LOPSIDED_GROUP

WEIGHTED = {
    "id": "w",
    "topics": {"t": {"partitions": 4, "weights": [6, 4, 1, 1]}},
    "members": [
        {"id": "a-0001", "topics": ["t"], "owned": {"t": [0, 1]}, "client_id": "app-1"},
        {"id": "b-0002", "topics": ["t"], "owned": {"t": [2, 3]}, "host": "/10.0.0.2"},
    ],
}


def test_the_first_row_is_the_group_as_it_is_and_the_second_its_optimum(kassay, write_groups):
    first, second = kassay("what-if", write_groups(LOPSIDED_GROUP)).record["scenarios"]
    assert (first["scenario"], first["makespan"]["value"]) == ("current", 4)
    assert first["loads"] == {"a": 4, "b": 0}
    assert (second["scenario"], second["makespan"]["value"]) == ("optimum", 2)
    assert second["movement"]["value"] == 2


def test_each_scenario_shows_the_result_of_the_assignor_of_the_group(kassay, write_groups):
    group = LOPSIDED_GROUP | {"assignor": "range", "topics": {"t": 5}}
    record = kassay("what-if", write_groups(group), "--members", "+1").record
    results = [scenario["assignor"] for scenario in record["scenarios"][1:]]
    assert [one["assignor"] for one in results] == ["range", "range"]
    assert [one["makespan"] for one in results] == [3, 2]
    chosen = kassay("what-if", write_groups(group), "--assignor", "sticky").record
    assert chosen["scenarios"][1]["assignor"]["assignor"] == "sticky"


def test_idle_members_and_the_ids_of_added_members_are_shown(kassay, write_groups):
    topics = {"t": 2, "u": 2}
    members = [{"id": name, "topics": ["t", "u"], "owned": {}} for name in "ab"]
    path = write_groups({"id": "g", "topics": topics, "members": members})
    done = kassay("what-if", path, "--members", "3,5", "--assignor", "range")
    scenarios = done.record["scenarios"]
    assert [scenario["idle"] for scenario in scenarios] == [2, 0, 0, 1]
    assert [scenario["assignor"]["idle"] for scenario in scenarios[1:]] == [0, 1, 3]
    assert "added members have the ids new-1, new-2, ...;" in done.err
    table = kassay("what-if", path, "--members", "5", "--assignor", "range", "--format", "table")
    assert "5 (1 idle)" in table.out
    assert "3 idle" in table.out
    unchanged = kassay("what-if", path, "--members", "-1", "--assignor", "range")
    assert "added members" not in unchanged.err


def test_what_if_takes_moves_tolerance_pins_and_forbidden_pairs(kassay, write_groups):
    path = write_groups(WEIGHTED)
    still = kassay("what-if", path, "--max-moves", "0").record["scenarios"][1]
    assert (still["makespan"]["value"], still["movement"]["value"]) == (10, 0)
    pinned = kassay("what-if", path, "--pin", "t-1=a-0001").record["scenarios"][1]
    assert pinned["movement"]["value"] == 3
    assert pinned["makespan"]["value"] == 6
    refused = kassay("what-if", path, "--forbid", "t=a-0001").record["scenarios"][1]
    assert refused["makespan"]["value"] == 12


def test_what_if_takes_racks_and_states_the_reads_across_racks(kassay, write_groups):
    topics = {"t": {"partitions": 2, "racks": [["left"], ["right"]]}}
    members = [
        {"id": "a", "topics": ["t"], "rack": "right", "owned": {"t": [0]}},
        {"id": "b", "topics": ["t"], "rack": "left", "owned": {"t": [1]}},
    ]
    path = write_groups({"id": "g", "topics": topics, "members": members})
    still = kassay("what-if", path).record["scenarios"][1]
    assert (still["movement"]["value"], "cross_rack" in still["proof"]) == (0, False)
    near = kassay("what-if", path, "--racks").record["scenarios"][1]
    assert (near["movement"]["value"], "cross_rack" in near["proof"]) == (2, True)
