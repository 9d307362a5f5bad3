"""Assignors of share groups, Streams and Connect: drivers, recorded answers and failures."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kassay.experiments.cli.application import app
from kassay.experiments.implementations import assignor_names, run_assignor
from kassay.experiments.implementations.run_assignor import close_processes, run, run_on_document
from kassay.experiments.planning.identify_assignor import client_assignors
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from kassay.reference.model.errors import InputError
from tests.installed_library import require_library

DATA = Path(__file__).parents[2] / "data"
RECORDED = [
    json.loads(line)
    for line in (DATA / "kind_answers.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Problems with Kafka's answers. ``random SEED`` is of tests/conformance/kind_problems.py."""
SHARED = Path(__file__).parents[4] / "shared" / "fixtures" / "family"
RECORDINGS = {
    "share@4.4.0": "kafka-broker@4.4.0:share",
    "streams-group@4.4.0": "kafka-broker@4.4.0:streams-sticky",
    "streams@4.3.1": "kafka-streams@4.3.1:{assignor}",
    "connect@4.3.1": "kafka-connect@4.3.1:{assignor}",
}
"""Recordings without dependence on the identity hash codes of a Java process.

The set of stateful tasks of KIP-924's sticky assignor depends on them, if there are standbys, and
so do Streams groups before 4.4.
"""


def assignor_of(problem):
    """Return the name of the assignor of a recording that contains several."""
    if problem["kind"] == "connect":
        return "eager" if problem["protocol"] == "eager" else "incremental"
    return problem.get("assignor")


def answer(problem, name):
    kind = Kind(problem["kind"])
    result = run_on_document(parse_kind_document(problem, kind=kind), name)
    if result.answer is None:
        return {"failed": result.failed, "reason": result.reason}
    return result.answer


@pytest.mark.libraries
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: one["problem"]["id"])
def test_a_driver_repeats_the_recorded_answer(recorded):
    require_library(recorded["assignor"].partition(":")[0])
    assert answer(recorded["problem"], recorded["assignor"]) == recorded["answer"]


PORTS = {
    "kafka-broker@4.4.0:share": "share",
    "kafka-connect@4.3.1:incremental": "connect-incremental",
    "kafka-connect@4.3.1:eager": "connect-eager",
    "kafka-streams@4.3.1:high-availability": "streams-high-availability",
}


def uses_rack_strategy(problem):
    return problem.get("config", {}).get("rack_aware_assignment_strategy", "none") != "none"


@pytest.mark.parametrize(
    "recorded",
    [
        one
        for one in RECORDED
        if one["assignor"] in PORTS and not uses_rack_strategy(one["problem"])
    ],
    ids=lambda one: one["problem"]["id"],
)
def test_a_port_repeats_the_recorded_answer(recorded):
    found = json.loads(json.dumps(answer(recorded["problem"], PORTS[recorded["assignor"]])))
    assert found == recorded["answer"]


@pytest.mark.parametrize(
    ("recording", "least"), [("share@4.4.0", 30), ("connect@4.3.1", 60), ("streams@4.3.1", 40)]
)
def test_a_port_equals_the_answers_of_another_driver(recording, least):
    file = SHARED / f"{recording}.jsonl.gz"
    if not file.exists():
        pytest.skip("needs the recordings in ../shared/fixtures/family")
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        recordings = [json.loads(line) for line in stream]
    compared = 0
    for recorded in recordings:
        problem = {**recorded["problem"], "kind": recorded["problem"]["family"]}
        port = PORTS.get(RECORDINGS[recording].format(assignor=assignor_of(problem)))
        if port is None or uses_rack_strategy(problem):
            continue
        found = json.loads(json.dumps(answer(problem, port)))
        assert found.get("failed") == recorded.get("failed"), problem["id"]
        assert recorded.get("answer") in (None, found), problem["id"]
        compared += 1
    assert compared >= least


