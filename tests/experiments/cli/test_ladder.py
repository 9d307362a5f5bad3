import math

import pytest
import yaml

from tests.experiments.cli.conftest import fixture_to_run

GROUP = {
    "id": "Shop.Orders",
    "topics": {"t": 6, "u": 2},
    "members": [
        {"id": "a", "topics": ["t", "u"], "owned": {"t": [0, 1, 2, 3], "u": [0, 1]}},
        {"id": "b", "topics": ["t", "u"], "owned": {"t": [4, 5]}},
        {"id": "c", "topics": ["t", "u"]},
    ],
}

run = fixture_to_run("ladder", GROUP)


def test_the_steps_are_the_useful_numbers_of_members(run):
    record = run().record
    keys = ("members", "equal_up_to", "makespan")
    assert [tuple(step[key] for key in keys) for step in record["steps"]] == [
        (first, last, {"value": load, "bound": load})
        for first, last, load in ((1, 1, 8), (2, 2, 4), (3, 3, 3), (4, 7, 2), (8, 8, 1))
    ]
    assert record["topics"] == {"t": [1, 2, 3, 6], "u": [1, 2]}
    assert (record["current"], record["wasted_members"]) == (3, 0)


def test_a_partition_that_alone_has_the_maximum_load_is_named(kassay, write_groups):
    weighted = GROUP | {"topics": {"t": {"partitions": 6, "weights": [2, 9, 2, 2, 2, 2]}, "u": 2}}
    path = write_groups(weighted)
    steps = kassay("ladder", path).record["steps"]
    assert [step["limiting_partition"] for step in steps] == [None, None, "t-1"]
    table = kassay("ladder", path, "--format", "table").out
    assert "t-1 alone" in table


def test_numbers_for_a_topic_that_are_not_proven_are_marked(kassay, write_groups):
    weights = [258, 85, 77, 288, 67, 108, 126, 141, 69, 148, 112, 338, 61, 420, 71, 275, 114, 309]
    topic = {"partitions": len(weights), "weights": weights}
    path = write_groups(GROUP | {"topics": {"t": topic, "u": 2}})
    done = kassay("ladder", path, "--format", "table", "--work", 0)
    assert "t alone (not proven): " in done.out
    assert "u alone: 1, 2" in done.out
    assert kassay("ladder", path, "--work", 0).record["topics_not_proven"] == ["t"]


def test_the_table_marks_the_current_number(run):
    out = run("--format", "table", "--from", 2, "--to", 5).out
    assert "current number 3" in out
    assert "u alone: 1, 2" in out


def test_the_table_states_that_smaller_numbers_are_not_compared(run):
    out = run("--format", "table", "--from", 5, "--to", 7).out
    assert "smaller numbers" in out
    assert "smaller numbers" not in run("--format", "table", "--to", 7).out


@pytest.mark.parametrize(
    ("lag", "produced", "seconds"),
    [(800, 0, [80, 40, 30, 20, 10]), (800, 20, [None, None, 120, 40, 14]), (0, 200, [None] * 5)],
)
def test_the_drain_time_is_that_of_the_slowest_member(run, lag, produced, seconds):
    options = ("--consume-rate", 10, "--lag", lag, "--produce-rate", produced)
    steps = run(*options).record["steps"]
    # A member with n of 8 partitions has n/8 of the lag and of the rate.
    for step, expected in zip(steps, seconds, strict=True):
        share = step["makespan"]["value"] / 8
        if expected is not None:
            assert expected == math.ceil(round(share * lag / (10 - share * produced), 9))
        assert step["drain_seconds"] == expected


def test_the_drain_time_uses_the_lag_of_a_capture(kassay):
    done = kassay("ladder", "examples/lagging-group", "--consume-rate", 500)
    assert done.record["steps"][0]["drain_seconds"] == math.ceil(1319 / 500)
    table = kassay("ladder", "examples/lagging-group", "--consume-rate", 500, "--format", "table")
    assert "lag read in" in table.out
    assert "drain" not in table.out


def test_a_group_document_without_lag_requires_the_option(run):
    done = run("--consume-rate", 10)
    assert done.code == 2
    assert "lag" in done.record["error"]


def replicas(formula, lag):
    """Evaluate a formula of the form ``lag <= A ? x : lag <= B ? y : z``."""
    *cases, last = formula.split(" : ")
    for case in cases:
        condition, value = case.split(" ? ")
        if lag <= int(condition.removeprefix("lag <= ")):
            return int(value)
    return int(last)


def test_the_keda_formula_rounds_up_to_useful_numbers(run):
    document = yaml.safe_load(run("--autoscaler", "keda", "--lag-threshold", 50).out)
    spec = document["spec"]
    assert (document["kind"], document["metadata"]["name"]) == ("ScaledObject", "shop-orders")
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 8)
    assert spec["triggers"][0]["metadata"]["consumerGroup"] == "Shop.Orders"
    formula = spec["advanced"]["scalingModifiers"]["formula"]
    for lag in range(600):
        needed = max(1, -(-lag // 50))
        assert replicas(formula, lag) == next((n for n in (1, 2, 3, 4, 8) if n >= needed), 8)


def test_the_manifest_of_the_hpa_lists_the_useful_numbers_as_comments(run):
    done = run("--autoscaler", "hpa", "--from", 2)
    assert "#   4: 2" in done.out.splitlines()
    assert "#   5: 2" not in done.out.splitlines()
    spec = yaml.safe_load(done.out)["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)


def test_several_groups_give_several_yaml_documents(kassay, write_groups):
    done = kassay("ladder", write_groups(GROUP, {**GROUP, "id": "b"}), "--autoscaler", "keda")
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(done.out)] == ["shop-orders", "b"]


def test_lag_as_weight_is_rejected_unless_allowed(kassay):
    arguments = ("ladder", "examples/lagging-group", "--weights", "lag", "--to", 4)
    assert kassay(*arguments).code == 2
    assert kassay(*arguments, "--allow-lag").code == 0
