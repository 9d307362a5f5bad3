"""Known counterexamples of share groups, Streams and Connect, and the search for them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kassay.experiments.cli.application import app
from kassay.experiments.counterexamples.find_kind_counterexample import DocumentHunt
from kassay.experiments.kinds.group_kind import KindComparison
from kassay.experiments.kinds.registry import KINDS, compare_assignor
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.solver.limits import SearchLimits
from tests.stored_cases import stored_cases
from tests.tiers import short_and_long

Table = dict[str, Any]


def _share(topics: Table, **members: Table) -> Table:
    return {"topics": topics, "members": [{"id": id, **fields} for id, fields in members.items()]}


PORTS: dict[str, tuple[str, Table, str, int, int]] = stored_cases("counterexamples_of_ports")
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


STICKY: dict[str, tuple[Table, Table, str, int, int]] = stored_cases("counterexamples_of_sticky")
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
    (compared,) = KINDS[document.kind].compare(document, recorded, SearchLimits())
    assert _numbers(compared, measure) == (value, minimum)


@pytest.mark.parametrize(
    ("name", "size"), short_and_long(("a", (3, 2)), ("h", (4, 2)), ("k", (2, 1)))
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
    connectors = {"a": 2, "b": 2}
    steps: list[Table] = [{"workers": ["w0"], "connectors": connectors}]
    steps += [{"workers": ["w0", "w1"], "connectors": connectors, "wait_ms": 600_000}]
    document = parse_kind_document({"kind": "connect", "steps": steps}, kind=Kind.CONNECT)
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
