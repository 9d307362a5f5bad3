"""The Java checker of the vectors accepts them and refuses edits."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import assignment_document, parse_group

FOLDER = Path(__file__).parents[1] / "vectors"
GROUPS = [json.loads(line) for line in (FOLDER / "groups.jsonl").read_text().splitlines()]
GOALS = [json.loads(line) for line in (FOLDER / "goals.jsonl").read_text().splitlines()]
OWNED = next(i for i, one in enumerate(GROUPS) if one["members"][0].get("owned"))


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[int, str]]:
    """Compile the checker. Return a function that runs it on groups, goals and answers."""
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    folder = tmp_path_factory.mktemp("vectors")
    subprocess.run(["javac", "-d", folder, FOLDER / "Check.java"], check=True)

    def run(groups: list[Any], goals: list[Any], answers: list[Any] | None = None) -> Any:
        for name, documents in {"groups": groups, "goals": goals, "answers": answers}.items():
            text = "".join(json.dumps(one) + "\n" for one in documents or ())
            (folder / f"{name}.jsonl").write_text(text)
        files = [] if answers is None else [folder / "answers.jsonl"]
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", folder]
        command = ["java", *options, "Check", folder, *files]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_checker_is_short_and_accepts_300_groups(checker):
    assert len((FOLDER / "Check.java").read_text().splitlines()) <= 120
    assert checker(GROUPS, GOALS) == (0, "300 groups, 0 errors in the minima\n")


def assignment(goals):
    return goals["goals"]["balance"]["assignment"]


def fullest(goals):
    return max(assignment(goals).values(), key=len)


def lower_minimum(position):
    def edit(_, goals):
        goals["goals"]["spread"]["minimum"][position] -= 1

    return edit


EDITS = {
    "lower topic spread": lower_minimum(0),
    "lower sum of squares": lower_minimum(1),
    "other moves": lower_minimum(2),
    "missing partition": lambda _, goals: fullest(goals).pop(),
    "partition assigned twice": lambda _, goals: fullest(goals).append(fullest(goals)[0]),
    "unknown member": lambda _, goals: assignment(goals).update({"x": [fullest(goals).pop()]}),
    "price of a member": lambda group, goals: goals["goals"]["balance"]["prices"]["members"].update(
        {group["members"][0]["id"]: 10**9}
    ),
    "missing prices": lambda _, goals: goals["goals"]["balance"]["prices"].update({"topics": {}}),
    "more partitions": lambda group, _: group["topics"].update(
        {group["members"][0]["topics"][0]: 99}
    ),
    "another member": lambda group, _: group["members"].append({"id": "x", "topics": ["x"]}),
    "another owner": lambda group, _: group["members"][0]["owned"].pop(),
    "another subscription": lambda group, _: group["members"][0]["topics"].clear(),
    "another group": lambda group, _: group.update({"id": "other"}),
    "missing goal": lambda _, goals: goals["goals"].pop("balance"),
    "another name of a goal": lambda _, goals: goals["goals"].update(
        {"other": goals["goals"].pop("balance")}
    ),
    "fraction": lambda _, goals: goals["goals"]["balance"]["minimum"].__setitem__(1, 73.5),
    "partition owned twice": lambda group, _: group["members"][0]["owned"].append(
        group["members"][0]["owned"][0]
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_checker_refuses_an_edit(checker, edit):
    group, goals = json.loads(json.dumps((GROUPS[OWNED], GOALS[OWNED])))
    assert checker([group], [goals])[0] == 0
    EDITS[edit](group, goals)
    code, text = checker([group], [goals])
    assert code == 1
    assert "Exception" not in text


def test_the_checker_refuses_prices_beyond_64_bits(checker):
    group = {"id": "g", "topics": {"t": 2}, "members": [{"id": m, "topics": ["t"]} for m in "ab"]}
    prices = {"a": 9, "b": 5 - 2**63}, {"a": {"t": 9}, "b": {"t": 2**62}}
    worst = {"minimum": [4, 4, 0], "assignment": {"a": [["t", 0], ["t", 1]], "b": []}}
    worst["prices"] = dict(zip(("members", "topics"), prices, strict=True))
    goals = {"balance": worst, "spread": worst}
    code, text = checker([group], [{"id": "g", "goals": goals}])
    assert code == 1
    assert "long overflow" in text


@pytest.mark.long
def test_the_checker_refuses_lines_with_the_same_id(checker):
    assert checker([*GROUPS, GROUPS[0]], GOALS)[0] == 1
    answers = [
        {"id": one["id"], "assignment": one["goals"]["balance"]["assignment"]} for one in GOALS
    ]
    assert checker(GROUPS, GOALS, answers)[0] == 0
    assert checker(GROUPS, GOALS, [*answers, answers[0]])[0] == 1


@pytest.mark.long
def test_the_checker_counts_the_goals_that_an_assignor_reaches(checker):
    answers = [
        {"id": one["id"], "assignment": assignment_document(assign(parse_group(one), "uniform2"))}
        for one in GROUPS
    ]
    code, text = checker(GROUPS, GOALS, answers)
    assert code == 0
    assert "294 groups, goal spread: minimum" in text
    code, text = checker(GROUPS, GOALS, answers[1:])
    assert code == 1
    assert "1 groups, goal balance: invalid" in text
