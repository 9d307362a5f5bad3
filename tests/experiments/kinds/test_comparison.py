"""Comparison of answers of share groups, Streams and Connect with the optimum."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from kassay.experiments.cli.application import app
from kassay.experiments.kinds.group_kind import KindComparison
from kassay.experiments.kinds.registry import KINDS
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from kassay.solver.limits import SearchLimits


def _compared(kind: Kind, document: Mapping[str, Any], answer: Any) -> list[KindComparison]:
    parsed = parse_kind_document({"kind": str(kind), **document}, kind=kind)
    return KINDS[parsed.kind].compare(parsed, answer, SearchLimits())


def _numbers(compared: KindComparison) -> dict[str, tuple[int, int | None]]:
    return {one.name: (one.value, one.minimum) for one in compared.measures}


def _share(topics: Mapping[str, Any], **subscriptions: list[str]) -> dict[str, Any]:
    members = [{"id": id, "topics": names} for id, names in subscriptions.items()]
    return {"topics": topics, "members": members}


def test_changes_of_share_groups_that_were_not_needed_are_listed() -> None:
    document = _share({"t0": 2}, a=["t0"], b=["t0"])
    for member, number in (("a", 0), ("b", 1)):
        entry = next(one for one in document["members"] if one["id"] == member)
        entry["owned"] = [["t0", number]]
    answer = {"members": {"a": [["t0", 1]], "b": [["t0", 0]]}}
    compared = _compared(Kind.SHARE, document, answer)[0]
    assert _numbers(compared)["movement"] == (2, 0)
    assert [(move.partition, move.owners, move.member) for move in compared.unnecessary] == [
        (("t0", 1), ("b",), "a"),
        (("t0", 0), ("a",), "b"),
    ]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([["t0", 0]], "t0-1 is not assigned"),
        ([["t0", 0], ["t0", 1], ["t0", 2]], "t0-2 is assigned 1 times: ['a']"),
    ],
)
def test_uncovered_and_not_assignable_partitions_make_an_answer_invalid(
    pairs: list[list[object]], message: str
) -> None:
    document = _share({"t0": {"partitions": 3, "assignable": [0, 1]}}, a=["t0"])
    compared = _compared(Kind.SHARE, document, {"members": {"a": pairs}})[0]
    assert compared.invalid == (message,)
    assert _numbers(compared)["uncovered_partitions"][0] == int("not" in message)


def test_a_state_without_a_task_and_stopped_time_are_reported() -> None:
    document = {"steps": [{"workers": ["w0"], "connectors": {"a": 2, "b": 1}}]}
    state = {"w0": {"connectors": ["a", "b"], "tasks": ["a-0", "b-0"]}}
    answer = {"steps": [{"state": state, "task_downtime_ms": 700}]}
    compared = _compared(Kind.CONNECT, document, answer)[0]
    assert compared.invalid == ("a-1 is not assigned",)
    assert _numbers(compared)["task_stopped_ms"] == (700, 0)


def test_the_commands_read_documents_of_share_groups(tmp_path: Path) -> None:
    file = tmp_path / "group.json"
    document = {"kind": "share", "id": "g"} | _share({"t": 2}, a=["t"], b=["t"], c=["t"])
    file.write_text(json.dumps(document))
    result = CliRunner().invoke(app, ["compare", str(file), "--assignor", "share"])
    measures = json.loads(result.stdout)["comparisons"][0]["states"][0]["measures"]
    assert measures["slots"] == {"value": 4, "minimum": 3, "bound": 3, "optimum": 3}
    assert json.loads(result.stdout)["comparisons"][0]["states"][0]["unneeded"] == []
    result = CliRunner().invoke(
        app, ["compare", str(file), "--assignor", "share", "--assignor", "sticky"]
    )
    assert result.exit_code == 2
    assert "must be for one kind" in result.output
    result = CliRunner().invoke(
        app, ["compare", str(file), "--assignor", "share", "--level", "topic_spread"]
    )
    assert result.exit_code == 2
    assert "fixed levels" in result.output


def _processes(**active: list[str]) -> dict[str, Any]:
    """Return an application with processes of two threads and one stateful subtopology."""
    return {
        "config": {"num_standby_replicas": 0},
        "subtopologies": {"0": {"partitions": 4, "stateful": True, "end_offsets": [50_000] * 4}},
        "processes": [
            {"id": _uuid(name), "threads": 2, "active": tasks, "tags": {"zone": zone}}
            for (name, tasks), zone in zip(active.items(), "aab", strict=True)
        ],
    }


def _uuid(name: str) -> str:
    return f"00000000-0000-0000-0000-00000000000{name}"


def _answer(standby: Mapping[str, list[str]], **active: list[str]) -> dict[str, Any]:
    return {
        "processes": {
            _uuid(name): {"active": tasks, "standby": standby.get(name, [])}
            for name, tasks in active.items()
        }
    }


def test_standbys_are_compared_by_tags_and_moves() -> None:
    document = _processes(a=["0_0", "0_2"], b=["0_1", "0_3"], c=[])
    document["config"] = {"num_standby_replicas": 1, "rack_aware_assignment_tags": ["zone"]}
    document["processes"][1]["standby"] = ["0_0"]
    document["processes"][1]["lags"] = {"0_0": 10_000, "0_2": 10_001}
    standby = {"b": ["0_0", "0_2"], "c": ["0_1", "0_3"]}
    active = {"a": ["0_0", "0_2"], "b": ["0_1", "0_3"], "c": []}
    numbers = _numbers(_compared(Kind.STREAMS, document, _answer(standby, **active))[0])
    assert numbers["missing_tag_values"] == (2, 0)
    assert numbers["standby_moves"] == (3, 3)
    assert numbers["copy_sum_of_squares"] == (24, 22)
    short = _answer({**standby, "c": ["0_1"]}, **active)
    numbers = _numbers(_compared(Kind.STREAMS, document, short)[0])
    assert numbers["missing_standbys"] == (1, 0)
    assert numbers["missing_tag_values"] == (3, None)


def test_the_measures_of_copies_have_the_minimum_for_the_copies_per_process() -> None:
    tasks, names = [f"0_{number}" for number in range(4)], "abc"
    pairs = [(task, name) for task in tasks for name in names]
    for seed in range(6):
        rng = Random(seed)
        before, reported = ({p for p in pairs if rng.random() < 0.4} for _ in range(2))
        after = {p for p in pairs if rng.random() < 0.4} | {(t, rng.choice(names)) for t in tasks}
        active = {task: min(name for t, name in after if t == task) for task in tasks}
        document = _processes(**{name: [] for name in names})
        for process, name in zip(document["processes"], names, strict=True):
            process["standby"] = [task for task in tasks if (task, name) in before]
            process["lags"] = {task: 99_999 for task in tasks if (task, name) in reported}
        standby = {n: [t for t in tasks if (t, n) in after and active[t] != n] for n in names}
        answer = _answer(standby, **{n: [t for t in tasks if active[t] == n] for n in names})
        numbers = _numbers(_compared(Kind.STREAMS, document, answer)[0])

        def values(copies: set[tuple[str, str]], before=before, reported=reported) -> list[int]:
            lost, added = before - copies, copies - before
            both = [[sum(p[0] == t for p in one) for one in (lost, added)] for t in tasks]
            return [sum(map(min, both)), len(reported - copies)]

        counts = Counter(name for _, name in after), Counter(task for task, _ in after)
        rows = [combinations(names, counts[1][task]) for task in tasks]
        others = [
            {(t, n) for t, row in zip(tasks, one, strict=True) for n in row}
            for one in product(*rows)
        ]
        least = [values(one) for one in others if Counter(n for _, n in one) == counts[0]]
        expected = zip(values(after), map(min, zip(*least, strict=True)), strict=True)
        assert [numbers["replaced_copies"], numbers["unused_directories"]] == [*expected], seed


@pytest.mark.parametrize(
    ("standby", "active", "message"),
    [
        ({}, ["0_1"], "0-3 is not assigned"),
        ({"b": ["0_1"]}, ["0_1", "0_3"], "has 2 copies of 0-1"),
        ({"c": ["0_1", "0_1"]}, ["0_1", "0_3"], "has 2 copies of 0-1"),
    ],
)
def test_wrong_tasks_make_an_answer_of_streams_invalid(
    standby: dict[str, list[str]], active: list[str], message: str
) -> None:
    document = _processes(a=["0_0", "0_2"], b=["0_1", "0_3"], c=[])
    answer = _answer(standby, a=["0_0", "0_2"], b=active, c=[])
    (invalid,) = _compared(Kind.STREAMS, document, answer)[0].invalid
    assert invalid.endswith(message)
