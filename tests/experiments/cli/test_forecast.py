import json

import pytest

from tests.experiments.cli.conftest import LOPSIDED_GROUP, fixture_to_run

GROUP = {
    "id": "g",
    "topics": {"t": 6},
    "members": [
        {"id": f"pod-{n}", "topics": ["t"], "owned": {"t": [2 * n, 2 * n + 1]}, "generation": 3}
        for n in range(3)
    ],
    "state": "Stable",
    "protocol": "classic",
    "assignor": "range",
}

run = fixture_to_run("forecast", GROUP)


def test_the_output_compares_the_configurations(run):
    record = run().record
    assert [one["configuration"] for one in record["forecasts"]] == [
        "range, current",
        "range, static members",
        "sticky",
        "cooperative-sticky",
        "cooperative-sticky, from the default list",
        "uniform, consumer protocol",
        "optimum",
    ]
    assert [one["rolling_restarts"] for one in record["forecasts"][:-1]] == [0, 1, 1, 2, 1, 1]
    current, static = record["forecasts"][:2]
    assert current["change"] is None
    assert current["restart"]["rebalances"] == 6
    assert static["restart"]["rebalances"] == static["restart"]["moves"] == 0
    names = [one["configuration"] for one in record["forecasts"]]
    assert record["recommendation"]["configuration"] in names


def test_the_criterion_of_the_recommendation_can_be_chosen(run):
    best = run("--minimise", "moves").record["recommendation"]
    assert best["configuration"] == "range, static members"


def test_a_group_without_assignor_requires_the_current_one(run):
    group = {key: value for key, value in GROUP.items() if key != "assignor"}
    done = run(group=group)
    assert done.code == 2
    assert "--current" in done.record["error"]
    assert run("--current", "sticky", group=group).code == 0


