"""Forecasts of Connect clusters and Streams applications."""

import pytest

from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.kinds.registry import KINDS
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from kassay.reference.model.errors import InputError
from kassay.solver.limits import SearchLimits

LIMITS = SearchLimits(work=10)


def forecast(document, *, limits=LIMITS, **request):
    found = KINDS[document.kind].forecast(document, ForecastRequest(limits=limits, **request))
    return found.record["settings"], found.sentence


def cluster(workers=3, tasks=6, **keys):
    step = {"workers": [f"w{n}" for n in range(workers)], "connectors": {"a": tasks}}
    return parse_kind_document(
        {"kind": "connect", "id": "c", "steps": [step], **keys}, kind=Kind.CONNECT
    )


def application(tasks=6, **config):
    processes = [
        {
            "id": f"00000000-0000-0000-0000-00000000000{number}",
            "threads": 1,
            "active": [f"0_{task}" for task in range(tasks) if task % 2 == number],
        }
        for number in range(2)
    ]
    topology = {"partitions": tasks, "stateful": True, "end_offsets": [50_000] * tasks}
    document = {
        "kind": "streams",
        "id": "app",
        "config": config,
        "subtopologies": {"0": topology},
        "processes": processes,
    }
    return parse_kind_document(document, kind=Kind.STREAMS)


def test_a_restart_waits_for_the_delay_and_not_for_the_worker():
    settings, sentence = forecast(cluster())
    assert sentence == (
        "Set scheduled.rebalance.max.delay.ms to 40 s: a restart of 30 s stops each task 40 s "
        "instead of 300 s."
    )
    by_delay = {one["delay_ms"]: one for one in settings}
    assert sorted(by_delay) == [0, 20_000, 40_000, 300_000]
    costs = {
        delay: (one["restart"]["stopped_ms"], one["restart"]["task_starts"])
        for delay, one in by_delay.items()
    }
    assert (costs[300_000], costs[40_000]) == ((600_000, 2), (80_000, 2))
    assert costs[0][0] == 0
    assert costs[0][1] > costs[40_000][1]
    assert {one["scale_out"]["stopped_ms"] for one in settings} == {0}
    assert by_delay[300_000]["loss"]["longest_stop_ms"] == 300_000


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (cluster(protocol="eager"), "'eager', which has no rebalance delay"),
        (cluster(tasks=0), "the last step has no task; add a connector"),
        (cluster(workers=0), "the last step has no worker"),
        (cluster(steps=[]), "the last step has no worker"),
        (
            cluster(steps=[{"workers": names, "connectors": {"a": 1}} for names in ([], ["w"])]),
            "assignor fails",
        ),
    ],
)
def test_a_cluster_without_a_delay_or_tasks_is_refused(document, message):
    with pytest.raises(InputError, match=message):
        forecast(document)


def test_the_tasks_of_the_only_worker_stop_until_it_is_back():
    settings, sentence = forecast(cluster(workers=1, tasks=4))
    for one in settings:
        restart = one["restart"]
        assert (restart["stopped_ms"], restart["longest_stop_ms"]) == (120_000, 30_000)
        assert one["rolling_restart"] == restart
        assert (one["scale_out"]["stopped_ms"], one["loss"]) == (0, None)
    assert sentence.endswith("a restart of 30 s stops each task 30 s.")


def test_requested_delays_are_compared_with_the_current_one():
    changes = {"scheduled.rebalance.max.delay.ms": ["20000", "60000"]}
    settings, sentence = forecast(cluster(), changes=changes)
    assert [one["delay_ms"] for one in settings] == [20_000, 60_000, 300_000]
    assert "to 60 s: a restart of 30 s stops each task 60 s instead of 300 s" in sentence


def test_requested_changes_of_an_application_are_compared_with_its_settings():
    changes = {"max.warmup.replicas": ["6", "2"]}
    found, text = forecast(application(), changes=changes)
    assert [one["settings"]["max_warmup_replicas"] for one in found] == [2, 6, 2]
    minutes = [one["events"]["join"]["probing_minutes"] for one in found]
    assert (
        f"With max.warmup.replicas 6, a join has {minutes[1]:g} minutes until it is stable "
        f"instead of {minutes[0]:g}." in text
    )
    assert text.endswith("The settings are the current ones.")


def test_settings_shorten_the_probing_of_a_new_process():
    (current, *others), sentence = forecast(application())
    assert current["settings"]["probing_rebalance_interval_ms"] == 600_000
    join = current["events"]["join"]
    assert (join["state_moves"], join["fewest_moves"]) == (4, 2)
    assert current["events"]["restart"]["state_moves"] == 0
    shortest = min(one["events"]["join"]["probing_minutes"] for one in others)
    assert shortest < join["probing_minutes"]
    assert sentence.startswith("Set probing.rebalance.interval.ms to 60000: a new process moves")
    assert "(2 suffice)" in sentence
