"""Kafka Streams applications are named, and not planned as groups of consumers."""

import json

from tests.stored_cases import stored_cases

# As imported from a broker with a running application of two threads.
_APPLICATION = stored_cases("groups")["application"]
_CONSUMERS = stored_cases("groups")["consumers"]


def test_a_plan_of_an_application_is_refused_in_one_sentence(kassay, tmp_path):
    file = tmp_path / "groups.jsonl"
    file.write_text(json.dumps(_APPLICATION))
    done = kassay("plan", file)
    assert done.code == 1
    assert json.loads(done.out)["conflict"].startswith(
        "group 'application': The group is a Kafka Streams application"
    )


def test_a_survey_names_applications_and_succeeds(kassay, tmp_path):
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{json.dumps(_APPLICATION)}\n{json.dumps(_CONSUMERS)}\n")
    done = kassay("survey", file, "--format", "json")
    assert done.code == 0, done.err
    [document] = [json.loads(done.out)]
    consumers, application = document["groups"]
    assert consumers["verdict"].startswith("No moves")
    assert "Kafka Streams application" in application["skipped"]
    assert document["totals"]["errors"] == 0
    assert document["totals"]["groups_of_other_types"] == 1
    table = kassay("survey", file, "--format", "table")
    assert "kassay: not surveyed: group 'application'" in table.err
