"""Plans of Connect clusters and Streams: the cause, the simulated actions, and the moves."""

import json
import random
import re
from collections import Counter

import pytest

from kassay.experiments.kinds.streams_forecast import (
    HIGH_AVAILABILITY,
    RESTORE_MS,
    restart_process,
    run_application_until_stable,
)
from kassay.experiments.planning.kind_plan import PAGE, TEXT, TICKET, plan_kind, render_kind_plan
from kassay.reference.assignors.connect import assign_incrementally
from kassay.reference.documents.kind_documents import parse_kind_document
from kassay.solver.limits import SearchLimits
from tests.conftest import ROOT
from tests.stored_cases import stored_cases

CASES = stored_cases("kind_causes")
PLANNED = [document for _, document in CASES if "members" not in document]


def planned(document):
    return plan_kind(parse_kind_document(document, kind=None), limits=SearchLimits(work=10))


def counts(places):
    """Return the numbers of tasks per place and topic, from tasks as in documents."""
    return {
        place: dict(Counter(re.split(r"[-_](?=\d+$)", task)[0] for task in tasks))
        for place, tasks in places.items()
    }


@pytest.mark.parametrize(("cause", "document"), CASES)
def test_the_cause_of_a_made_group_is_named_and_no_other(cause, document):
    plan = planned(document)
    assert [one.kind for one in plan.causes] == ([] if cause is None else [cause])
    causes = (f"{one.text} To do: {plan.to_do}." for one in plan.causes)
    assert plan.summary == " ".join([*causes, plan.verdict])


def test_each_cause_is_made_at_least_twice():
    causes = json.loads((ROOT / "experiments" / "kinds" / "causes.json").read_text())
    made = Counter(cause for cause, _ in CASES if cause)
    assert {kind for kind in causes if made[kind] >= 2} == set(causes)


@pytest.mark.parametrize("seed", range(40))
def test_no_cause_is_claimed_on_a_balanced_group(seed):
    chosen = random.Random(seed)
    places, topics = chosen.randint(1, 5), chosen.randint(1, 4)
    sizes = {f"t{n}": places * chosen.randint(1, 3) for n in range(topics)}
    tasks = [(name, number) for name, size in sizes.items() for number in range(size)]
    chosen.shuffle(tasks)
    dealt = {place: [] for place in range(places)}
    for name, number in tasks:  # each topic is even, so all loads are equal
        fewest = min(dealt, key=lambda place: sum(t == name for t, _ in dealt[place]))
        dealt[fewest].append((name, number))
    running = {
        f"w{place}": {"connectors": [], "tasks": [f"{name}-{number}" for name, number in own]}
        for place, own in dealt.items()
    }
    for index, name in enumerate(sizes):
        running[f"w{index % places}"]["connectors"].append(name)
    step = {"workers": [*running], "connectors": sizes, "running": running}
    members = [
        {
            "id": f"m{place}",
            "process": f"p{place}",
            "active": {t: [n for name, n in own if name == t] for t in sizes},
        }
        for place, own in dealt.items()
    ]
    topology = {name: {"partitions": n, "stateful": True} for name, n in sizes.items()}
    for document in (
        {"kind": "connect", "steps": [step]},
        {"kind": "streams-group", "subtopologies": topology, "members": members},
    ):
        plan = planned(document)
        assert (plan.causes, plan.actions, plan.planned) == ((), (), None)
        assert plan.verdict.startswith("Nothing to do: ")


@pytest.mark.parametrize("document", PLANNED)
def test_the_moves_lead_from_the_current_to_the_planned_matrix(document):
    plan = planned(document)
    record = plan.record()
    matrix = {place: Counter(row) for place, row in record["matrix"].items()}
    for move in record["moves"]:
        if move["from"] is not None:
            matrix[move["from"]][move["topic"]] -= 1
        matrix[move["to"]][move["topic"]] += 1
    if plan.planned is None:
        assert (record["planned_matrix"], record["moves"]) == (None, [])
        return
    assert {place: +row for place, row in matrix.items()} == {
        place: Counter(row) for place, row in record["planned_matrix"].items()
    }
    values = [
        (one["planned"], one["value"]) for one in record["measures"].values() if "planned" in one
    ]
    increased = "Set tasks.max" in record["actions"][0]["action"]
    assert increased or all(after <= before for after, before in values)


