import re

import pytest

from tests.experiments.cli.conftest import LOPSIDED_GROUP, fixture_to_run
from tests.stored_cases import stored_cases

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
    assert current["restart"]["rebalances"] == {"mean": 6, "low": 6, "high": 6}
    assert static["restart"]["rebalances"]["high"] == static["restart"]["moves"]["high"] == 0
    assert all(one["samples"] == 20 for one in record["forecasts"][:-1])
    names = [one["configuration"] for one in record["forecasts"]]
    assert record["recommendation"]["configuration"] in names


def test_the_time_between_polls_can_be_given(run):
    def seconds(poll):
        done = run("--poll", poll, "--samples", "6", "--assignor", "sticky")
        return done.record["forecasts"][0]["restart"]["unowned_seconds"]

    assert seconds("0.01")["high"] < seconds("5")["low"]


def test_the_criterion_of_the_recommendation_can_be_chosen(run):
    best = run("--minimise", "moves").record["recommendation"]
    assert best["configuration"] == "range, static members"


def test_a_group_without_assignor_requires_the_current_one(run):
    group = {key: value for key, value in GROUP.items() if key != "assignor"}
    done = run(group=group)
    assert done.code == 2
    assert "--current" in done.record["error"]
    assert run("--current", "sticky", group=group).code == 0
    done = run("--members", "+0", group=GROUP | {"members": []})
    assert "has no members" in done.record["error"]


def test_the_plan_of_a_group_without_an_id_is_that_of_the_whole_file(kassay, write_groups):
    path = write_groups({"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    done = kassay("forecast", path, "--current=range", "--assignor=range", "--format=table")
    assert f"kassay plan {path}\n" in done.err
    assert kassay("plan", path).code == 0


@pytest.mark.parametrize("options", [["--assignor", "sticky"], ["--members", 2]])
def test_one_group_of_a_source_can_be_selected(kassay, write_groups, options):
    groups = write_groups(GROUP, GROUP | {"id": "h"})
    assert kassay("forecast", groups, "--group", "h", *options).record["id"] == "h"


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


def test_each_planned_event_is_predicted_and_compared_with_the_fewest_moves(run, events_file):
    record = run("--events", events_file, "--samples", "4").record
    *events, optimum = record["forecasts"]
    assert record["current"] == "range"
    assert [one["event"] for one in events] == [
        *(f"pod-{n} restart" for n in range(3)),
        "new-0 join, new-1 join, new-2 join",
    ]
    assert [one["change"]["rebalances"]["mean"] for one in events] == [2, 2, 2, 1]
    assert (events[-1]["members"], events[-1]["maximum_load"]["mean"]) == (6, 1)
    moves = sum(one["change"]["moves"]["mean"] for one in events)
    # Each restarted member gets two partitions back, and each new member gets one.
    assert optimum["change"]["moves"] == {"mean": 9, "low": 9, "high": 9}
    assert moves > 9


def test_events_are_predicted_with_each_given_assignor(run, events_file):
    done = run("--events", events_file, "--assignor", "sticky", "--assignor", "range")
    names = [one["configuration"] for one in done.record["forecasts"]]
    assert names == [*["sticky"] * 4, *["range"] * 4, "optimum"]


@pytest.mark.parametrize(("events", "message"), stored_cases("wrong_events"))
def test_wrong_events_are_errors_of_the_group(run, tmp_path, events, message):
    file = tmp_path / "events.yaml"
    file.write_text(events)
    done = run("--events", file)
    assert done.code == 2
    assert message in done.out + done.err


WEIGHTED = stored_cases("groups")["weights and clients"]


def entries(kassay, path, *options):
    done = kassay("forecast", path, "--current=range", "--samples=3", *options)
    return {one["configuration"]: one for one in done.record["forecasts"]}


def test_each_number_of_members_has_its_prediction_and_its_optimum(kassay, write_groups):
    group = LOPSIDED_GROUP | {"topics": {"t": 5}}
    found = entries(kassay, write_groups(group), "--members=+0..+1")
    assert list(found) == [
        *("range, current", "range, members +0", "range, members +1"),
        *("optimum", "optimum, members +0", "optimum, members +1"),
    ]
    assert found["range, members +0"]["change"] is None
    added = found["range, members +1"]
    assert added["change"]["rebalances"]["mean"] == 1
    assert added["maximum_load"] == {"mean": 2, "low": 2, "high": 2}
    assert (added["members"], found["optimum, members +1"]["maximum_load"]["mean"]) == (3, 2)
    assert found["optimum"]["movement"] == {"value": 1, "bound": 1}


def test_a_table_has_one_row_per_state_and_divides_no_word(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = run("--samples=2", "--members=+0..+1", "--format=table").out
    assert re.findall(r"│ g +│ (\S.*?\S) +│", out) == [
        *("now", "range, current", "range, members +1", "optimum", "optimum, members +1")
    ]
    assert "s without" in out
    out = run("--samples=2", "--format=table").out
    assert {"cooperative-sticky", "cooperative-sticky,"} < set(out.split())


def test_an_assignor_is_changed_before_the_number_of_members(kassay, write_groups):
    found = entries(kassay, write_groups(GROUP), "--members=5", "--assignor=sticky")
    row = found["sticky, 5 members"]
    assert row["rolling_restarts"] == 1
    assert row["change"]["rebalances"]["mean"] == 7
    assert row["maximum_load"]["mean"] == 2


def test_without_a_known_assignor_only_optima_or_given_assignors_are_shown(kassay, write_groups):
    path = write_groups({"id": "g", "topics": {"t": 4}, "members": [{"id": "a", "topics": ["t"]}]})
    done = kassay("forecast", path, "--members=+1")
    assert [one["configuration"] for one in done.record["forecasts"]] == [
        "optimum",
        "optimum, members +1",
    ]
    assert "give --current NAME" in done.record["recommendation"]["reason"]
    done = kassay("forecast", path, "--members=+1", "--assignor=sticky", "--assignor=range")
    names = [one["configuration"] for one in done.record["forecasts"]]
    assert names[1::2] == ["sticky, members +1", "range, members +1", "optimum, members +1"]
    assert kassay("forecast", path, "--members=+1", "--current=none").code == 2


def test_new_partitions_and_members_like_another_one_apply_together(kassay, write_groups):
    path = write_groups(WEIGHTED)
    options = ("--members=3", "--partitions=t=6", "--like=a-0001")
    found = entries(kassay, path, *options)["range, t 6 partitions, 3 members"]
    # A new partition has the mean weight of the topic, 3.
    assert found["maximum_load"]["mean"] == 10
    assert kassay("forecast", path, "--current=range", *options, "--format=table").code == 0


def test_forecasts_of_changes_ignore_racks(kassay, write_groups):
    topics = {"t": {"partitions": 2, "racks": [["left"], ["right"]]}}
    members = [
        {"id": "a", "topics": ["t"], "rack": "right", "owned": {"t": [0]}},
        {"id": "b", "topics": ["t"], "rack": "left", "owned": {"t": [1]}},
    ]
    path = write_groups({"id": "g", "topics": topics, "members": members})
    still = entries(kassay, path, "--members=+0")["optimum"]
    assert (still["movement"]["value"], "cross_rack" in still["proof"]) == (0, False)