SPREAD = [
    json.loads(line)
    for line in (DATA / "spread_answers.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Problems with the answers of BalancedTaskAssignor, commit 07a283ac of apache/kafka."""


@pytest.mark.parametrize("recorded", SPREAD, ids=lambda one: one["problem"]["id"])
def test_the_port_of_spread_repeats_the_recorded_answer(recorded):
    assert answer(recorded["problem"], "spread") == recorded["answer"]


def test_spread_levels_the_tasks_of_each_process():
    for problem in (one["problem"] for one in SPREAD if "members" in one["answer"]):
        found = answer(problem, "spread")["members"]
        loads: dict[str, list[int]] = {}
        active = []
        for member in problem["members"]:
            own = found[member["id"]]
            tasks = [numbers for role in own.values() for numbers in role.values()]
            loads.setdefault(member["process"], []).append(sum(map(len, tasks)))
            active += [(name, n) for name, numbers in own["active"].items() for n in numbers]
        counts = {name: one["partitions"] for name, one in problem["subtopologies"].items()}
        assert sorted(active) == sorted((name, n) for name in counts for n in range(counts[name]))
        assert all(max(one) - min(one) <= 1 for one in loads.values())


def test_the_port_of_streams_refuses_a_rack_strategy():
    problem = next(one["problem"] for one in RECORDED if uses_rack_strategy(one["problem"]))
    with pytest.raises(InputError, match="got 'min_traffic'; use kafka-streams:high-availability"):
        answer(problem, "streams-high-availability")


SHARE = {"kind": "share", "id": "s", "topics": {"t": 1}, "members": [{"id": "m", "topics": ["t"]}]}
_DRIVER = """
import json, sys, time
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    assert request["assignor"] == "share" and request["group"]["kind"] == "share"
    {answer}
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Replace the driver of the broker by a Python program."""

    def write(answer):
        script = tmp_path / "driver.py"
        script.write_text(_DRIVER.format(answer=answer))
        command = (sys.executable, str(script))
        monkeypatch.setattr(run_assignor, "driver_command", lambda _: command)
        monkeypatch.setattr(assignor_names, "driver_command", lambda _: command)

    yield write
    close_processes()


def assign(*documents, name="kafka-broker@4.4.0@2s:share"):
    text = "".join(json.dumps(document) + "\n" for document in documents)
    result = CliRunner().invoke(app, ["assign", "--assignor", name], input=text)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_assign_prints_the_answer_and_the_errors_of_other_documents(driver):
    driver('print(json.dumps({"members": {"m": [["t", 0]]}}), flush=True)')
    code, lines = assign(SHARE, {"topics": {"t": 1}, "members": []}, SHARE | {"id": "last"})
    assert code == 2
    name = "kafka-broker@4.4.0@2s:share"
    answer = {"members": {"m": [["t", 0]]}}
    assert lines[0] == {"id": "s", "assignor": name, "answer": answer}
    assert "the assignor requires 'share'" in lines[1]["error"]
    assert lines[2] == {"id": "last", "assignor": name, "answer": answer}


def test_other_commands_refuse_assignors_and_documents_of_another_kind():
    refused = "reads documents of kind 'share', which this command does not support; use kassay "
    refused += "assign, compare, hunt or study"
    for name in ("kafka-broker:share", "share"):
        with pytest.raises(InputError, match=refused):
            run(NAMED_GROUPS["A"].group, name)
    result = CliRunner().invoke(app, ["compare", "--assignor", "kafka-broker:share"], input="{}")
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["compare", "--assignor", "share"], input="{}")
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["solve", "-"], input=json.dumps(SHARE))
    assert result.exit_code == 2
    assert "kind 'share' is not a consumer group; only kassay import" in result.output
    with pytest.raises(InputError, match=r"kafka-streams 4\.3\.1 has no assignor of consumer gr"):
        client_assignors("kafka-streams@4.3.1")
