"""One question has one number: scale, forecast, plan, simulate and predict on groups."""

import json
import random
from dataclasses import replace

import pytest

import kassay
from kassay import Group, Member, Topic
from kassay.experiments.planning.change_forecast import current_load, forecast_changes, parse_sizes
from kassay.experiments.planning.configuration_choice import recommend
from kassay.experiments.planning.plan import plan
from kassay.experiments.prediction.predict import predict
from kassay.experiments.prediction.scenario import (
    Configuration,
    Crash,
    Leave,
    NewPartitions,
    Rebalance,
    Restart,
    RollingRestart,
    ScaleTo,
)
from kassay.experiments.simulation.assignor_policies import policy_named
from kassay.experiments.simulation.run_simulation import simulate
from kassay.experiments.simulation.script import load_script
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.group import GroupStatus, Protocol
from kassay.reference.model.load_metrics import Measure, shown
from kassay.solver.limits import SearchLimits

CLIENT = ("range", "roundrobin", "sticky", "cooperative-sticky")
BROKER = ("uniform", "server-range")


def stable_group(seed: int, *, members: int = 6) -> Group:
    """Return a group with the assignment of its assignor."""
    draw = random.Random(seed)
    assignor = draw.choice((*CLIENT, *BROKER))
    names = [f"t{number}" for number in range(draw.randint(1, 3))]
    weighted = draw.random() < 0.3
    topics = []
    for name in names:
        count = draw.randint(1, 12)
        weights = tuple(draw.randint(1, 50) for _ in range(count)) if weighted else None
        topics.append(Topic(name, count, weights=weights))
    ids = [f"pod-{number}" for number in range(draw.randint(2, members))]
    group = Group(
        id="g",
        topics=tuple(topics),
        members=tuple(Member(id=id, subscription=tuple(names)) for id in ids),
        status=GroupStatus(
            state="Stable",
            protocol=Protocol.CONSUMER if assignor in BROKER else Protocol.CLASSIC,
            assignor=assignor.removeprefix("server-"),
        ),
    )
    owned = rejoin(group, assign(group, assignor), generation=5)
    return replace(owned, status=group.status)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_other_numbers_of_members_have_one_load(first):
    for seed in range(first, first + 20):
        group = stable_group(seed)
        number = max(1, len(group.members) + random.Random(seed).choice([-1, 1, 2]))
        [step] = kassay.scale(group, first=number, last=number, limits=SearchLimits(work=0)).steps
        sizes = parse_sizes(group, members=str(number))
        current = Configuration.of(group)
        row = forecast_changes(group, current, sizes=sizes, samples=3)[-1]
        found = predict(group, events=ScaleTo(members=number), samples=3)
        cost, load = found.total, found.events[0].maximum_load
        for name in ("rebalances", "moves"):
            assert getattr(row.cost, name) == getattr(cost, name), (seed, name)
        is_broker = group.status.protocol is Protocol.CONSUMER
        # In the broker, the random ids of new members decide which weights they get.
        if not (is_broker and group.is_weighted):
            assert {step.assignor} == {*row.maximum_load.values} == {*load.values}, seed


def lost_rebalance(seed: int) -> Group:
    """Return a stable group, or one in which a member has all partitions of another one."""
    group = stable_group(seed, members=5)
    if seed % 2:
        return group
    first, second, *others = group.members
    both = replace(first, owned=(*first.owned, *second.owned))
    return replace(group, members=(both, replace(second, owned=()), *others))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_plan_forecast_and_prediction_give_one_number_and_one_advice(seed):
    group = lost_rebalance(seed)
    current = Configuration.of(group)
    found, result = forecast_changes(group, current), plan(group)
    assert shown(Measure.MAKESPAN, result.current.makespan, group) == current_load(group)
    rows = {(one.change.action, one.change.steps): one for one in found}
    compared = []
    for action in result.actions:
        if action.predicted_load is None:
            continue
        name, steps, event = action.configuration, (), None
        if action.text.startswith("restart "):
            event = Restart(members=(action.text.removeprefix("restart ").partition(":")[0],))
        elif action.text.startswith("trigger "):
            event = Rebalance()
        elif action.text.startswith("make all members static"):
            steps = (replace(current, is_static=True),)
        else:
            steps = tuple(current.steps_to(name))
            steps = steps[1:] if "if the members list" in action.text else steps
        row = rows.get((event, steps)) or forecast_changes(group, current, assignors=[name])[-1]
        events = [event] if event else [RollingRestart(to=one) for one in steps]
        first = predict(group, row.change.start, events, samples=row.prediction.samples)
        for cost in (first.total, row.cost):
            assert action.moves == round(cost.moves.record()["mean"])
            assert action.rebalances == round(cost.rebalances.record()["mean"])
        for load in (first.events[-1].maximum_load, row.maximum_load):
            assert action.predicted_load == load.record()["mean"]
        compared.append(row.change.name)
    if compared:
        assert compared[0] == recommend(found).configuration


