from tests.experiments.cli.conftest import LOPSIDED_GROUP

WEIGHTED = {
    "id": "w",
    "topics": {"t": {"partitions": 4, "weights": [6, 4, 1, 1]}},
    "members": [
        {"id": "a-0001", "topics": ["t"], "owned": {"t": [0, 1]}, "client_id": "app-1"},
        {"id": "b-0002", "topics": ["t"], "owned": {"t": [2, 3]}, "host": "/10.0.0.2"},
    ],
}


def entries(kassay, path, *options):
    return kassay("forecast", path, "--members", "+0", *options).record["forecasts"]


def test_the_first_row_is_the_group_as_it_is_and_the_second_its_optimum(kassay, write_groups):
    first, second, _ = entries(kassay, write_groups(LOPSIDED_GROUP))
    assert (first["configuration"], first["makespan"]["value"]) == ("current", 4)
    assert first["loads"] == {"a": 4, "b": 0}
    assert (second["configuration"], second["makespan"]["value"]) == ("optimum", 2)
    assert second["movement"]["value"] == 2


def test_each_scenario_shows_the_result_of_the_assignor_of_the_group(kassay, write_groups):
    group = LOPSIDED_GROUP | {"assignor": "range", "topics": {"t": 5}}
    record = kassay("forecast", write_groups(group), "--members", "+1").record
    results = [scenario["assignors"][0] for scenario in record["forecasts"][1:]]
    assert [one["assignor"] for one in results] == ["range", "range"]
    assert [one["makespan"] for one in results] == [3, 2]
    chosen = kassay(
        "forecast", write_groups(group), "--members", "+0", "--assignor", "sticky"
    ).record
    assert chosen["forecasts"][1]["assignors"][0]["assignor"] == "sticky"


def test_idle_members_and_the_ids_of_added_members_are_shown(kassay, write_groups):
    topics = {"t": 2, "u": 2}
    members = [{"id": name, "topics": ["t", "u"], "owned": {}} for name in "ab"]
    path = write_groups({"id": "g", "topics": topics, "members": members})
    done = kassay("forecast", path, "--members", "3,5", "--assignor", "range")
    scenarios = done.record["forecasts"]
    assert [scenario["idle"] for scenario in scenarios] == [2, 0, 0, 1]
    assert [scenario["assignors"][0]["idle"] for scenario in scenarios[1:]] == [0, 1, 3]
    assert "added members have the ids new-1, new-2, ...;" in done.err
    table = kassay("forecast", path, "--members", "5", "--assignor", "range", "--format", "table")
    assert "5 (1 idle)" in table.out
    assert "3 idle" in table.out
    unchanged = kassay("forecast", path, "--members", "-1", "--assignor", "range")
    assert "added members" not in unchanged.err


def test_forecasts_of_changes_take_moves_tolerance_pins_and_forbidden_pairs(kassay, write_groups):
    path = write_groups(WEIGHTED)
    still = entries(kassay, path, "--max-moves", "0")[1]
    assert (still["makespan"]["value"], still["movement"]["value"]) == (10, 0)
    pinned = entries(kassay, path, "--pin", "t-1=a-0001")[1]
    assert pinned["movement"]["value"] == 3
    assert pinned["makespan"]["value"] == 6
    refused = kassay("forecast", path, "--members", "+0", "--forbid", "t=a-0001").record[
        "forecasts"
    ][1]
    assert refused["makespan"]["value"] == 12


def test_forecasts_of_changes_take_racks_and_states_the_reads_across_racks(kassay, write_groups):
    topics = {"t": {"partitions": 2, "racks": [["left"], ["right"]]}}
    members = [
        {"id": "a", "topics": ["t"], "rack": "right", "owned": {"t": [0]}},
        {"id": "b", "topics": ["t"], "rack": "left", "owned": {"t": [1]}},
    ]
    path = write_groups({"id": "g", "topics": topics, "members": members})
    still = entries(kassay, path)[1]
    assert (still["movement"]["value"], "cross_rack" in still["proof"]) == (0, False)
    near = entries(kassay, path, "--level=cross_rack", "--level=movement")[1]
    assert (near["movement"]["value"], "cross_rack" in near["proof"]) == (2, True)
