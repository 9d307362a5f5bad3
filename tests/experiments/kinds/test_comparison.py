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
from kassay.experiments.kinds.registry import KindComparison, compare_answer
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from kassay.solver import standby_costs
from kassay.solver.limits import SearchLimits


def _compared(kind: Kind, document: Mapping[str, Any], answer: Any) -> list[KindComparison]:
    parsed = parse_kind_document({"kind": str(kind), **document}, kind=kind)
    return compare_answer(parsed, answer, limits=SearchLimits())


def _numbers(compared: KindComparison) -> dict[str, tuple[int, int | None]]:
    return {one.name: (one.value, one.minimum) for one in compared.measures}


def _share(topics: Mapping[str, Any], **subscriptions: list[str]) -> dict[str, Any]:
    members = [{"id": id, "topics": names} for id, names in subscriptions.items()]
    return {"topics": topics, "members": members}


def test_four_slots_of_three_members_exceed_the_fewest() -> None:
    document = _share({"t0": 2}, m1=["t0"], m2=["t0"], m3=["t0"])
    answer = {"members": {"m1": [["t0", 0], ["t0", 1]], "m2": [["t0", 0]], "m3": [["t0", 1]]}}
    numbers = _numbers(_compared(Kind.SHARE, document, answer)[0])
    assert numbers["slots"] == (4, 3)
    assert numbers["members_per_partition"] == (8, 5)
    assert numbers["sum_of_squares"] == (6, 6)


def test_mixed_subscriptions_are_compared_with_the_minimum_loads() -> None:
    document = _share({"t0": 2, "t1": 2}, a=["t0"], b=["t0", "t1"])
    answer = {"members": {"a": [["t0", 0]], "b": [["t0", 1], ["t1", 0], ["t1", 1]]}}
    numbers = _numbers(_compared(Kind.SHARE, document, answer)[0])
    assert numbers["sum_of_squares"] == (10, 8)
    assert numbers["movement"] == (0, None)


def test_changes_of_share_groups_that_were_not_needed_are_listed() -> None:
    document = _share({"t0": 2}, a=["t0"], b=["t0"])
    for member, number in (("a", 0), ("b", 1)):
        entry = next(one for one in document["members"] if one["id"] == member)
        entry["owned"] = [["t0", number]]
    answer = {"members": {"a": [["t0", 1]], "b": [["t0", 0]]}}
    compared = _compared(Kind.SHARE, document, answer)[0]
    assert _numbers(compared)["movement"] == (2, 0)
    assert [(move.partition, move.owners, move.member) for move in compared.unneeded] == [
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


def _state(**tasks: list[str]) -> dict[str, Any]:
    connectors = {"w0": ["a"], "w1": ["b"]}
    return {
        worker: {"connectors": connectors[worker] if len(tasks) > 1 else ["a", "b"], "tasks": list_}
        for worker, list_ in tasks.items()
    }


def test_tasks_of_one_connector_on_one_worker_are_uneven() -> None:
    first = [f"{name}-{number}" for name in "ab" for number in range(4)]
    steps = [{"workers": ["w0"]}, {"workers": ["w0", "w1"]}]
    document = {"steps": [{**step, "connectors": {"a": 4, "b": 4}} for step in steps]}
    states = [_state(w0=first), _state(w0=first[4:], w1=first[:4])]
    answer = {"steps": [{"state": state, "task_downtime_ms": 0} for state in states]}
    before, after = _compared(Kind.CONNECT, document, answer)
    assert (before.step, after.step) == (0, 1)
    numbers = _numbers(after)
    assert numbers["task_sum_of_squares"] == (32, 32)
    assert numbers["task_topic_spread"] == (32, 16)
    assert numbers["task_movement"] == (4, 4)
    assert numbers["connector_sum_of_squares"] == (2, 2)
    assert numbers["connector_movement"] == (1, 1)


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
    assert "different kinds" in result.output
    result = CliRunner().invoke(
        app, ["compare", str(file), "--assignor", "share", "--level", "topic_spread"]
    )
    assert result.exit_code == 2
    assert "fixed levels" in result.output


def _streams_group(**members: dict[str, Any]) -> dict[str, Any]:
    """Return a Streams group with a stateful and a stateless subtopology."""
    return {
        "subtopologies": {
            "0": {"partitions": 2, "stateful": True},
            "1": {"partitions": 2, "stateful": False},
        },
        "members": [{"id": id, **fields} for id, fields in members.items()],
    }


def test_stateful_tasks_on_one_thread_are_above_the_minimum() -> None:
    document = _streams_group(
        a={"process": "p0", "active": {"0": [0, 1]}}, b={"process": "p1", "active": {"1": [0, 1]}}
    )
    members = {m["id"]: {"active": m["active"], "standby": {}} for m in document["members"]}
    compared = _compared(Kind.STREAMS_GROUP, document, {"members": members})[0]
    numbers = _numbers(compared)
    assert numbers["active_sum_of_squares"] == (8, 8)
    assert numbers["stateful_sum_of_squares"] == (4, 2)
    assert numbers["stateful_spread"] == (2, 0)
    assert numbers["subtopology_spread_above_minimum"] == (2, 0)
    assert numbers["state_moves"] == numbers["thread_moves"] == (0, 0)
    assert {one.name: one.optimum for one in compared.measures}["state_moves"] == 1


def test_a_move_of_a_stateful_task_instead_of_a_stateless_one_is_not_needed() -> None:
    document = _streams_group(
        a={"process": "p0", "active": {"0": [0, 1]}},
        b={"process": "p0", "active": {"1": [0]}},
        c={"process": "p0", "active": {"1": [1]}},
        d={"process": "p2"},
        e={"process": "p2"},
    )
    active = {"a": {"0": [0]}, "b": {"1": [0]}, "c": {"1": [1]}, "d": {"0": [1]}}
    members = {id: {"active": tasks, "standby": {}} for id, tasks in active.items()}
    compared = _compared(Kind.STREAMS_GROUP, document, {"members": members})[0]
    assert _numbers(compared)["state_moves"] == (1, 0)
    assert _numbers(compared)["process_moves"] == (1, 1)
    moves = [(move.partition, move.owners, move.member) for move in compared.unneeded]
    assert moves == [(("0", 1), ("p0",), "p2")]


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


def test_three_moves_of_a_join_where_one_is_enough() -> None:
    document = _processes(a=["0_0", "0_2"], b=["0_1", "0_3"], c=[])
    answer = _answer({}, a=["0_0", "0_3"], b=["0_2"], c=["0_1"])
    numbers = _numbers(_compared(Kind.STREAMS, document, answer)[0])
    assert numbers["state_moves"] == numbers["process_moves"] == (3, 1)
    assert numbers["active_sum_of_squares"] == (4, 4)
    assert numbers["missing_standbys"] == (0, 0)


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


def test_the_minimum_of_standbys_is_unknown_if_there_are_too_many_choices(monkeypatch) -> None:
    monkeypatch.setattr(standby_costs, "_MAX_CHOICES", 0)
    document = _processes(a=["0_0"], b=["0_1"], c=["0_2", "0_3"])
    document["config"] = {"num_standby_replicas": 1, "rack_aware_assignment_tags": ["zone"]}
    standby = {"b": ["0_0", "0_2"], "c": ["0_1"], "a": ["0_3"]}
    active = {"a": ["0_0"], "b": ["0_1"], "c": ["0_2", "0_3"]}
    numbers = _numbers(_compared(Kind.STREAMS, document, _answer(standby, **active))[0])
    assert numbers["missing_tag_values"][1] is None
    assert numbers["standby_moves"] == (4, 4)


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
