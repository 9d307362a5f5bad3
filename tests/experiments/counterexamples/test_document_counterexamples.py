"""Known counterexamples of share groups, Streams and Connect, and the search for them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kassay.experiments.cli.application import app
from kassay.experiments.counterexamples.document_hunt import DocumentHunt
from kassay.experiments.kinds.group_kind import KindComparison
from kassay.experiments.kinds.registry import compare_answer, compare_assignor
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.solver.limits import SearchLimits
from tests.tiers import short_and_long

Table = dict[str, Any]


def _share(topics: Table, **members: Table) -> Table:
    return {"topics": topics, "members": [{"id": id, **fields} for id, fields in members.items()]}


def _streams(standbys: int, tasks: int, *active: list[int]) -> Table:
    """Return an application with two threads per process and the standbys on the next process."""
    ids = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(len(active))]
    processes = [
        {"id": id, "threads": 2, "active": [f"0_{task}" for task in mine]}
        for id, mine in zip(ids, active, strict=True)
    ]
    if standbys:
        for one, other in ((0, 1), (1, 0)):
            processes[one]["standby"] = processes[other]["active"]
            processes[one]["lags"] = dict.fromkeys(processes[other]["active"], 0)
    ends = [50_000] * tasks
    return {
        "config": {"num_standby_replicas": standbys},
        "subtopologies": {"0": {"partitions": tasks, "stateful": True, "end_offsets": ends}},
        "processes": processes,
    }


def _connect(connectors: Table, *workers: list[str], **last: object) -> Table:
    steps: list[Table] = [{"workers": names, "connectors": connectors} for names in workers]
    for step in steps[1:]:
        step["wait_ms"] = 600_000
    steps[-1] |= last
    return {"scheduled_rebalance_max_delay_ms": 300_000, "steps": steps}


_RESTART = _connect({"a": 4}, ["w0", "w1"], ["w0"], ["w0", "w2"], wait_ms=30_000)
_RESTART["steps"][1]["until_stable"] = False

PORTS: dict[str, tuple[str, Table, str, int, int]] = {
    "a": (
        "share",
        _share({"t0": 2}, m1={"topics": ["t0"]}, m2={"topics": ["t0"]}, m3={"topics": ["t0"]}),
        "slots",
        *(4, 3),
    ),
    "b": (
        "share",
        _share({"t0": 2, "t1": 2}, a={"topics": ["t0"]}, b={"topics": ["t0", "t1"]}),
        "sum_of_squares",
        *(10, 8),
    ),
    "g": ("streams-high-availability", _streams(0, 4, [0, 2], [], [1, 3]), "state_moves", 3, 1),
    "h": ("streams-high-availability", _streams(0, 4, [0, 3], [1]), "state_moves", 1, 0),
    "i": (
        "streams-high-availability",
        _streams(1, 6, [0, 2, 4], [1, 3, 5], []),
        "process_moves",
        *(4, 2),
    ),
    "j": (
        "connect-incremental",
        _connect({"a": 4, "b": 4}, ["w0"], ["w0", "w1"]),
        "task_topic_spread",
        *(32, 16),
    ),
    "k": ("connect-incremental", _RESTART, "task_stopped_ms", 600_000, 0),
    "l": (
        "connect-incremental",
        _connect({"a": 12, "b": 12}, ["w0"], ["w0", "w1"], ["w0", "w1", "w2"]),
        "task_topic_spread",
        *(160, 96),
    ),
}
"""Assignor, document, measure, value and minimum in the last compared state."""


def _port_document(name: str) -> KindDocument:
    assignor, content, *_ = PORTS[name]
    kind = Kind(assignor.partition("-")[0])
    return parse_kind_document({"kind": str(kind), **content}, kind=kind)


def _numbers(compared: KindComparison, name: str) -> tuple[int, int | None]:
    found = {one.name: (one.value, one.minimum) for one in compared.measures}
    return found[name]


@pytest.mark.parametrize("name", PORTS)
def test_ports_are_above_the_minimum_on_known_counterexamples(name: str) -> None:
    assignor, _, measure, value, minimum = PORTS[name]
    _, compared = compare_assignor(_port_document(name), assignor, limits=SearchLimits())
    assert _numbers(compared[-1], measure) == (value, minimum)


def test_a_topic_without_subscribers_stays_assigned() -> None:
    members = {"m0": {"topics": ["t1"], "owned": [["t3", 0]]}, "m2": {"topics": ["t2"]}}
    content = _share({"t1": 1, "t2": 1, "t3": 1}, **members)
    document = parse_kind_document({"kind": "share", **content}, kind=Kind.SHARE)
    _, (compared,) = compare_assignor(document, "share", limits=SearchLimits())
    assert compared.invalid == ("member 'm0' is assigned topic 't3', but does not subscribe to it",)


STICKY: dict[str, tuple[Table, Table, str, int, int]] = {
    "d": (
        {
            "a": {"process": "p0", "active": {"0": [0, 1, 2]}},
            "b": {"process": "p1", "active": {"1": [0, 1, 2]}},
        },
        {"a": {"0": [0, 1, 2]}, "b": {"1": [0, 1, 2]}},
        "stateful_spread",
        *(3, 1),
    ),
    "e": (
        {"a": {"process": "p0", "offsets": {"0": {"0": 1000, "1": 1000}}}, "b": {"process": "p0"}},
        {"a": {"0": [0, 1]}, "b": {"1": [0, 1]}},
        "stateful_sum_of_squares",
        *(4, 2),
    ),
    "f": (
        {
            "a": {"process": "p0", "active": {"0": [0, 1]}},
            "b": {"process": "p0", "active": {"1": [0]}},
            "c": {"process": "p0", "active": {"1": [1]}},
            "d": {"process": "p2"},
            "e": {"process": "p2"},
        },
        {"a": {"0": [0]}, "b": {"1": [0]}, "c": {"1": [1]}, "d": {"0": [1]}, "e": {}},
        "state_moves",
        *(1, 0),
    ),
}
"""Members, the active tasks that kafka-broker@4.4.0:streams-sticky returns, and the measure."""


@pytest.mark.parametrize("name", STICKY)
def test_recorded_answers_are_above_the_minimum_on_known_counterexamples(name: str) -> None:
    members, answer, measure, value, minimum = STICKY[name]
    size = sum(len(tasks.get("0", ())) for tasks in answer.values())
    content = {
        "kind": "streams-group",
        "subtopologies": {
            "0": {"partitions": size, "stateful": True},
            "1": {"partitions": size, "stateful": False},
        },
        "members": [{"id": id, **fields} for id, fields in members.items()],
    }
    document = parse_kind_document(content, kind=Kind.STREAMS_GROUP)
    recorded = {"members": {id: {"active": tasks} for id, tasks in answer.items()}}
    (compared,) = compare_answer(document, recorded, limits=SearchLimits())
    assert _numbers(compared, measure) == (value, minimum)


@pytest.mark.parametrize(
    ("name", "size"), short_and_long(("a", (3, 2)), ("h", (5, 3)), ("k", (2, 1)))
)
def test_a_hunt_shrinks_a_counterexample(name: str, size: tuple[int, int]) -> None:
    assignor, _, measure, *_ = PORTS[name]
    search = DocumentHunt(assignor, measure, SearchLimits())
    (found,) = search.search([_port_document(name)])
    assert (found.size.places, found.size.tasks) == size
    assert found.value > found.minimum
    again = search.measured(found.document)
    assert again is not None
    assert again.value == found.value


def test_a_sequence_of_connect_counts_with_its_worst_step() -> None:
    worst = DocumentHunt("connect-incremental", "task_topic_spread", SearchLimits()).measured(
        _port_document("l")
    )
    assert worst is not None
    assert (worst.step, worst.value, worst.minimum) == (1, 288, 144)


@pytest.mark.parametrize(("excess", "tasks"), [(1, 3), (4, 4)])
def test_shrinking_keeps_the_excess(excess: int, tasks: int) -> None:
    content = _connect({"a": 2, "b": 2}, ["w0"], ["w0", "w1"])
    document = parse_kind_document({"kind": "connect", **content}, kind=Kind.CONNECT)
    assignor, measure = "connect-incremental", "task_topic_spread"
    search = DocumentHunt(assignor, measure, SearchLimits(), excess=excess, attempts=8)
    (found,) = search.search([document])
    assert found.size.tasks == tasks
    assert found.value - found.minimum >= excess


def test_the_command_writes_the_smallest_documents(tmp_path: Path) -> None:
    file, output = tmp_path / "group.json", tmp_path / "out"
    members = {f"m{n}": {"topics": ["x"]} for n in range(4)}
    file.write_text(json.dumps({"kind": "share", "id": "g", **_share({"x": 3}, **members)}))
    arguments = ["hunt", "--assignor", "share", "--groups", str(file), "-o", str(output)]
    result = CliRunner().invoke(app, [*arguments, "--measure", "slots"])
    assert result.exit_code == 0, result.output
    assert (
        "share is above the minimum of slots on 1; different smallest documents: 1" in result.output
    )
    (line,) = (output / "groups.jsonl").read_text().splitlines()
    assert (output / "found.jsonl").read_text() == line + "\n"
    assert [one["id"] for one in json.loads(line)["members"]] == ["m0", "m1", "m2", "m3"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "such an assignor requires --measure" in " ".join(result.output.split())


def test_the_command_searches_small_documents_of_families(tmp_path: Path) -> None:
    arguments = ["hunt", "--assignor", "connect-incremental", "--measure", "task_stopped_ms"]
    arguments += ["--cases", "4", "-o", str(tmp_path), "--family"]
    result = CliRunner().invoke(app, [*arguments, "connect-restart"])
    assert result.exit_code == 0, result.output
    assert "4 documents: connect-incremental is above the minimum" in result.output
    (line, *_) = (tmp_path / "groups.jsonl").read_text().splitlines()
    assert json.loads(line)["id"].startswith("connect-restart/")
    result = CliRunner().invoke(app, [*arguments, "share-equal-join"])
    assert result.exit_code == 2
    assert "family of this kind" in result.output
