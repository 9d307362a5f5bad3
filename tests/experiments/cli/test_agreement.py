"""Survey, plan, scale and forecast give one answer about a group."""

import json
import re
from dataclasses import replace

import pytest

from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Assumed
from tests.experiments.prediction.test_one_number import lost_rebalance

ACTIONS = {"trigger": "rebalance", "restart": "restart", "make": "static", "switch": "switch"}
SHORT, LONG = (1, 3, 5, 6, 7, 8), (0, 2, 4, *range(9, 60))
KNOWN = {}


def case(seed):
    """Return a group; every third one has assumed subscriptions, read as assigned or as equal."""
    group = replace(lost_rebalance(seed), id=f"g{seed}")
    if seed % 3:
        return group
    owned = [tuple(sorted({topic for topic, _ in one.owned})) for one in group.members]
    members = tuple(
        replace(one, subscription=topics, assumed=[Assumed.TOPICS])
        for one, topics in zip(group.members, owned, strict=True)
    )
    if seed % 2 == 0:
        members = tuple(replace(one, assumed=[Assumed.TOPICS]) for one in group.members)
    return replace(group, members=members)


@pytest.fixture(params=[*SHORT, *(pytest.param(one, marks=pytest.mark.long) for one in LONG)])
def answers(request, kassay, write_groups, tmp_path):
    """Run the commands on a group, once. Return the JSON of each, and two texts."""
    if request.param not in KNOWN:
        KNOWN[request.param] = run_all(request.param, kassay, write_groups, tmp_path)
    return KNOWN[request.param]


def run_all(seed, kassay, write_groups, tmp_path):
    file = write_groups(group_document(case(seed)))
    found = {
        name: kassay(name, file, "--format", "jsonl").record
        for name in ("survey", "scale", "forecast")
    }
    text = kassay("plan", file, "-o", tmp_path / "plan", "--format", "text").out
    found["plan"] = json.loads((tmp_path / "plan" / "plan.json").read_text())
    return found, text.partition("\n\n")[0], kassay("survey", file, "--format", "table").out


def kind_of(action):
    return ACTIONS.get(action.split()[0], "none")


def test_one_reading_is_shown_first_and_stated_once(answers):
    found, head, survey = answers
    assert len({one.get("condition") for one in found.values()}) == 1
    condition = found["plan"]["condition"]
    for text in (head, survey):
        assert condition is None or text.count(condition) == 1
    for name in ("survey", "plan"):
        assert "subscribes" not in f"{found[name]['cause']}{found[name]['to_do']}"


def test_one_cause_and_one_action_are_named(answers):
    found, head, survey = answers
    plan, row = found["plan"], found["survey"]
    assert row["cause"] == plan["cause"]
    named = re.search("kassay plan,? (.*)", row["to_do"])
    if named is None:
        assert plan["to_do"].startswith(row["to_do"])
    elif named[1] == "compares their costs":
        assert any(one in row["to_do"] for one in re.findall(r"to ([\w-]+)", plan["to_do"]))
    elif named[1] == "names the cheapest way":
        assert kind_of(plan["to_do"]) in ("rebalance", "restart")
    assert not re.search("(Run|;) kassay plan", survey)
    assert f"To do: {plan['to_do'][0].upper()}{plan['to_do'][1:]}." in head
    topics = re.search("Not considered: topics: (.* are on .*) [(]", head)
    assert (topics is None) or row["cause"] or "uneven topic" in survey


def test_a_forecast_recommends_the_action_of_the_plan_or_states_the_difference(answers):
    found, _, _ = answers
    best, to_do = found["forecast"]["recommendation"], found["plan"]["to_do"]
    if "for later rolling restarts only" in best["reason"]:
        assert kind_of(to_do) == "none"
        return
    name, _, rest = best["configuration"].partition(", ")
    kinds = {"current": "none", "rebalance": "rebalance", "static members": "static"}
    kind = "restart" if rest.startswith("restart of") else kinds.get(rest, "switch")
    if to_do.startswith("check subscriptions"):  # if they are equal, a rebalance follows
        assert kind in ("none", "rebalance", "restart")
    else:
        assert kind == kind_of(to_do)
    assert kind != "switch" or name.removeprefix("server-") in to_do


def test_the_members_that_help_are_the_first_useful_number(answers):
    found, head, _ = answers
    scale, more = found["scale"], found["survey"]["members_that_help"]
    assert scale["members_that_help"] == more
    useful = {one["members"] for one in scale["steps"] if one["useful"]}
    larger = [one for one in useful if one > scale["current"]]
    assert more["value"] == (min(larger) if larger else None)
    given = re.search(r"More members: (\d+) member", head)
    assert more["value"] == (None if given is None else int(given[1]))
    [now] = [one for one in scale["steps"] if one["members"] == scale["current"]]
    named = re.search(r"^switch .*? to ([\w-]+)", found["plan"]["to_do"])
    loads = {
        one["assignor"].removeprefix("server-"): one["measures"]["makespan"]
        for one in found["plan"]["assignors"]
        if one["measures"]
    }
    best = now["best"]["name"].removeprefix("server-")
    assert named is None or best == named[1] or loads[best] != loads.get(named[1])
