"""Options for weights of import, plan and forecast."""

import json

import pytest

from kassay.experiments.sources.live_cluster import librdkafka
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from tests.experiments.cli.test_scale import GROUP
from tests.experiments.sources.test_live_groups import Tables, member
from tests.experiments.sources.test_tool_documents import TABLE, log_dirs_output, replica
from tests.stored_cases import stored_cases

SIZES = log_dirs_output([replica("my-t-0", 30), replica("my-t-1", 12)])


@pytest.fixture
def run(kassay, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offsets.txt").write_text(TABLE)
    (tmp_path / "sized").mkdir()
    (tmp_path / "sized/offsets.txt").write_text(TABLE)
    (tmp_path / "sized/sizes.log").write_text(SIZES)
    (tmp_path / "table.json").write_text('{"my-t": [5, 6], "of-others": [1]}')
    (tmp_path / "group.json").write_text(json.dumps(GROUP))

    def command(*arguments):
        done = kassay(*arguments)
        return done.code, done.records, done.err

    return command


@pytest.mark.parametrize(("source", "options", "weights"), stored_cases("commands_with_weights"))
def test_all_commands_compute_the_same_weights_from_captures(run, source, options, weights):
    code, (document,), _ = run("import", source, *options)
    assert code == 0
    topic = document["topics"]["my-t"]
    assert (topic["weights"] if weights else topic) == (weights or 2)
    makespan = sum(weights) if weights else 2
    _, (planned,), _ = run("plan", source, *options, "-o", "out")
    assert planned["makespan"] == {"current": makespan, "planned": makespan}
    _, (answer,), _ = run("forecast", source, *options, "--members", "+0")
    assert answer["current_maximum_load"] == makespan


def test_weights_none_removes_the_weights_of_a_document(run, tmp_path):
    document = {"topics": {"t": {"partitions": 2, "weights": [5, 6]}}}
    document |= {"members": [{"id": "c", "topics": ["t"]}], "weight_source": "file"}
    (tmp_path / "own.json").write_text(json.dumps(document))
    for options, makespan in (((), 11), (("--weights", "none"), 2)):
        _, (planned,), _ = run("plan", "own.json", *options, "-o", "out")
        assert planned["makespan"]["planned"] == makespan


BY_LAG = ("offsets.txt", "--weights", "lag")
SIZING = (("scale", "--maximum-load", "9"), ("forecast", "--members", "+1"))


@pytest.mark.parametrize(("command", "option", "value"), SIZING)
def test_a_number_of_members_by_lag_needs_an_explicit_option(run, command, option, value):
    code, (line,), _ = run(command, *BY_LAG, option, value)
    assert code == 2
    assert "lag is a backlog, not a load" in line["error"]
    assert "--allow-lag" in line["error"]
    code, (line,), _ = run(command, *BY_LAG, option, value, "--allow-lag")
    assert code == 0
    assert "error" not in line


@pytest.mark.parametrize(("command", "option", "value"), SIZING)
def test_a_document_that_was_imported_by_lag_is_refused_too(
    kassay, run, tmp_path, command, option, value
):
    (tmp_path / "imported.jsonl").write_text(kassay("import", *BY_LAG).out)
    (tmp_path / "by-lag.jsonl").write_text(kassay("import", "imported.jsonl", "--anonymize").out)
    code, (line,), _ = run(command, "by-lag.jsonl", option, value)
    assert code == 2
    assert "the weights are lag" in line["error"]


def test_a_plan_by_lag_names_no_command_for_numbers_of_members(run, tmp_path):
    code, _, _ = run("plan", *BY_LAG, "-o", "out")
    assert code == 0
    assert "--members" not in (tmp_path / "out" / "report.html").read_text()


def test_samples_of_end_offsets_become_windows(kassay, tmp_path, monkeypatch):
    owners = LiveGroup("g", "Stable", (member("x", ("t", 0), ("t", 1)),))
    ends = [{("t", 0): 10, ("t", 1): 20}, {("t", 0): 15, ("t", 1): 20}]
    live = Tables({"g": [owners] * 3}, growth=ends)
    monkeypatch.setattr(librdkafka, "LiveCluster", lambda *_, **__: live)
    file, cluster = tmp_path / "samples.jsonl", ("--bootstrap-server", "h:1")
    for _ in ends[:]:
        done = kassay("import", *cluster, "--append", file)
        assert (done.code, done.out) == (0, "")
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(one["time"].endswith("+00:00") and one["cluster"] == "cluster" for one in samples)
    times = ("2025-12-01T08:00Z", "2025-12-01T09:00Z")
    lines = (json.dumps({**one, "time": time}) for one, time in zip(samples, times, strict=True))
    file.write_text("\n".join(lines))
    [group] = kassay("import", *cluster, "--weights", file).records
    assert group["topics"]["t"]["weights"] == [5, 0]
    assert kassay("import", file, "--append", file).code == 2
