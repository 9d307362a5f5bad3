import json
import random
import re
import time
from fractions import Fraction
from pathlib import Path

import pytest

from kassay.experiments.sources.live_cluster import admin_client
from kassay.experiments.sources.live_cluster.cluster_interface import LiveGroup
from kassay.reference.model.group_annotations import Protocol
from tests.experiments.cli.conftest import LOPSIDED_GROUP
from tests.experiments.sources.test_live_groups import Tables, member

CAPTURES = Path("examples/captures")
BALANCED = {
    "id": "even",
    "topics": {"t": 2},
    "members": [
        {"id": "a", "topics": ["t"], "owned": {"t": [0]}},
        {"id": "b", "topics": ["t"], "owned": {"t": [1]}},
    ],
}
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


@pytest.mark.parametrize("condition", ["gap", "gap>1", "hot>1%", "speed>3", "gap<5%"])
def test_an_invalid_condition_is_a_usage_error(kassay, write_groups, condition):
    done = kassay("survey", write_groups(LOPSIDED_GROUP), "--fail-on", condition)
    assert done.code == 2
    assert done.out == ""


def test_a_source_and_a_cluster_together_are_a_usage_error(kassay, write_groups):
    file = write_groups(LOPSIDED_GROUP)
    done = kassay("survey", file, "--bootstrap-server", "127.0.0.1:1")
    assert "give either SOURCE or --bootstrap-server" in done.message
    assert kassay("survey").code == 2


def test_the_json_output_has_totals(kassay, write_groups):
    done = kassay("survey", write_groups(BALANCED, LOPSIDED_GROUP), "--format", "json")
    document = json.loads(done.out)
    assert len(document["groups"]) == document["totals"]["groups"] == 2
    assert document["totals"]["groups_with_gap"] == document["totals"]["hot_members"] == 1


def test_the_table_shows_current_and_planned_values(kassay, write_groups):
    groups = write_groups(BALANCED, {**LOPSIDED_GROUP, "state": "Reconciling"})
    done = kassay("survey", groups, "--format", "table")
    assert re.search(r"│\s*g\s*│\s*Reconciling\s*│", done.out)
    assert "100%" in done.out
    assert "4 → 2" in done.out
    assert "groups with gap: 1" in done.out
    assert "hot members (load above the planned maximum load): 1" in done.out
    assert "placed (partitions without an owner that get one): 0" in done.out
    assert "idle members (without load): 1" in done.out


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


def test_the_page_links_plans_that_kassay_plan_wrote(kassay, write_groups, tmp_path):
    file = write_groups(BALANCED, LOPSIDED_GROUP)
    kassay("plan", file, "-o", tmp_path)
    kassay("survey", file, "-o", tmp_path, "--plans", 0)
    assert '<a href="even/report.html">even</a>' in (tmp_path / "survey.html").read_text()


def test_the_captured_cluster_is_surveyed_completely(kassay):
    subscriptions = CAPTURES / "subscriptions.json"
    done = kassay("survey", CAPTURES, "--subscriptions", subscriptions)
    assert done.code == 0
    assert len(done.records) == 19
    gaps = {one["id"]: one["gap"] for one in done.records}
    assert gaps["search-sticky"] == 1
    assert gaps["events-uniform"] == 0


def generated_group(seed):
    """Return a group with equal subscriptions and any assignment, as a document."""
    draw = random.Random(seed)
    counts = {f"topic-{number}": draw.randint(1, 48) for number in range(draw.randint(1, 6))}
    members = [f"member-{number:02}" for number in range(draw.randint(1, 24))]
    owned = {member: {} for member in members}
    favoured = draw.sample(members, max(1, len(members) * draw.randint(2, 4) // 4))
    for topic, count in counts.items():
        for number in range(count):
            owned[draw.choice(favoured)].setdefault(topic, []).append(number)
    return {
        "id": f"group-{seed:04}",
        "topics": counts,
        "members": [
            {"id": member, "topics": list(counts), "owned": owned[member], "generation": 1}
            for member in members
        ],
    }


def closed_form(group):
    """Return the results for equal subscriptions: loads differ by at most 1 after the plan."""
    loads = sorted(
        (sum(map(len, member["owned"].values())) for member in group["members"]), reverse=True
    )
    count, total = len(loads), sum(loads)
    planned = [total // count + (number < total % count) for number in range(count)]
    least = planned[0]
    spread, planned_spread = loads[0] - loads[-1], planned[0] - planned[-1]
    idle, planned_idle = loads.count(0), planned.count(0)
    hot = sum(load > least for load in loads)
    return {
        "gap": round(loads[0] / least - 1, 4),
        "makespan": {"current": loads[0], "planned": least, "bound": least},
        "spread": {"current": spread, "planned": planned_spread},
        "idle": {"current": idle, "planned": planned_idle},
        "hot": hot,
        "moves": sum(max(0, now - then) for now, then in zip(loads, planned, strict=True)),
    }, (
        Fraction(least - loads[0], least),
        Fraction(planned_spread - spread, least),
        planned_idle - idle,
        -hot,
        group["id"],
    )


@pytest.mark.long
def test_a_thousand_groups_are_ranked_within_a_minute(kassay, write_groups):
    groups = [generated_group(seed) for seed in range(1000)]
    file = write_groups(*groups)
    start = time.monotonic()
    done = kassay("survey", file)
    assert time.monotonic() - start < 60
    expected = {group["id"]: closed_form(group) for group in groups}
    order = sorted(expected, key=lambda id: expected[id][1])
    assert [one["id"] for one in done.records] == order
    for one in done.records:
        values, _ = expected[one["id"]]
        assert {key: one[key] for key in values if key != "moves"} == {
            key: value for key, value in values.items() if key != "moves"
        }
        assert one["moves"] == {"value": values["moves"], "bound": values["moves"]}


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
    monkeypatch.setattr(admin_client, "LiveCluster", lambda *_, **__: Tables(groups))
    imported = kassay("import", "--bootstrap-server", "h:1").records
    options = ("--bootstrap-server", "h:1", "-o", tmp_path, "--format", "jsonl")
    surveyed = kassay("survey", *options).records
    assert sorted(one["id"] for one in surveyed) == [one["id"] for one in imported]
    verdicts = {one["id"]: one["verdict"] for one in surveyed}
    assert verdicts["left"] == "Nothing to do: the group has no members."
    assert "its consumers call assign()" in verdicts["simple"]
    assert "its consumers call assign()" in imported[2]["notes"][0]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["busy"]
