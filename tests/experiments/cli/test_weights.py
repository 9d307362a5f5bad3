"""Options for weights of import, plan and what-if."""

import json

import pytest

from tests.experiments.cli.test_members import GROUP
from tests.experiments.sources.test_tool_documents import TABLE, log_dirs_output, replica

SIZES = log_dirs_output([replica("my-t-0", 30), replica("my-t-1", 12)])


@pytest.fixture
def run(kassay, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offsets.txt").write_text(TABLE)
    (tmp_path / "sizes.log").write_text(SIZES)
    (tmp_path / "table.json").write_text('{"my-t": [5, 6], "of-others": [1]}')
    (tmp_path / "group.json").write_text(json.dumps(GROUP))

    def command(*arguments):
        done = kassay(*arguments)
        return done.code, done.records, done.err

    return command


SIZED = ("--weights", "size", "--sizes", "sizes.log")


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ((), None),
        (("--weights", "lag"), [5, 0]),
        (SIZED, [30, 12]),
        (("--weights", "table.json"), [5, 6]),
    ],
)
def test_all_commands_compute_the_same_weights_from_captures(run, tmp_path, options, weights):
    code, (document,), _ = run("import", "offsets.txt", *options)
    assert code == 0
    topic = document["topics"]["my-t"]
    assert (topic["weights"] if weights else topic) == (weights or 2)
    makespan = sum(weights) if weights else 2
    _, (planned,), _ = run("plan", "offsets.txt", *options, "-o", "out")
    assert planned["makespan"] == {"current": makespan, "planned": makespan}
    _, (answer,), _ = run("what-if", "offsets.txt", *options)
    # A file of weights is a change: the first scenario is the current group without it.
    assert answer["scenarios"][-1]["makespan"]["value"] == makespan


def test_weights_none_removes_the_weights_of_a_document(run, tmp_path):
    document = {"topics": {"t": {"partitions": 2, "weights": [5, 6]}}}
    document |= {"members": [{"id": "c", "topics": ["t"]}], "weight_source": "file"}
    (tmp_path / "own.json").write_text(json.dumps(document))
    for options, makespan in (((), 11), (("--weights", "none"), 2)):
        _, (planned,), _ = run("plan", "own.json", *options, "-o", "out")
        assert planned["makespan"]["planned"] == makespan


def test_group_documents_accept_weights_from_sizes_and_files(run, tmp_path):
    document = {"topics": {"my-t": 2}, "members": [{"id": "c", "topics": ["my-t"]}]}
    (tmp_path / "own.json").write_text(json.dumps(document))
    for options, makespan in ((SIZED, 42), (("--weights", "table.json"), 11)):
        _, (planned,), _ = run("plan", "own.json", *options, "-o", "out")
        assert planned["makespan"]["planned"] == makespan
    _, (answer,), _ = run("what-if", "own.json", *SIZED)
    assert answer["scenarios"][1]["makespan"]["value"] == 42


@pytest.mark.parametrize(
    "command", [("plan", "group.json", "-o", "out"), ("what-if", "group.json")]
)
@pytest.mark.parametrize("kind", ["lag", "rate"])
def test_lag_and_rate_weights_are_rejected_for_group_documents(run, command, kind):
    code, (line,), _ = run(*command, "--weights", kind)
    assert code == 2
    assert f"a group document shows no {kind}" in line["error"]
    assert f"kassay import --weights {kind}" in line["error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "sizes.log"), "--sizes requires --weights size"),
        (("--weights", "size", "--sizes", "offsets.txt"), "not the output of kafka-log-dirs.sh"),
        (("--weights", "nothing.json"), "nothing.json: "),
        (("--weights", "sizes.log"), "sizes.log:1: not valid JSON"),
    ],
)
@pytest.mark.parametrize("command", ["import", "plan"])
def test_invalid_weight_options_give_one_error_line(run, command, options, message):
    further = ("-o", "out") if command == "plan" else ()
    code, lines, err = run(command, "offsets.txt", *options, *further)
    assert (code, lines) == (2, [])
    assert message in " ".join(err.replace("│", " ").split())


