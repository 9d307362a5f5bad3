"""Commands for operators on share groups, Streams groups and Connect clusters."""

import html
import json
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "kinds"
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
    assert record["verdict"].startswith("If each member subscribes to every topic of the group")
    assert "sum of squares 54 (minimum 48)" in record["verdict"]


def test_each_measure_of_the_state_of_a_streams_group_has_a_minimum(kassay):
    done = kassay("plan", EXAMPLES / "streams-members-verbose.txt", "--format", "jsonl")
    measures = json.loads(done.out)["measures"].values()
    assert measures
    assert all(one["minimum"] is not None for one in measures)


def test_a_survey_has_one_row_per_document(kassay):
    done = kassay("survey", EXAMPLES, "--format", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    kinds = [row["kind"] for row in document["groups"]]
    assert {"connect", "share"} <= set(kinds)
    assert document["totals"]["groups_of_other_types"] == len(document["groups"])
    assert document["totals"]["errors"] == 0
    table = kassay("survey", EXAMPLES, "--format", "table")
    assert "connect kinds: The tasks of audit-log are uneven" in table.out.replace("\n", " ")
    assert "(KAFKA-17049). To do: Stop and resume connector" in table.out.replace("\n", " ")


@pytest.mark.parametrize("steps", [[], [{"workers": [], "connectors": {"a": 1}}]])
def test_a_cluster_without_workers_does_not_end_the_plan(kassay, tmp_path, steps):
    bad = {"kind": "connect", "id": "bad", "steps": steps}
    done, lines = plan_lines(kassay, tmp_path / "clusters.jsonl", [bad, CLUSTER])
    assert done.code == 2
    assert lines[0] == {
        "id": "bad",
        "error": "cluster 'bad': the last step has no worker; add one to it",
    }
    assert lines[1]["verdict"].startswith("Nothing to do: 1 workers")


def test_a_plan_page_has_the_state_and_the_costs_of_events(kassay, tmp_path):
    done = kassay("plan", EXAMPLES, "-o", tmp_path, "--format", "jsonl")
    assert done.code == 0, done.err
    directories = [Path(json.loads(line)["directory"]) for line in done.out.splitlines()]
    assert len(set(directories)) == len(directories) > 1
    plans = [json.loads((one / "plan.json").read_text(encoding="utf-8")) for one in directories]
    topics = {"connect": "connectors", "share": "topics", "streams-group": "subtopologies"}
    for directory, plan in zip(directories, plans, strict=True):
        page = (directory / "report.html").read_text(encoding="utf-8")
        assert html.escape(plan["verdict"]) in page.replace("&#39;", "&#x27;")
        assert ("Costs of events" in page) == (plan["kind"] == "connect")
        assert f"Numbers by {topics[plan['kind']]}" in page
    [cluster] = [plan for plan in plans if plan["kind"] == "connect"]
    status = json.loads((EXAMPLES / "connect-status.json").read_text())
    for connector, one in status.items():
        workers = [task["worker_id"] for task in one["status"]["tasks"]]
        assert {place: row.get(connector, 0) for place, row in cluster["matrix"].items()} == {
            place: workers.count(place) for place in cluster["matrix"]
        }
    assert all("kassay forecast" in (one / "ticket.md").read_text() for one in directories[:1])
    assert {one["delay_ms"] for one in cluster["settings"]} == {0, 20_000, 40_000, 300_000}


def test_a_forecast_compares_a_setting_of_connect(kassay):
    file = EXAMPLES / "connect-status.json"
    setting = "scheduled.rebalance.max.delay.ms=40000"
    done = kassay("forecast", file, "--set", setting, "--downtime", "30")
    record = json.loads(done.out)
    assert [one["delay_ms"] for one in record["settings"]] == [40_000, 300_000]
    assert record["difference"].endswith(
        "Set scheduled.rebalance.max.delay.ms to 40 s: a restart of 30 s stops each task 40 s "
        "instead of 300 s."
    )


def test_a_forecast_compares_each_combination_of_settings_of_streams(kassay, tmp_path):
    topology = {"partitions": 6, "stateful": True, "end_offsets": [50_000] * 6}
    processes = [
        {"id": f"00000000-0000-0000-0000-00000000000{n}", "threads": 1, "active": active}
        for n, active in enumerate((["0_0", "0_1", "0_2"], ["0_3", "0_4", "0_5"]))
    ]
    document = {"kind": "streams", "id": "app", "subtopologies": {"0": topology}}
    file = tmp_path / "app.json"
    file.write_text(json.dumps({**document, "processes": processes}))
    options = ("--set", "max.warmup.replicas=4,6", "--set", "num.standby.replicas=1")
    record = json.loads(kassay("forecast", file, *options).out)
    chosen = [
        (one["settings"]["max_warmup_replicas"], one["settings"]["num_standby_replicas"])
        for one in record["settings"]
    ]
    assert chosen == [(2, 0), (4, 1), (6, 1)]
    assert "With max.warmup.replicas 4 and num.standby.replicas 1, " in record["difference"]
    name = "org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor"
    same = json.loads(kassay("forecast", file, "--set", f"task.assignor.class={name}").out)
    assert same["difference"] == "The settings are the current ones."


def test_failed_tasks_and_their_maximum_are_read_from_the_rest_interface(kassay, tmp_path):
    tasks = [{"id": n, "state": "FAILED" if n else "RUNNING", "worker_id": "w"} for n in range(2)]
    status = {"name": "a", "connector": {"state": "FAILED", "worker_id": "w"}, "tasks": tasks}
    info = {"name": "a", "config": {"tasks.max": "2"}}
    file = tmp_path / "status.json"
    file.write_text(json.dumps({"a": {"status": status, "info": info}}))
    [step] = json.loads(kassay("import", file).out)["steps"]
    assert (step["failed"], step["tasks_max"]) == (["a-1", "a"], {"a": 2})
    record = json.loads(kassay("plan", file, "--format", "jsonl", "-o", tmp_path / "plan").out)
    assert record["cause"]["kind"] == "failed-tasks"
    assert record["actions"][0]["commands"] == [
        "curl -X POST 'http://WORKER:8083/connectors/a/restart?includeTasks=true&onlyFailed=true'"
    ]
    assert "- [ ] Restart the failed" in (tmp_path / "plan" / "ticket.md").read_text()
