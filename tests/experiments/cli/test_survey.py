import json
from pathlib import Path

import pytest

from kassay.experiments.sources.live_cluster import librdkafka
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.reference.model.group import Protocol
from tests.experiments.cli.conftest import LOPSIDED_GROUP
from tests.experiments.sources.test_live_groups import Tables, member
from tests.stored_cases import stored_cases

CAPTURES = Path("examples/captures")
BALANCED = stored_cases("groups")["balanced"]
REJECTED = {"id": "bad", "topics": {"t": -1}, "members": []}


def test_groups_are_ranked_by_the_gap(kassay, write_groups):
    done = kassay("survey", write_groups(BALANCED, LOPSIDED_GROUP))
    assert done.code == 0
    assert [(one["rank"], one["id"], one["gap"]) for one in done.records] == [
        (1, "g", 1.0),
        (2, "even", 0.0),
    ]
    first = done.records[0]
    assert first["makespan"] == {"current": 4, "planned": 2, "bound": 2}
    assert first["spread"] == {"current": 4, "planned": 0}
    assert (first["idle"], first["hot"]) == ({"current": 1, "planned": 0}, 1)
    assert first["moves"] == {"value": 2, "bound": 2}


def test_one_bad_group_does_not_end_the_survey(kassay, write_groups):
    done = kassay("survey", write_groups(REJECTED, LOPSIDED_GROUP))
    assert done.code == 2
    assert [one["id"] for one in done.records] == ["g", "bad"]
    assert "-1" in done.records[1]["error"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [("gap>50%", 1), ("gap>100%", 0), ("gap >= 100%", 1), ("hot>1", 0), ("idle>=1", 1)],
)
def test_a_condition_that_a_group_meets_gives_exit_code_1(kassay, write_groups, condition, code):
    done = kassay("survey", write_groups(BALANCED, LOPSIDED_GROUP), "--fail-on", condition)
    assert done.code == code
    assert (f"{condition}: g" in done.err) is bool(code)


def test_metrics_have_a_line_per_group(kassay, write_groups, tmp_path):
    metrics = tmp_path / "kassay.prom"
    kassay("survey", write_groups(BALANCED, LOPSIDED_GROUP, REJECTED), "--metrics", metrics)
    lines = metrics.read_text().splitlines()
    assert 'kassay_survey_gap_ratio{group="g"} 1.0' in lines
    assert 'kassay_survey_maximum_load{group="even"} 1' in lines
    assert 'kassay_survey_failed{group="bad"} 1' in lines


def test_the_page_links_the_plans_of_the_first_groups(kassay, write_groups, tmp_path):
    kassay("survey", write_groups(BALANCED, LOPSIDED_GROUP), "-o", tmp_path, "--plans", 1)
    page = (tmp_path / "survey.html").read_text()
    assert '<a href="g/report.html">g</a>' in page
    assert "even/report.html" not in page
    assert (tmp_path / "g/report.html").is_file()
    assert json.loads((tmp_path / "survey.json").read_text())["totals"]["groups"] == 2


def test_the_captured_cluster_is_surveyed_completely(kassay):
    subscriptions = CAPTURES / "subscriptions.json"
    done = kassay("survey", CAPTURES, "--subscriptions", subscriptions)
    assert done.code == 0
    assert len(done.records) == 19
    gaps = {one["id"]: one["gap"] for one in done.records}
    assert gaps["search-sticky"] == 1
    assert gaps["events-uniform"] == 0
    lags = {one["id"]: one["lag"] for one in done.records}
    rows = (CAPTURES / "search-sticky" / "offsets.txt").read_text().splitlines()
    column = next(row for row in rows if "LAG" in row).split().index("LAG")
    values = [row.split()[column] for row in rows if row.startswith("search-sticky ")]
    assert lags["search-sticky"] == sum(int(value) for value in values if value != "-")
    assert None in lags.values()


@pytest.mark.parametrize(("id", "name"), [("g", "the id 'g'"), (None, "no id")])
def test_groups_of_a_survey_have_different_ids(kassay, write_groups, id, name):
    group = {**LOPSIDED_GROUP, "id": id}
    done = kassay("survey", write_groups(group, BALANCED, group))
    assert done.code == 2
    assert f"2 groups have {name}; a survey requires different ids" in done.err


