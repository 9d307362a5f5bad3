"""Outputs of groups with different speeds have loads in the unit of the input."""

import json
import re

import pytest

WEIGHTS = (97, 89, 55, 13, 8, 8, 5, 3)
OWNED = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "c": []}
SPEEDS = {"a": 9973, "b": 8887, "c": 8353}
LOWEST = 92 / 8887 * 9973  # of 102, 92 and 84 on a, b and c: 103.2
COMMANDS = (
    "solve",
    "compare",
    "survey",
    "forecast --members +0",
    "scale --like a --maximum-load 104",
)


@pytest.fixture
def file(tmp_path):
    members = [
        {"id": name, "topics": ["t"], "owned": {"t": OWNED[name]}, "speed": SPEEDS[name]}
        for name in OWNED
    ]
    topics = {"t": {"partitions": len(WEIGHTS), "weights": WEIGHTS}}
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"id": "g", "topics": topics, "members": members}))
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_has_no_multiples_of_the_speeds(kassay, file, command):
    done = kassay(*command.split(), file, "--format", "table")
    assert done.code == 0
    assert re.search(rf"\b{round(LOWEST)}\b", done.out)
    assert not re.search(r"\d{8}", done.out.replace(",", ""))


@pytest.mark.parametrize(("target", "needed"), [(103, 4), (104, 3), (148, 2)])
def test_a_target_of_the_maximum_load_has_the_unit_of_the_input(kassay, file, target, needed):
    done = kassay("scale", file, "--like", "a", "--maximum-load", target)
    assert json.loads(done.out)["needed"]["optimum"] == needed


def test_scenarios_with_fewer_members_have_comparable_loads(kassay, file):
    done = kassay("forecast", file, "--members", "2..3", "--like", "a")
    loads = [one["maximum_load"]["mean"] for one in done.record["forecasts"]]
    assert done.record["current_maximum_load"] == 254
    assert loads == [round(LOWEST), 147, round(LOWEST)]


def test_json_has_the_unit_of_the_input_and_verify_accepts_it(kassay, file, tmp_path):
    done = kassay("solve", file, "--imbalance", "makespan", "--certificate")
    assert done.record["imbalance"]["value"] == round(LOWEST)
    (tmp_path / "solution.json").write_text(done.out)
    options = ("--imbalance", "makespan", "--assignment", tmp_path / "solution.json")
    assert kassay("verify", file, *options).record["levels"][0]["value"] == round(LOWEST)
    (compared,) = kassay("compare", file, "--assignor", "range").record["comparisons"]
    assert compared["makespan"]["optimum"] == round(LOWEST)