@pytest.mark.parametrize("name", ["downtime", "pause", "session-timeout"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e18"])
def test_times_are_limited(run, name, value):
    done = run(f"--{name}", value)
    assert (done.code, done.out) == (2, "")
    assert f"--{name} must be at most 86400, got" in done.err


def test_sessions_that_end_between_two_heartbeats_are_usage_errors(run):
    assert run("--session-timeout", "4").code == 2


def test_the_plan_of_a_group_without_an_id_is_that_of_the_whole_file(kassay, write_groups):
    path = write_groups({"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    done = kassay("forecast", path, "--current=range", "--assignor=range", "--format=table")
    assert f"kassay plan {path}\n" in done.err
    assert kassay("plan", path).code == 0


@pytest.mark.parametrize(
    ("command", "options"), [("forecast", ["--assignor", "sticky"]), ("forecast", ["--members", 2])]
)
def test_one_group_of_a_source_can_be_selected(kassay, write_groups, command, options):
    groups = write_groups(GROUP, GROUP | {"id": "h"})
    assert kassay(command, groups, "--group", "h", *options).record["id"] == "h"
    done = kassay(command, groups, "--group", "x", *options)
    assert (done.code, done.out) == (2, "")
    assert "contains no group 'x'" in done.err


EVENTS = """
topics: {payments: 0}
events:
  - {at: 0s, do: restart, member: "pod-*", for: 10s, every: 40s}
  - {at: 10m, do: join, member: {id: new-, count: 3, topics: [t]}}
"""


@pytest.fixture
def events_file(tmp_path):
    file = tmp_path / "events.yaml"
    file.write_text(EVENTS)
    return file


def test_planned_events_are_compared_with_the_fewest_moves_over_all_rebalances(run, events_file):
    record = run("--events", events_file, "--assignor", "sticky", "--assignor", "range").record
    # Each restarted member gets two partitions back, and each new member gets one.
    assert record["moves"] == {"value": 9, "bound": 9}
    assert record["one_after_the_other"] == 9
    assert record["current"] == "range"
    # Of the 6 partitions, 4 are owned if a pod leaves (3 rebalances), and all otherwise (4).
    assert record["partition_seconds_without_owner"] == {
        "eager": 25.2,
        "cooperative": 31.5,
        "consumer": 21.6,
    }
    assert record["assignors"]["sticky"] == {
        "moves": 9,
        "partition_seconds_without_owner": {"eager": 25.2},
        "uneven_rebalances": 0,
    }
    assert record["assignors"]["range"]["moves"] > 9
    first, *_, last = record["rebalances"]
    assert (first["events"], first["members"]) == (["pod-0 leaves"], 2)
    assert (last["at"], last["members"], last["moves"]) == (600, 6, 3)
    assert set(last["clients"].values()) == {
        f"{name}-{n}" for name in ("pod", "new") for n in "012"
    }
    assert {name: len(one) for name, one in last["assignments"].items()} == {
        "hindsight": 6,
        "sticky": 6,
        "range": 6,
    }


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ("events: [{at: 0s, do: leave, member: pod-9}]", "unknown member 'pod-9'"),
        ('events: [{at: 0s, do: leave, member: "x*"}]', "no member matches 'x*'"),
        ('events: [{at: 0s, do: leave, member: "pod-*"}]', "at 0 ms, the group has no members"),
        ("events: [{at: 0s, do: stall, member: pod-1, for: 9s}]", "cannot have 'stall'"),
        ("{events: [], topics: {t: 3}}", "has topic 't' already"),
        ("events: []", "the events cause no rebalance"),
    ],
)
def test_wrong_events_are_errors_of_the_group(run, tmp_path, events, message):
    file = tmp_path / "events.yaml"
    file.write_text(events)
    done = run("--events", file)
    assert done.code == 2
    assert message in done.record["error"]


def test_events_can_add_the_first_members(kassay, write_groups, tmp_path):
    events = tmp_path / "events.yaml"
    events.write_text("events: [{at: 1m, do: join, member: {id: a, topics: [t]}}]")
    path = write_groups({"id": "g", "topics": {"t": 4}, "members": []})
    record = kassay("forecast", path, "--events", events, "--assignor", "range").record
    assert record["moves"] == {"value": 0, "bound": 0}
    assert [*map(len, record["rebalances"][0]["assignments"]["range"].values())] == [4]


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


def test_the_given_current_assignor_rebalances_changed_groups(kassay, write_groups):
    path = write_groups({"id": "g", "topics": {"t": 4}, "members": [{"id": "a", "topics": ["t"]}]})
    last = entries(kassay, path, "--members=+1", "--current=range")[-1]
    assert [one["assignor"] for one in last["assignors"]] == ["range"]
    assert kassay("forecast", path, "--members=+1", "--current=none").code == 2


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


def stream_group(*names, partitions=4):
    members = [{"id": name, "topics": ["t"]} for name in names]
    return {"topics": {"t": partitions}, "members": members}


STREAM = [stream_group("a", "b"), stream_group("a"), stream_group("a", "b")]


@pytest.fixture
def hindsight(kassay, tmp_path):
    def run(*options, groups=STREAM):
        file = tmp_path / "stream.jsonl"
        file.write_text("\n".join(map(json.dumps, groups)))
        return kassay("forecast", file, "--hindsight", *options)

    return run


def test_the_result_has_the_fewest_moves_in_total_and_those_of_assignors(hindsight):
    done = hindsight("--assignor", "sticky")
    assert done.code == 0
    assert done.record["moves"] == {"value": 2, "bound": 2}
    assert [one["moves"] for one in done.record["rebalances"]] == [0, 0, 2]
    assert done.record["partition_seconds_without_owner"]["cooperative"] == 2 * 3.5
    assert done.record["one_after_the_other"] == done.record["assignors"]["sticky"]["moves"] == 2
    assigned = [one["assignments"]["hindsight"] for one in done.record["rebalances"]]
    assert [[*map(len, one.values())] for one in assigned] == [[2, 2], [4], [2, 2]]


@pytest.mark.parametrize("share", ["0.5", "50%"])
def test_a_tolerance_of_the_maximum_load_saves_moves(hindsight, share):
    record = hindsight("--imbalance", "makespan", "--tolerance", share).record
    assert record["moves"] == {"value": 1, "bound": 1}


def test_weights_limit_the_maximum_load_of_each_rebalance(hindsight):
    topics = {"t": {"partitions": 4, "weights": [5, 3, 3, 1]}}
    record = hindsight(
        "--tolerance", "0", groups=[{**one, "topics": topics} for one in STREAM]
    ).record
    assert record["rule"] == "the minimum of the maximum load"
    assert record["moves"] == {"value": 2, "bound": 2}


def test_the_table_has_a_row_per_rebalance_and_the_totals(hindsight):
    done = hindsight("--assignor", "range", "--format", "table")
    assert "rebalance" in done.out
    assert "at least 2" in done.out


@pytest.mark.parametrize("option", ["--level=cross_rack", "--max-moves=1", "--events=x.yaml"])
def test_other_objectives_are_usage_errors(hindsight, option):
    assert hindsight(option).code == 2


@pytest.mark.parametrize("option", ["--members=+1", "--partitions=t=8", "--like=a", "--set=a=1"])
def test_sequences_cannot_be_combined_with_changes(hindsight, option):
    done = hindsight(option)
    assert (done.code, done.out) == (2, "")
    assert "cannot be combined with --members" in done.err


def test_a_rebalance_without_members_moves_nothing(hindsight):
    empty = {"topics": {"t": 4}, "members": []}
    record = hindsight(groups=[stream_group("a"), empty]).record
    assert record["moves"] == {"value": 0, "bound": 0}
    assert record["rebalances"][1]["members"] == 0


@pytest.mark.parametrize("measure", ["leximax", "sum_of_squares"])
def test_the_error_of_another_measure_than_the_maximum_load_names_the_weights(hindsight, measure):
    topics = {"t": {"partitions": 4, "weights": [5, 3, 3, 1]}}
    done = hindsight("--imbalance", measure, groups=[{**STREAM[0], "topics": topics}])
    assert done.code == 2
    assert f"if weights or speeds differ, a trajectory requires makespan, got {measure}" in (
        done.message
    )


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (1, "expected an object"),
        (stream_group("a", partitions=-1), "topics['t']"),
        (
            {**stream_group("a"), "topics": {"t": {"partitions": 2, "weights": [1, 2**44]}}},
            "the total load must be below",
        ),
    ],
)
def test_bad_input_gives_exit_code_2(hindsight, last, message):
    done = hindsight(groups=[stream_group("a"), last])
    assert done.code == 2
    assert message in done.message