def test_a_survey_of_a_cluster_contains_all_groups_of_the_import(kassay, monkeypatch, tmp_path):
    groups = {
        "busy": [LiveGroup("busy", "Stable", (member("x", ("t", 0), ("t", 1)),))],
        "left": [LiveGroup("left", "Empty")],
        "simple": [LiveGroup("simple", "Empty", protocol=Protocol.SIMPLE)],
    }
    monkeypatch.setattr(librdkafka, "LiveCluster", lambda *_, **__: Tables(groups))
    imported = kassay("import", "--bootstrap-server", "h:1").records
    options = ("--bootstrap-server", "h:1", "-o", tmp_path, "--format", "jsonl")
    surveyed = kassay("survey", *options).records
    assert sorted(one["id"] for one in surveyed) == [one["id"] for one in imported]
    verdicts = {one["id"]: one["verdict"] for one in surveyed}
    assert verdicts["left"] == "No moves: the group has no members."
    assert "its consumers call assign()" in verdicts["simple"]
    assert "its consumers call assign()" in imported[2]["notes"][0]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["busy"]
    assert kassay("h:1", "--format", "jsonl").records == surveyed
    assert kassay("h:1", "busy", "--format", "jsonl").record["id"] == "busy"
    assert "group 'absent': the cluster has no such" in kassay("h:1", "absent").err


def test_a_source_without_a_command_is_surveyed_and_its_group_is_planned(
    kassay, write_groups, monkeypatch
):
    file = write_groups(BALANCED, LOPSIDED_GROUP)
    monkeypatch.setenv("KASSAY_CONFIG", "client.properties")  # for clusters only
    assert kassay(file).records == kassay("survey", file).records
    assert kassay(file, "g", "--format", "jsonl").record["id"] == "g"
    assert "No such command 'absent.json'" in kassay("absent.json").err


def test_groups_and_documents_of_other_kinds_in_one_file_have_results(kassay, tmp_path):
    file = tmp_path / "mixed.jsonl"
    file.write_text(f"{json.dumps(LOPSIDED_GROUP)}\n{kassay('import', 'examples/kinds').out}")
    first, *others = kassay("survey", file).records
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    assert kassay("survey", file).records[0] == first
    assert first["to_do"].startswith("trigger a rebalance: restart a member that is not static")
    assert [one["kind"] for one in others] == ["connect", *["share"] * 2, *["streams-group"] * 2]
    assert others[0]["to_do"].startswith("Stop and resume connector ")


HEADER = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"


def test_a_group_is_ranked_and_fails_by_the_worse_reading(kassay, tmp_path):
    owners = {"orders 0": "a", "orders 1": "a", "orders 2": "a", "other 0": "b"}
    rows = [f"shop {topic} 1 1 0 {id} /10.0.0.1 c\n" for topic, id in owners.items()]
    state = (
        "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\nshop k:9 (1) range Stable 2\n"
    )
    capture = tmp_path / "describe.txt"
    capture.write_text(f"{HEADER}{''.join(rows)}\n{state}")
    done = kassay("survey", capture, "--format", "jsonl", "--fail-on", "gap>30%")
    assert done.code == 1
    assert (done.record["gap"], done.record["other_reading"]["gap"]) == (0.5, 0.0)
    assert done.record["condition"] == "every member subscribes to every topic of the group"
    assert (
        "range gives members 1 or 2 partitions of orders, but 'a' has 3" in done.record["verdict"]
    )


def test_partitions_and_members_that_are_not_shown_are_conditions(kassay, tmp_path):
    capture = tmp_path / "describe.txt"
    capture.write_text(f"{HEADER}shop orders 1 1 1 0 a /h c\nshop orders 2 1 1 0 b /h c\n")
    record = kassay("survey", capture, "--format", "jsonl").record
    assert record["verdict"].startswith(
        "If the partitions that the source does not show have no owner and every member has "
        "partitions: 1 partition without an owner gets a member"
    )


def test_idle_members_that_a_capture_cannot_show_are_unknown(kassay):
    offsets = CAPTURES / "search-sticky" / "offsets.txt"
    done = kassay("survey", offsets, "--format", "jsonl")
    assert done.records[0]["idle"] == {"current": None, "planned": None}
    assert "unknown" in kassay("survey", offsets, "--format", "table").out
    members = kassay("survey", CAPTURES / "search-sticky", "--format", "jsonl")
    assert members.records[0]["idle"]["current"] == 1


def test_the_account_of_captures_is_printed_with_v(kassay):
    offsets = CAPTURES / "search-sticky" / "offsets.txt"
    assert f"{offsets}:1: ignored: blank line" in kassay("survey", offsets, "-v").err
