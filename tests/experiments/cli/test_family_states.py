"""Commands for operators on share groups, Streams groups and Connect clusters."""

import json

import pytest

from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "families"


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


@pytest.mark.parametrize("command", ["what-if", "solve", "frontier"])
def test_other_commands_refuse_in_one_sentence(kassay, command):
    done = kassay(command, EXAMPLES / "share-members.txt")
    assert done.code == 2
    assert "a document of kind 'share' is no consumer group" in done.err
    assert "Traceback" not in done.err


def test_a_plan_page_needs_consumer_groups(kassay, tmp_path):
    done = kassay("plan", EXAMPLES / "share-members.txt", "-o", tmp_path)
    assert done.code == 2
    assert "--output requires consumer groups" in done.err
