import pytest
import yaml

from tests.experiments.cli.conftest import fixture_to_run
from tests.stored_cases import stored_cases

GROUP = stored_cases("groups")["idle member"]

run = fixture_to_run("scale", GROUP)


def test_each_step_has_the_optimum_the_own_assignor_and_the_best_one(run):
    record = run("--assignor", "range", "--from", 3, "--to", 4).record
    assert record.pop("steps") == [
        {
            "members": members,
            "optimum": {"value": least, "bound": least},
            "assignor": 3,
            "best": {"name": best, "load": least},
            "useful": members == 3,
        }
        for members, least, best in ((3, 3, "range"), (4, 2, "sticky"))
    ]
    helping = record.pop("members_that_help")
    assert helping == {"value": 6, "load": 2, "assignor": "range"}
    assert record == {"id": "Shop.Orders", "current": 3, "assignor": "range", "needed": None}


def test_the_members_for_a_load_are_found_in_three_ways(run):
    done = run("--assignor", "range", "--maximum-load", 2)
    assert done.code == 0
    assert done.record["needed"] == {
        "maximum_load": 2,
        "optimum": 4,
        "assignor": 6,
        "best": {"name": "sticky", "members": 4},
        "bound": 4,
    }


@pytest.mark.parametrize(
    ("options", "shown"),
    [((), range(1, 9)), (("--to", 3), range(1, 4)), (("--from", 4), range(4, 9))],
)
def test_from_and_to_have_defaults(run, options, shown):
    assert [step["members"] for step in run(*options).record["steps"]] == list(shown)


def test_an_impossible_target_gives_a_reason_and_exit_code_1(run):
    done = run("--maximum-load", 0)
    assert (done.code, done.record["needed"]["optimum"]) == (1, None)
    assert "alone has weight" in done.record["needed"]["reason"]
    assert "alone has weight" in run("--maximum-load", 0, "--format", "table").out


def test_topics_without_subscribers_are_listed(run):
    members = [{"id": "b", "topics": ["t"]}, {"id": "a", "topics": ["u"]}]
    group = {**GROUP, "members": members}
    [step, *_] = run("--to", 1, group=group).record["steps"]
    assert step["topics_without_subscribers"] == ["u"]
    assert "no subscriber of u" in run("--format", "table", group=group).out


def test_the_table_marks_the_current_number_and_numbers_without_use(run):
    out = run("--format", "table", "--assignor", "range", "--maximum-load", 3).out
    assert "current, useful" in out
    assert "not useful" in out
    assert "members for the maximum load 3" in out


def replicas(formula, lag):
    """Evaluate a formula of the form ``lag <= A ? x : lag <= B ? y : z``."""
    *cases, last = formula.split(" : ")
    for case in cases:
        condition, value = case.split(" ? ")
        if lag <= int(condition.removeprefix("lag <= ")):
            return int(value)
    return int(last)


@pytest.mark.parametrize(
    ("options", "useful"), [((), (1, 2, 3, 4, 8)), (("--assignor", "range"), (1, 2, 3, 6))]
)
def test_the_keda_formula_rounds_up_to_useful_numbers(run, options, useful):
    document = yaml.safe_load(run("--autoscaler", "keda", "--lag-threshold", 50, *options).out)
    spec = document["spec"]
    assert (document["kind"], document["metadata"]["name"]) == ("ScaledObject", "shop-orders")
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, useful[-1])
    assert spec["triggers"][0]["metadata"]["consumerGroup"] == "Shop.Orders"
    formula = spec["advanced"]["scalingModifiers"]["formula"]
    for lag in range(600):
        needed = max(1, -(-lag // 50))
        assert replicas(formula, lag) == next((n for n in useful if n >= needed), useful[-1])


def test_the_manifest_of_the_hpa_lists_the_useful_numbers_as_comments(run):
    done = run("--autoscaler", "hpa", "--from", 2)
    assert "#   4: 2" in done.out.splitlines()
    assert "#   5: 2" not in done.out.splitlines()
    spec = yaml.safe_load(done.out)["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)


def test_a_failure_of_the_own_assignor_is_shown(run):
    options = ["--assignor", "cmd:false", "--from", 3, "--to", 4]
    result = run(*options)
    assert result.code == 1
    assert [step["assignor"] for step in result.record["steps"]] == [None, None]
    assert all(step["failure"].startswith("failed: ") for step in result.record["steps"])
    assert run(*options, "--format", "table").out.count("cmd:false failed:") == 2
    assert "; cmd:false failed: " in run(*options, "--autoscaler", "keda").err


def test_several_groups_give_several_yaml_documents(kassay, write_groups):
    done = kassay("scale", write_groups(GROUP, {**GROUP, "id": "b"}), "--autoscaler", "keda")
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(done.out)] == ["shop-orders", "b"]