def test_weights_must_match_the_partition_count(run, tmp_path):
    (tmp_path / "table.json").write_text('{"my-t": [1]}')
    code, (line,), _ = run("import", "offsets.txt", "--weights", "table.json")
    assert code == 2
    assert "topic 'my-t' has 2 partitions, weights are given for 1" in line["error"]


def test_rates_are_rejected_for_captures(run):
    code, lines, err = run("import", "offsets.txt", "--weights", "rate")
    assert (code, lines) == (2, [])
    assert "--bootstrap-server" in err
    code, (line,), _ = run("plan", "offsets.txt", "--weights", "rate", "-o", "out")
    assert code == 2
    assert "kassay import --bootstrap-server" in line["error"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "Weights: loads are numbers of partitions"),
        ((), "Note: the capture shows lag (5 messages), which is not used"),
        (("--weights", "lag"), "Weights: loads are sums of lag, in messages"),
        (("--weights", "lag"), "Lag is a backlog, not a load"),
        ((), "The source of the group allows --weights lag at import"),
        (("--weights", "table.json"), "lag at import, but lag is a backlog, not a load"),
        (SIZED, "Weights: loads are sums of sizes, in bytes on disk"),
        (
            ("--weights", "table.json"),
            "Weights: loads are sums of the weights in the given file or table",
        ),
    ],
)
def test_the_first_screen_names_the_weight_of_the_loads(kassay, run, options, text):
    done = kassay("plan", "offsets.txt", *options, "--format", "text", "-o", "out")
    assert done.code == 0
    assert text in " ".join(done.out.split())
    assert ("which is not used" in done.out) == (not options)


def test_the_first_screen_says_that_the_quantity_of_weights_in_a_document_is_not_known(
    kassay, run, write_groups
):
    topics = {"t": {"partitions": 2, "weights": [3, 4]}}
    source = write_groups({"id": "g", "topics": topics, "members": [{"id": "c", "topics": ["t"]}]})
    done = kassay("plan", source, "--format", "text", "-o", "out")
    assert "the source does not name their quantity" in " ".join(done.out.split())


BY_LAG = ("offsets.txt", "--weights", "lag")
SIZING = (("members", "--maximum-load", "9"), ("what-if", "--members", "+1"))


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
@pytest.mark.parametrize("is_anonymous", [False, True])
def test_a_document_that_was_imported_by_lag_is_refused_too(
    kassay, run, tmp_path, command, option, value, is_anonymous
):
    document = kassay("import", *BY_LAG).out
    (tmp_path / "by-lag.jsonl").write_text(document)
    if is_anonymous:
        (tmp_path / "by-lag.jsonl").write_text(kassay("anonymize", "by-lag.jsonl").out)
    code, (line,), _ = run(command, "by-lag.jsonl", option, value)
    assert code == 2
    assert "the weights are lag" in line["error"]


def test_a_plan_by_lag_states_no_number_of_members(run, tmp_path):
    code, _, _ = run("plan", *BY_LAG, "-o", "out")
    assert code == 0
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["members_needed"] == []
    page = (tmp_path / "out" / "report.html").read_text()
    assert "it does not show how many members the traffic needs" in page
    assert "--members" not in page


def test_the_source_of_weights_is_known_without_the_notes(kassay, run, tmp_path):
    code, (document,), _ = run("import", *BY_LAG)
    assert code == 0
    assert (document["weight_source"], document["available_weights"]) == ("lag", ["lag"])
    document["notes"] = []
    (tmp_path / "by-lag.jsonl").write_text(json.dumps(document))
    done = kassay("plan", "by-lag.jsonl", "--format", "text", "-o", "out")
    assert "Weights: loads are sums of lag" in " ".join(done.out.split())


def test_weights_from_a_file_replace_lag(run, kassay, tmp_path):
    (tmp_path / "by-lag.jsonl").write_text(kassay("import", *BY_LAG).out)
    code, _, _ = run("members", "by-lag.jsonl", "--weights", "table.json", "--maximum-load", "11")
    assert code == 0


def test_changes_other_than_members_may_use_lag(run):
    code, (answer,), _ = run("what-if", *BY_LAG, "--partitions", "my-t=3")
    assert code == 0
    assert answer["scenarios"][-1]["makespan"]["value"] == 8
