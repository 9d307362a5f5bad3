"""Commands for operators on share groups, Streams groups and Connect clusters."""

import json

import pytest

from kassay.experiments.cli.commands import survey
from kassay.experiments.cli.interruption import STOP
from kassay.experiments.comparison.family_measures import FamilyComparison, FamilyMeasure
from kassay.experiments.planning.families.current_state import FamilyState
from kassay.experiments.planning.survey.survey_group import survey_family
from kassay.reference.documents.family_documents import Kind
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "families"
CLUSTER = {"kind": "connect", "steps": [{"workers": ["w"], "connectors": {"a": 1}}]}
SHARE = {"kind": "share", "id": "s", "topics": {"t": 1}, "members": [{"id": "m", "topics": ["t"]}]}


def plan_lines(kassay, file, documents, *options):
    """Return the result of ``kassay plan`` on documents, and its JSON lines."""
    file.write_text("".join(json.dumps(one) + "\n" for one in documents))
    done = kassay("plan", file, "--format", "jsonl", *options)
    return done, [json.loads(line) for line in done.out.splitlines()]


def test_a_plan_compares_the_current_state_with_the_optimum(kassay):
    done = kassay("plan", EXAMPLES / "share-members.txt", "--format", "jsonl")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["measures"]["sum_of_squares"] == {"value": 54, "minimum": 48, "bound": 48}
    assert record["verdict"].startswith("If each member subscribes only to the topics of its part")
    assert "sum of squares 54 (minimum 48)" in record["verdict"]


def test_a_plan_of_an_optimal_state_has_nothing_to_do(kassay, tmp_path):
    members = [{"id": id, "topics": ["t"], "owned": [["t", n]]} for n, id in enumerate("ab")]
    file = tmp_path / "share.json"
    file.write_text(json.dumps({"kind": "share", "topics": {"t": 2}, "members": members}))
    done = kassay("plan", file, "--format", "jsonl")
    assert json.loads(done.out)["verdict"] == (
        "Nothing to do: 2 members, and each measure has its minimum."
    )


def test_a_survey_has_one_row_per_document(kassay):
    done = kassay("survey", EXAMPLES, "--format", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    kinds = [row["kind"] for row in document["groups"]]
    assert {"connect", "share"} <= set(kinds)
    assert document["totals"]["groups_of_other_types"] == len(document["groups"])
    assert document["totals"]["errors"] == 0
    table = kassay("survey", EXAMPLES, "--format", "table")
    assert "connect families: If every worker" in table.out.replace("\n", " ")


def test_documents_of_a_survey_share_the_time_limit(kassay, tmp_path, monkeypatch):
    given = []

    def record(document, *, limits):
        given.append(limits)
        return survey_family(document, limits=limits)

    monkeypatch.setattr(survey, "survey_family", record)
    file = tmp_path / "share.jsonl"
    file.write_text("".join(json.dumps({**SHARE, "id": id}) + "\n" for id in "ab"))
    done = kassay("survey", file, "--time-limit", "4")
    assert done.code == 0, done.err
    assert len(given) == 2
    assert all(limits.stop is STOP and limits.time <= 4 / 8 for limits in given)


@pytest.mark.parametrize("command", ["what-if", "solve", "frontier"])
def test_other_commands_refuse_in_one_sentence(kassay, command):
    done = kassay(command, EXAMPLES / "share-members.txt")
    assert done.code == 2
    assert "a document of kind 'share' is not a consumer group" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("steps", [[], [{"workers": [], "connectors": {"a": 1}}]])
def test_a_cluster_without_workers_does_not_end_the_plan(kassay, tmp_path, steps):
    bad = {"kind": "connect", "id": "bad", "steps": steps}
    done, lines = plan_lines(kassay, tmp_path / "clusters.jsonl", [bad, CLUSTER])
    assert done.code == 2
    assert lines[0] == {"id": "bad", "error": "cluster 'bad': the last step has no worker"}
    assert lines[1]["verdict"].startswith("Nothing to do: 1 workers")


def test_keys_of_running_workers_are_optional(kassay, tmp_path):
    step = {**CLUSTER["steps"][0], "running": {"w": {"tasks": ["a-0"]}}}
    done, [line] = plan_lines(
        kassay, tmp_path / "cluster.jsonl", [{"kind": "connect", "steps": [step]}]
    )
    assert done.code == 0, done.err
    assert "a-0 is not assigned" in line["verdict"]


def test_a_first_invalid_document_does_not_hide_the_others(kassay, tmp_path):
    invalid = {**SHARE, "id": "invalid", "topics": {}}
    done, lines = plan_lines(kassay, tmp_path / "share.jsonl", [invalid, SHARE])
    assert done.code == 2
    assert "expected a topic of the document" in lines[0]["error"]
    assert lines[1]["kind"] == "share"


@pytest.mark.parametrize("selected", [["x"], ["s", "x"]])
def test_an_unknown_group_of_another_kind_is_an_error(kassay, tmp_path, selected):
    options = [part for id in selected for part in ("--group", id)]
    done, _ = plan_lines(kassay, tmp_path / "share.jsonl", [SHARE], *options)
    assert done.code == 2
    assert "contains no group 'x'" in done.err


def test_a_value_at_the_best_known_one_is_not_above_the_minimum():
    measures = tuple(
        FamilyMeasure(name, 5, 5, bound) for name, bound in (("sum_of_squares", 4), ("slots", 5))
    )
    state = FamilyState("s", Kind.SHARE, 2, FamilyComparison(measures), None)
    assert not state.above
    assert state.verdict == "2 members: no better state is known; not proven: sum of squares."


def test_a_plan_page_needs_consumer_groups(kassay, tmp_path):
    done = kassay("plan", EXAMPLES / "share-members.txt", "-o", tmp_path)
    assert done.code == 2
    assert "--output requires consumer groups" in done.err