def test_a_stopped_and_resumed_connector_has_the_promised_tasks():
    found = 0
    for _, document in CASES:
        plan = planned(document)
        for action in plan.record()["actions"]:
            match = re.match("Stop and resume connector (.+?),", action["action"])
            if match is None:
                continue
            [step] = document["steps"]
            for seed in range(30):
                names = random.Random(seed).sample(range(1000), len(step["workers"]))
                ids = dict(zip(step["workers"], map("{:03}".format, names), strict=True))
                running = {ids[worker]: own for worker, own in step["running"].items()}
                same = {"workers": [*running], "connectors": step["connectors"]}
                stopped = {**same, "connectors": {**step["connectors"], match[1]: 0}}
                steps = [{**same, "running": running}, stopped, same]
                sequence = parse_kind_document({"kind": "connect", "steps": steps}, kind=None)
                state = assign_incrementally(sequence)["steps"][-1]["state"]
                after = counts({worker: own["tasks"] for worker, own in state.items()})
                spread = sum(n**2 for row in after.values() for n in row.values())
                assert spread < plan.record()["measures"]["task_topic_spread"]["value"]
                assert (
                    max(sum(row.values()) for row in after.values())
                    == (action["maximum_load"]["mean"])
                )
                found += 1
    assert found >= 60


def test_a_restarted_process_has_the_promised_tasks_and_costs():
    found = 0
    for _, document in CASES:
        for action in planned(document).actions:
            id = re.match("Restart process (.+)", action.action.text)
            if id is None:
                continue
            restarted = restart_process(parse_kind_document(document, kind=None), id[1])
            event = run_application_until_stable(restarted, HIGH_AVAILABILITY, warmup_ms=RESTORE_MS)
            after = {one["id"]: one["active"] for one in event.application.content["processes"]}
            predicted = action.record()
            assert predicted["maximum_load"]["mean"] == max(map(len, after.values()))
            assert predicted["rebalances"]["mean"] == event.rebalances
            assert predicted["state_moves"]["mean"] == event.state_moves
            found += 1
    assert found


@pytest.mark.parametrize("document", PLANNED)
def test_what_cannot_be_carried_out_is_not_called_a_plan(document):
    plan = planned(document)
    is_no_plan = plan.verdict.startswith(("No plan, because ", "Nothing to do: "))
    assert is_no_plan == (not plan.actions)


def test_page_ticket_and_text_have_the_cause_the_matrix_and_escaped_names():
    running = {
        "w`<b>": {"connectors": ["a|b"], "tasks": ["a|b-0", "a|b-1"]},
        "w1": {"connectors": ["c"], "tasks": ["c-0", "c-1"]},
    }
    step = {"workers": [*running], "connectors": {"a|b": 2, "c": 2}, "running": running}
    plan = planned({"kind": "connect", "id": "x_y", "steps": [step]})
    page, ticket, text = (render_kind_plan(plan, one) for one in (PAGE, TICKET, TEXT))
    assert "<b>" not in re.sub("w`&lt;b&gt;", "", page)
    assert r"| a\|b  |" in ticket
    assert "<b>" not in ticket.replace("``w`<b>``", "").replace(r"\<b\>", "")
    assert "- `a|b-1` from".replace("|", r"\|") in ticket
    assert text.startswith("x_y: The tasks of a|b are uneven, 2 on w`<b> and 0 on w1: ")
    assert text.index("To do: Stop and resume connector") < text.index("2 → 1")
    assert "/connectors/a%7Cb/stop" in text


def test_the_verdict_names_the_action_that_moves_tasks_unless_it_is_the_first():
    running = {
        "w0": {"connectors": ["a"], "tasks": ["a-0"]},
        "w1": {"connectors": [], "tasks": ["a-1"]},
    }
    step = {"workers": [*running], "connectors": {"a": 3}, "running": running, "failed": ["a-0"]}
    verdict = planned({"kind": "connect", "steps": [step]}).verdict
    assert verdict.startswith("Wait for the next rebalance, at most 300 s")
    del step["failed"]
    assert planned({"kind": "connect", "steps": [step]}).verdict.startswith("1 started task; ")
