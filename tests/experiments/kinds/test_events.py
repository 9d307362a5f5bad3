"""Events of Streams applications and Connect clusters until the assignment is stable."""

import pytest

from kassay.experiments.implementations.run_assignor import (
    DocumentRunResult,
    Ending,
    run_on_document,
)
from kassay.experiments.kinds import streams_forecast as streams_events
from kassay.experiments.kinds.connect_clusters import measure_cluster
from kassay.experiments.kinds.streams_forecast import (
    join_process,
    leave_process,
    restart_process,
    run_application_until_stable,
)
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from kassay.reference.model.errors import InputError

A, B, C = (f"00000000-0000-0000-0000-00000000000{letter}" for letter in "abc")
PORT = "streams-high-availability"


def application(processes, *, standbys=0, partitions=6, **config):
    document = {
        "kind": "streams",
        "subtopologies": {
            "0": {"partitions": partitions, "stateful": True, "end_offsets": [50_000] * partitions}
        },
        "config": {"num_standby_replicas": standbys, **config},
        "processes": [
            {"id": id, "threads": 2, "active": list(active)} for id, active in processes.items()
        ],
    }
    return parse_kind_document(document, kind=Kind.STREAMS)


def active(document):
    return {one["id"]: one.get("active", []) for one in document.content["processes"]}


def test_a_join_moves_three_tasks_where_one_move_suffices():
    before = application({A: ["0_0", "0_2"], C: ["0_1", "0_3"]}, partitions=4)
    event = run_application_until_stable(join_process(before, B, threads=2), PORT)
    assert event.ending is Ending.OK
    assert (event.rebalances, event.probing_ms) == (3, 1_200_000)
    assert (event.state_moves, event.restored_copies) == (3, 3)
    assert active(event.application) == {A: ["0_0", "0_3"], B: ["0_1"], C: ["0_2"]}


def test_the_probing_interval_and_the_time_of_a_warm_up_decide_the_minutes():
    tasks = [f"0_{number}" for number in range(6)]
    before = application({A: tasks}, probing_rebalance_interval_ms=60_000)
    joined = join_process(before, B, threads=2)
    fast = run_application_until_stable(joined, PORT)
    slow = run_application_until_stable(joined, PORT, warmup_ms=150_000)
    assert (fast.rebalances, fast.probing_ms) == (3, 120_000)
    assert (slow.rebalances, slow.probing_ms) == (7, 360_000)
    assert fast.state_moves == slow.state_moves == 3


def test_a_restart_with_state_needs_one_rebalance_and_no_move():
    before = application({A: ["0_0", "0_2", "0_4"], B: ["0_1", "0_3", "0_5"]})
    event = run_application_until_stable(restart_process(before, A), PORT)
    assert (event.rebalances, event.state_moves, event.restored_copies) == (1, 0, 0)


def test_tasks_of_a_process_that_left_are_no_moves():
    before = application({A: ["0_0", "0_3"], B: ["0_1"], C: ["0_2"]}, partitions=4)
    event = run_application_until_stable(leave_process(before, C), PORT)
    assert (event.state_moves, event.rebalances) == (1, 2)
    assert active(event.application) == {A: ["0_0", "0_2"], B: ["0_1", "0_3"]}
    with pytest.raises(InputError, match="the document has no process "):
        leave_process(event.application, C)


def answering(monkeypatch, answer):
    def run(document, name):
        return answer(document)

    monkeypatch.setattr(streams_events.run_assignor, "run_on_document", run)


def test_follow_up_rebalances_that_change_nothing_do_not_end(monkeypatch):
    def same(document):
        processes = {
            one["id"]: {"active": one["active"], "standby": []}
            for one in document.content["processes"]
        }
        return DocumentRunResult(answer={"followup_rebalance": True, "processes": processes})

    answering(monkeypatch, same)
    event = run_application_until_stable(application({A: ["0_0"]}, partitions=1), "fallback-prior")
    assert event.ending is Ending.NONTERMINATING
    assert event.detail == "rebalance 2 requests another one and changes nothing"


@pytest.mark.parametrize(("delay", "stopped"), [(300_000, 600), (40_000, 80), (0, 0)])
def test_a_restart_of_30_s_stops_tasks_for_the_delay(delay, stopped):
    step = {"connectors": {"a": 4}, "wait_ms": 60_000}
    steps = [
        {**step, "workers": ["w0", "w1"]},
        {**step, "workers": ["w0"], "until_stable": False},
        {**step, "workers": ["w0", "w2"], "wait_ms": 30_000},
    ]
    document = {"kind": "connect", "scheduled_rebalance_max_delay_ms": delay, "steps": steps}
    cluster = parse_kind_document(document, kind=Kind.CONNECT)
    answer = run_on_document(cluster, "connect-incremental").answer
    cost = measure_cluster(cluster, answer)
    assert (cost.stopped_ms, cost.stopped_ms_per_task) == (stopped * 1000, stopped * 500)
    assert answer["steps"][-1]["stable"]