# Between the times of idle and of busy consumers in predictions.
TIMES = {
    "latency": "4ms",
    "jitter": "16ms",
    "drift": "30ms",
    "poll": "200ms",
    "reconcile": "200ms",
    "start_up": "300ms",
    "metadata": "150s",
}


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(one, marks=pytest.mark.long) for one in range(3, 100))]
)
def test_a_simulated_event_is_a_course_that_is_predicted(seed, tmp_path):
    group = stable_group(seed)
    names, topic = [one.name for one in group.topics], group.topics[0]
    last, grown = group.members[-1].id, topic.partitions + 3
    joined = {"id": f"pod-{len(group.members)}", "topics": names}
    for changes, event in (
        ({"do": "leave", "member": last}, Leave(members=(last,))),
        ({"do": "crash", "member": last}, Crash(members=(last,))),
        ({"do": "join", "member": joined}, ScaleTo(members=len(group.members) + 1)),
        ({"do": "restart", "member": last, "for": "10s"}, Restart(members=(last,))),
        (
            {"do": "grow", "topic": topic.name, "partitions": grown},
            NewPartitions(topic=topic.name, partitions=grown),
        ),
    ):
        script = {
            "topics": {one.name: one.partitions for one in group.topics},
            "members": [{"id": one.id, "topics": names} for one in group.members],
            "settings": TIMES,
            "until": "12m",
            "events": [{"at": "122s", **changes}],
        }
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script))
        policy = policy_named(group.status.registered_assignor)
        simulated = simulate(load_script(str(path)), policy)
        before = [one for one in simulated.rebalances if one.at < 122_000]
        owned = {id.rpartition("-")[0]: tps for id, tps in before[-1].assignment.items()}
        counted = replace(group, topics=tuple(replace(one, weights=None) for one in group.topics))
        start = replace(rejoin(counted, Assignment(owned), generation=5), status=group.status)
        assert sum(len(one.owned) for one in start.members) == group.partition_count
        # In the broker, random ids of new members decide how many partitions move.
        samples = 80 if group.status.protocol is Protocol.CONSUMER else None
        found = predict(start, events=event, samples=samples)
        load = max(map(len, simulated.rebalances[-1].assignment.values()))
        for value, predicted, tolerance in (
            (load, found.events[0].maximum_load, 0),
            (len(simulated.rebalances) - len(before), found.total.rebalances, 0),
            (simulated.moves, found.total.moves, 0),
            (simulated.unowned_ms / 1000, found.total.unowned_seconds, 0.2),
        ):
            low, high = min(predicted.values), max(predicted.values)
            assert low * (1 - tolerance) <= value <= high * (1 + tolerance), (seed, str(event))


def test_weights_that_fall_to_members_by_chance_leave_no_partition_without_an_owner():
    group = lost_rebalance(63)
    found = forecast_changes(group, Configuration.of(group))
    assert len({tuple(one.maximum_load.values) for one in found}) > 1
    assert {one.assigned for one in found} == {group.partition_count}


@pytest.mark.parametrize("seed", range(3))
def test_a_forecast_is_the_prediction_of_its_restarts(seed):
    group = stable_group(seed, members=4)
    [first, *_] = forecast_changes(group, Configuration.of(group), samples=4, seed=seed)
    found = predict(group, events=RollingRestart(), samples=4, seed=seed)
    assert first.restart == found.events[0]
    assert first.over(1) == found.total
