import pytest

from tests.experiments.cli.conftest import fixture_to_run

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
