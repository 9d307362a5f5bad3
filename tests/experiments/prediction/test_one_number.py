"""One question has one number: scale, forecast, plan and predict on generated groups."""

import random
from dataclasses import replace

import pytest

import kassay
from kassay import Group, Member, Topic
from kassay.experiments.planning.forecast import forecast_changes, parse_sizes
from kassay.experiments.planning.plan import plan
from kassay.experiments.prediction.predict import predict, sample_count
from kassay.experiments.prediction.scenario import (
    Configuration,
    Rebalance,
    Restart,
    RollingRestart,
    ScaleTo,
)
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group import GroupStatus, Protocol
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


@pytest.mark.parametrize("seed", range(8))
def test_actions_of_a_plan_are_those_of_the_prediction(seed):
    group = stable_group(seed)
    hot = max(group.members, key=lambda one: len(one.owned))
    others = tuple(replace(one, owned=()) for one in group.members if one.id != hot.id)
    # A lost rebalance: one member has all partitions.
    owned = [(topic.name, n) for topic in group.topics for n in range(topic.partitions)]
    group = replace(group, members=(replace(hot, owned=owned), *others))
    current = Configuration.of(group)
    compared = 0
    for action in plan(group).actions:
        if action.text.startswith("restart "):
            member = action.text.removeprefix("restart ").partition(":")[0]
            found = predict(group, events=Restart(members=(member,)), samples=3)
        elif action.changes_assignor or action.text.startswith("trigger "):
            steps = [RollingRestart(to=one) for one in current.steps_to(action.configuration)]
            events = steps if action.changes_assignor else [Rebalance()]
            count = sample_count(group, current, events) // 3
            found = predict(group, events=events, samples=max(3, count))
        else:
            continue
        assert action.moves == round(found.total.moves.mean)
        assert action.rebalances == round(found.total.rebalances.mean)
        compared += 1
        if not group.is_weighted:
            assert action.makespan in found.events[-1].maximum_load.values
    assert compared or group.is_weighted or len(group.members) < 3


@pytest.mark.parametrize("seed", range(3))
def test_a_forecast_is_the_prediction_of_its_restarts(seed):
    group = stable_group(seed, members=4)
    [first, *_] = forecast_changes(group, Configuration.of(group), samples=4, seed=seed)
    found = predict(group, events=RollingRestart(), samples=4, seed=seed)
    assert first.restart == found.events[0]
    assert first.over(1) == found.total
