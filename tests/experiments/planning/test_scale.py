"""Loads by number of members, compared with runs of the assignors."""

import random
import re
from dataclasses import replace
from itertools import accumulate, cycle

import pytest
import yaml

import kassay
from kassay import Group, Member, Topic
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.scale import Autoscaler, autoscaler_values
from kassay.reference.assignors import NEWEST_ASSIGNORS, assign
from kassay.reference.model.assignment import rejoin
from kassay.solver.limits import SearchLimits
from tests.log_normal_groups import log_normal_group


def judged_load(assignor: str, group: Group) -> int:
    """Return the maximum load of range or roundrobin, by the rules of their documentation."""
    loads = {one.id: 0 for one in group.members}
    topics = {one.id: set(one.subscription) for one in group.members}
    circle = cycle(sorted(loads))
    for topic in sorted(group.topics, key=lambda one: one.name):
        fit = sorted(one for one in loads if topic.name in topics[one])
        few, more = divmod(topic.partitions, len(fit) or 1)
        blocks = [one for at, one in enumerate(fit) for _ in range(few + (at < more))]
        for at in range(topic.partitions if fit else 0):
            in_turn = blocks[at] if assignor == "range" else next(o for o in circle if o in fit)
            loads[in_turn] += topic.weight(at)
    return max(loads.values())


def group_of(rng: random.Random, *, weighted: bool) -> Group:
    counts = [rng.randint(1, 12) for _ in range(rng.randint(1, 3))]
    topics = tuple(
        Topic(
            f"t{at}", count, weights=[rng.randint(1, 9) for _ in range(count)] if weighted else None
        )
        for at, count in enumerate(counts)
    )
    names = tuple(topic.name for topic in topics)
    members = [Member(f"m{at}", names) for at in range(rng.randint(1, 6))]
    return Group(topics, tuple(members), id="g")


