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
        "uniform, consumer protocol",
    ]
    current, static = record["forecasts"][:2]
    assert current["change"] is None
    assert current["restart"]["rebalances"] == 6
    assert static["restart"]["rebalances"] == static["restart"]["moves"] == 0
    names = [one["configuration"] for one in record["forecasts"]]
    assert record["recommendation"]["configuration"] in names


def test_several_batch_sizes_are_compared(run):
    record = run("--at-once", 1, "--at-once", 2, "--assignor", "sticky").record
    assert [one["at_once"] for one in record["forecasts"]] == [1, 1, 1, 2, 2, 2]


def test_the_criterion_of_the_recommendation_can_be_chosen(run):
    best = run("--minimise", "moves").record["recommendation"]
    assert best["configuration"] == "range, static members"


def test_the_table_shows_the_recommendation_as_a_message(run):
    done = run("--format", "table")
    assert "recommended:" in done.err
    assert "cooperative-sticky" in done.out


def test_a_group_without_assignor_requires_the_current_one(run):
    group = {key: value for key, value in GROUP.items() if key != "assignor"}
    done = run(group=group)
    assert done.code == 2
    assert "--current" in done.record["error"]
    assert run("--current", "sticky", group=group).code == 0


def test_an_unknown_assignor_is_one_error_line(run):
    done = run("--assignor", "fastest")
    assert done.code == 2
    assert "'fastest'" in done.err