def resized(group: Group, number: int) -> Group:
    """Return the group without its last members, or with members of all topics."""
    kept, names = group.members[:number], tuple(topic.name for topic in group.topics)
    added = (Member(f"m{at}", names) for at in range(len(kept), number))
    return Group(group.topics, (*kept, *added))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_loads_are_those_of_an_assignor(seed, weighted):
    group = group_of(random.Random(seed), weighted=weighted)
    found = kassay.scale(group, first=1, last=10, assignor="range")
    assert [step.members for step in found.steps] == list(range(1, 11))
    for step in found.steps:
        then = resized(group, step.members)
        loads = [
            max(kassay.loads(then, kassay.assign(then, name)).values())
            for name in NEWEST_ASSIGNORS
            if name != "cooperative-sticky"
        ]
        assert step.best.load == min(loads)
        assert step.optimum.bound <= step.optimum.value <= step.best.load


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_loads_of_200_groups_are_those_of_the_judge(first):
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        group = group_of(rng, weighted=bool(seed % 2))
        names = [topic.name for topic in group.topics]
        if seed % 3:  # mixed subscriptions; one member has all topics
            members = [
                replace(one, subscription=tuple(rng.sample(names, rng.randint(1, len(names)))))
                for one in group.members[1:]
            ]
            group = replace(group, members=(group.members[0], *members))
        assignor = ("range", "roundrobin")[seed % 4 // 2]
        number = rng.randint(1, 40)
        [step] = kassay.scale(
            group, first=number, last=number, assignor=assignor, limits=SearchLimits(work=0)
        ).steps
        assert step.assignor == judged_load(assignor, resized(group, number)), seed


def bins_needed(weights, size):
    """Return a lower and an upper limit of the members that a load needs: first fit decreasing."""
    bins = []
    for weight in sorted(weights, reverse=True):
        at = next((at for at, load in enumerate(bins) if load + weight <= size), len(bins))
        bins[at : at + 1] = [weight + (bins[at] if at < len(bins) else 0)]
    return -(-sum(weights) // size), len(bins)


def judged_replicas(formula, lag):
    """Return the replicas of a KEDA formula: the first case that holds, or the last number."""
    cases = re.findall(r"lag <= (\d+) \? (\d+) :", formula)
    last = int(formula.rpartition(":")[2])
    return next((int(members) for limit, members in cases if lag <= int(limit)), last)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(at, marks=pytest.mark.long) for at in range(5, 200, 5))]
)
def test_all_numbers_of_a_scale_are_those_of_the_judge(first):
    for seed in range(first, first + 5):
        rng = random.Random(1000 + seed)
        own = tuple(NEWEST_ASSIGNORS)[seed % len(NEWEST_ASSIGNORS)]
        group = group_of(rng, weighted=rng.random() < 0.5)
        group = rejoin(group, assign(group, own), generation=5)
        weights = [topic.weight(at) for topic in group.topics for at in range(topic.partitions)]
        target = max(*weights, rng.randint(1, -(-sum(weights) // len(group.members))))
        found = kassay.scale(
            group, first=1, last=40, assignor=own, maximum_load=target, limits=SearchLimits(work=5)
        )
        loads = {name: [] for name in NEWEST_ASSIGNORS}
        for number in range(1, 41):
            then = resized(group, number)
            for name, known in loads.items():
                if name.removeprefix("server-") in ("range", "roundrobin"):
                    known.append(judged_load(name.removeprefix("server-"), then))
                else:
                    stable = run_until_stable(then, name).assignment
                    known.append(max(kassay.loads(then, stable).values()))
        best = list(map(min, zip(*loads.values(), strict=True)))
        steps = [(one.members, one.assignor, one.best.load) for one in found.steps]
        assert steps == list(zip(range(1, 41), loads[own], best, strict=True)), seed
        for step in found.steps:
            assert loads[step.best.name][step.members - 1] == step.best.load
            mean = -(-sum(weights) // step.members)
            assert max(mean, *weights) <= step.optimum.value <= step.best.load
            if len({*weights}) == 1:
                assert step.optimum.value == weights[0] * -(-len(weights) // step.members)
        low, high = bins_needed(weights, target)
        assert low <= found.needed.optimum.value <= high
        firsts = [
            next((at for at, load in enumerate(one, 1) if load <= target), None)
            for one in (loads[own], best)
        ]
        needed = (found.needed.assignor, found.needed.best and found.needed.best.members)
        for number, judged in zip(needed, firsts, strict=True):
            assert number == judged or (judged is None and number > 40), seed
        lowest = [99_999, *accumulate(loads[own], min)]
        useful = [at for at in range(1, 41) if loads[own][at - 1] < lowest[at - 1]]
        for kind, names in (
            (Autoscaler.KEDA, ("minReplicaCount", "maxReplicaCount")),
            (Autoscaler.HPA, ("minReplicas", "maxReplicas")),
        ):
            text = autoscaler_values(group, found, kind)
            listed = re.findall(r"^#   (\d+): (\d+)$", text, re.MULTILINE)
            assert listed == [(str(at), str(loads[own][at - 1])) for at in useful], seed
            spec = yaml.safe_load(text)["spec"]
            assert [spec[name] for name in names] == [useful[0], useful[-1]], seed
            if kind is Autoscaler.KEDA:
                formula = spec["advanced"]["scalingModifiers"]["formula"]
                for lag in range(0, 410, 5):  # 10 messages per replica
                    enough = [at for at in useful if lag <= 10 * at]
                    assert judged_replicas(formula, lag) == [*enough, useful[-1]][0], (seed, lag)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_members_needed_are_the_first_sufficient_step(weighted):
    group = group_of(random.Random(3), weighted=weighted)
    steps = kassay.scale(group, first=1, last=40, assignor="range").steps
    for target in sorted({step.assignor for step in steps}):
        needed = kassay.scale(group, first=1, last=1, assignor="range", maximum_load=target).needed
        firsts = [
            next(step.members for step in steps if load(step) <= target)
            for load in (
                lambda step: step.optimum.value,
                lambda step: step.assignor,
                lambda step: step.best.load,
            )
        ]
        assert [needed.optimum.value, needed.assignor, needed.best.members] == firsts


def test_a_load_that_the_assignor_never_reaches_has_no_number_of_members():
    topics = tuple(Topic(f"t{at}", 2) for at in range(4))
    group = Group(topics, (Member("a", [topic.name for topic in topics]),))
    needed = kassay.scale(group, maximum_load=1, assignor="range").needed
    assert (needed.optimum.value, needed.assignor, needed.best.members) == (8, None, 8)


def test_the_steps_surround_the_current_number_by_default():
    group = log_normal_group(partitions=300, members=100, seed=1)
    steps = kassay.scale(group).steps
    assert (steps[0].members, steps[-1].members) == (81, 120)


def test_the_own_assignor_is_the_best_one_if_loads_are_equal():
    group = Group((Topic("t", 4),), (Member("a", ("t",)),))
    [step] = kassay.scale(group, first=2, last=2, assignor="sticky").steps
    assert step.best == ("sticky", 2)


def test_numbers_out_of_order_are_refused():
    with pytest.raises(kassay.UsageError, match="first must be from 1 to last"):
        kassay.scale(log_normal_group(3, 1), first=3, last=2)
