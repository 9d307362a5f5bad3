"""Forecasts of rolling restarts, other assignors, static members and the consumer protocol."""

import random
import re
from dataclasses import replace

import pytest

from kassay import Group, Member, Topic
from kassay.experiments.planning.change_forecast import CurrentLoads, Forecast, forecast_changes
from kassay.experiments.planning.configuration_choice import Criterion, recommend
from kassay.experiments.planning.plan import plan
from kassay.experiments.prediction.scenario import Configuration, Rebalance, RollingRestart
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Client, GroupStatus, Protocol


def running_group(assignor: str, members: int = 6, partitions: int = 24) -> Group:
    protocol = Protocol.CONSUMER if assignor in ("uniform", "server-range") else Protocol.CLASSIC
    name = "range" if assignor == "server-range" else assignor
    group = Group(
        id="g",
        topics=(Topic(name="t", partitions=partitions), Topic(name="u", partitions=7)),
        members=tuple(Member(id=f"pod-{n}", subscription=("t", "u")) for n in range(members)),
        status=GroupStatus(state="Stable", protocol=protocol, assignor=name),
    )
    return replace(rejoin(group, assign(group, assignor), generation=9), status=group.status)


def forecast(group: Group, *, current: str | None = None, **options) -> list[Forecast]:
    configuration = Configuration.of(group, current)
    return forecast_changes(group, configuration, samples=2, **options)


def by_name(forecasts: list[Forecast]) -> dict[str, Forecast]:
    return {one.change.name: one for one in forecasts}


def test_a_restart_of_n_members_causes_two_rebalances_per_batch():
    group = running_group("range")
    for size, batches in ((1, 6), (2, 3), (4, 2), (6, 1)):
        (first, *_) = forecast(group, assignors=(), batch_sizes=(size,))
        expected = 2 * batches
        assert (first.batch_size, first.cost) == (size, None)
        assert first.restart.cost.rebalances.mean == expected


def test_groups_with_weights_or_without_sticky_can_change_to_another_assignor():
    for assignor, other in (("range", "roundrobin"), ("uniform", "server-range")):
        group = running_group(assignor)
        topics = (replace(one, weights=range(1, one.partitions + 1)) for one in group.topics)
        weighted = replace(group, topics=tuple(topics))
        assert other in by_name(forecast(weighted))
        assert other not in by_name(forecast(group))
    members = tuple(replace(one, client=Client(library="librdkafka")) for one in group.members)
    group = replace(running_group("range"), members=members)
    assert "roundrobin" in by_name(forecast(group))


_CHANGES = [
    (assignor, target)
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")
    for target in ("sticky", "cooperative-sticky", "uniform", "server-range")
    if assignor != target
]


@pytest.mark.parametrize(("assignor", "target"), _CHANGES)
def test_after_a_change_the_group_has_the_loads_of_the_new_assignor(assignor, target):
    group = running_group(assignor)
    results = by_name(forecast(group, assignors=(target,)))
    found = next(one for name, one in results.items() if name.split(",")[0] == target)
    fresh = assign(rejoin(group, {}, generation=-1), target)
    assert found.restart.maximum_load.mean == max(fresh.counts().values())
    steps = 2 if target == "cooperative-sticky" else 1
    assert len(found.change.steps) == steps
    assert found.cost.rebalances.low >= 12 * steps
    assert found.restart.cost.rebalances.low >= 12


@pytest.mark.parametrize("seed", range(6))
def test_random_groups_end_completely_consumed_in_each_configuration(seed):
    draw = random.Random(seed)
    assignor = draw.choice(["range", "sticky", "cooperative-sticky", "uniform"])
    group = running_group(assignor, members=draw.randint(2, 7), partitions=draw.randint(1, 30))
    restart = RollingRestart(
        downtime=draw.choice([0, 0.5, 10, 60]), pause=draw.choice([0.1, 2, 30])
    )
    total = group.partition_count
    for one in forecast(group, batch_sizes=(draw.randint(1, 3),), restart=restart, seed=seed):
        loads = one.restart.sorted_loads
        assert sum(load.mean for load in loads) == pytest.approx(total)
        assert -(-total // len(group.members)) <= one.restart.maximum_load.low


def test_groups_of_the_consumer_protocol_stay_in_it_unless_asked():
    names = by_name(forecast(running_group("uniform")))
    assert list(names) == ["uniform, current", "uniform, static members"]
    names = by_name(forecast(running_group("server-range")))
    assert list(names)[2:] == ["uniform"]
    assert names["uniform"].restart.maximum_load.mean == 6
    found = by_name(forecast(running_group("uniform"), assignors=("sticky",)))
    assert found["sticky, classic protocol"].restart.members.mean == 6


def test_differences_within_the_uncertainty_do_not_decide():
    forecasts = forecast(running_group("range"), assignors=())
    best = recommend(forecasts, Criterion.MOVES)
    assert best.configuration == "range, static members"
    # The partitions of static members wait for the downtime.
    assert recommend(forecasts).configuration == "range, current"


@pytest.mark.parametrize("criterion", list(Criterion))
@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky", "server-range"])
@pytest.mark.parametrize("uneven", [False, True])
def test_each_reason_is_true_for_its_numbers(assignor, criterion, uneven):
    group = running_group(assignor, members=3, partitions=7)
    first, *others = forecast(group)
    if uneven:
        first = replace(first, now=CurrentLoads(9, 81, 9))
    forecasts = [first, *others]
    best = recommend(forecasts, criterion, restarts_per_week=3, optimum=1)
    [new] = [one for one in forecasts if one.change.name == best.configuration]
    old, text = forecasts[0], best.reason
    costs = [criterion.of(one.over(12)) for one in (new, old)]
    assert "over 12 rolling restarts in 4 weeks" in text
    loads = [one.highest("maximum_load") for one in (new, old)]
    if new is old:
        assert not uneven
        assert f"the maximum load stays {loads[0]} (the minimum is 1)" in text
        has_fewer = [
            one.change.name
            for one in forecasts
            if old.restart.maximum_load.values == one.restart.maximum_load.values
            and costs[1].low > criterion.of(one.over(12)).high
            # Restarts that stop the whole group are not recommended for their time without owners.
            and (old.restart.cost.stopped_seconds.mean or not one.restart.cost.stopped_seconds.mean)
        ]
        assert "as few stops" in text
        assert not has_fewer
    elif str(loads[0]) != str(loads[1]):
        given = f"a maximum load of {loads[0]} instead of {loads[1]}"
        assert given in text
        assert (f"{given}, no m" not in text) == loads[1].is_above(loads[0], factor=1.02)
    else:
        assert f"the same maximum load, {loads[0]}" in text
    if new is not old:
        given = re.escape(f"change, {costs[0]} instead of {costs[1]} ")
        pattern = rf"{given}[a-z -]+, (?:(lower|higher) in (\d+) of (\d+) samples|(no m))"
        word, count, samples, equal = re.search(pattern, text).groups()
        assert equal or int(samples) == new.prediction.samples
        counts = [costs[1].samples_above(costs[0]), costs[0].samples_above(costs[1])]
        assert (equal is None) == (4 * max(counts) >= 3 * len(costs[0].values))
        assert equal or counts[word == "higher"] == int(count)
        steps = len(new.change.steps)
        taken = f"takes {steps} rolling restart" if steps else f"is a {new.change.action} with"
        assert f"The change itself {taken}" in text
    stopped = new.restart.cost.stopped_seconds
    assert ("stops the whole group" in text) <= (stopped.mean >= 0.05)
    assert ("never stands still" in text) <= (stopped.high == 0)


def test_a_change_has_lower_loads_than_now_and_not_only_than_another_change():
    weights = (
        (50, 19, 12, 33, 91, 54, 10, 22, 10, 10, 42, 154),
        (34, 10, 154, 437, 23, 12, 17, 51),
    )
    status = GroupStatus(state="Stable", protocol=Protocol.CLASSIC, assignor="roundrobin")
    group = Group(
        tuple(Topic(name, len(row), weights=row) for name, row in zip("ab", weights, strict=True)),
        tuple(Member(f"c0{n}", ("a", "b")) for n in range(4)),
        status=status,
    )
    group = replace(rejoin(group, assign(group, "roundrobin"), generation=5), status=status)
    found = recommend(forecast_changes(group, Configuration.of(group)))
    assert found.configuration != "roundrobin, current"
    assert not re.match(".* instead of [^;]*, no meaningful difference;", found.reason)


def test_equal_weights_are_the_unit_of_predicted_loads():
    members = (
        Member("x", ("a",), owned=[("a", 0), ("a", 1), ("a", 2)], generation=1),
        Member("y", ("a",), owned=[("a", 3)], generation=1),
    )
    status = GroupStatus(state="Stable", protocol=Protocol.CLASSIC, assignor="sticky")
    for weight in (0, 1, 5_000_000):
        topics = (Topic("a", 4, weights=(weight,) * 4),)
        forecasts = forecast(Group(topics, members, status=status))
        assert {one.maximum_load.mean for one in forecasts} == {2 * weight}
        assert "e+" not in recommend(forecasts).reason


def moved(group: Group, *, count: int = 4) -> Group:
    """Return a group in which the first member has some partitions of the last one."""
    first, *others, last = group.members
    first = replace(first, owned=(*first.owned, *last.owned[:count]))
    return replace(group, members=(first, *others, replace(last, owned=last.owned[count:])))


def test_slightly_more_even_loads_are_no_reason_for_a_change():
    forecasts = forecast(running_group("range", members=4, partitions=7))
    assert {one.highest("squares").mean for one in forecasts} == {50, 52}
    assert recommend(forecasts).configuration == "range, current"
    assert not plan(running_group("range", members=4, partitions=7)).actions


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "roundrobin"])
@pytest.mark.parametrize("criterion", list(Criterion))
def test_a_balanced_group_of_static_members_needs_no_rebalance(assignor, criterion):
    group = running_group(assignor, members=3, partitions=5)
    static = tuple(replace(one, instance_id=one.id) for one in group.members)
    forecasts = forecast(replace(group, members=static))
    assert forecasts[-1].change.name == f"{assignor}, rebalance"
    assert recommend(forecasts, criterion).configuration != forecasts[-1].change.name


@pytest.mark.parametrize("assignor", ["sticky", "roundrobin", "uniform"])
@pytest.mark.parametrize("criterion", list(Criterion))
def test_of_several_actions_that_balance_a_group_the_cheapest_one_is_recommended(
    assignor, criterion
):
    forecasts = forecast(moved(running_group(assignor, members=4, partitions=9)))
    actions = {one.change.name: one for one in forecasts if one.change.action is not None}
    best = actions.pop(recommend(forecasts, criterion).configuration)
    for one in actions.values():
        costs = [criterion.of(other.over(0)) for other in (best, one)]
        assert costs[0].low <= costs[1].high
        if not isinstance(best.change.action, Rebalance):
            assert not costs[0].is_above(costs[1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("assignor", "counts", "expected"),
    [
        ("uniform", (4, 2, 0), 2),
        ("sticky", (3, 3, 1), "rebalance"),
        ("sticky", (5, 5, 5, 3), "current"),
    ],
)
def test_neither_the_seed_nor_random_ids_decide(assignor, counts, expected, seed):
    draw, total = random.Random(seed), sum(counts)
    ids = [f"app-{draw.getrandbits(64):x}" for _ in counts]
    numbers = iter(range(total))
    group = Group(
        topics=(Topic("t", total),),
        members=tuple(Member(id, ("t",)) for id in ids),
        status=GroupStatus(
            protocol=Protocol.CONSUMER if assignor == "uniform" else Protocol.CLASSIC,
            assignor=assignor,
        ),
    )
    owned = {
        id: [("t", next(numbers)) for _ in range(n)] for id, n in zip(ids, counts, strict=True)
    }
    group = replace(rejoin(group, Assignment(owned), generation=5), status=group.status)
    found = recommend(forecast_changes(group, Configuration.of(group), seed=seed)).configuration
    # A gain of 2% in the sum of squares is none.
    action = f"restart of {ids[expected]}" if isinstance(expected, int) else expected
    assert found == f"{assignor}, {action}"


def test_the_reason_has_the_current_load_if_a_restart_changes_it():
    first, *others = forecast(running_group("range", members=3, partitions=7))
    reasons = [
        recommend([replace(first, now=CurrentLoads(0, 0, now)), *others]).reason for now in (99, 2)
    ]
    assert [re.search(r"not (99|2);|now (99|2);", one) is not None for one in reasons] == [True] * 2


def test_the_reason_has_the_number_of_partitions_without_an_owner():
    group = running_group("sticky", members=4, partitions=7)
    members = group.members[:-1]
    static = tuple(replace(one, instance_id=one.id) for one in members)
    for listed in (members, static):
        found = recommend(forecast(replace(group, members=listed)))
        assert found.configuration == "sticky, rebalance"
        assert "no owner: a rebalance is pending or was lost" in found.reason
        assert "more partitions have an owner" in found.reason


@pytest.mark.parametrize("seed", range(4))
def test_a_balanced_group_keeps_its_configuration_if_the_intervals_overlap(seed):
    group = running_group("cooperative-sticky", members=3, partitions=5)
    forecasts = forecast_changes(group, Configuration.of(group), seed=seed)
    costs = {one.change.name: one.over(8).unowned_seconds for one in forecasts}
    # Sticky has fewer seconds in nearly each sample.
    assert costs["sticky"].high > costs["cooperative-sticky, current"].low
    assert recommend(forecasts).configuration == "cooperative-sticky, current"


def test_a_change_with_which_members_end_is_not_recommended():
    group = running_group("cooperative-sticky", members=3, partitions=4)
    library = tuple(replace(one, client=Client(library="librdkafka")) for one in group.members)
    forecasts = forecast(replace(group, members=library), assignors=("uniform",))
    assert forecasts[-1].prediction.stopped_members
    for criterion in Criterion:
        assert recommend(forecasts, criterion).configuration != forecasts[-1].change.name


def test_static_members_are_named_if_releases_differ():
    group = running_group("range", members=3, partitions=4)
    static = tuple(replace(one, instance_id=one.id) for one in group.members)
    found = forecast(replace(group, members=static), assignors=("uniform",))[-1]
    assert "UNRELEASED_INSTANCE_ID" in found.record()["note"]


def test_an_unknown_current_assignor_is_an_input_error():
    group = running_group("range")
    with pytest.raises(InputError, match="give --current"):
        forecast(replace(group, status=GroupStatus()))
    assert forecast(replace(group, status=GroupStatus()), current="sticky", assignors=())
    with pytest.raises(InputError, match="cannot simulate the assignor 'own'"):
        forecast(replace(group, status=GroupStatus(assignor="own")))


def test_a_client_library_without_a_catalogue_entry_can_offer_each_assignor():
    group = running_group("range", members=2, partitions=3)
    other = tuple(replace(one, client=Client(library="other")) for one in group.members)
    names = by_name(forecast(replace(group, members=other)))
    assert {"sticky", "cooperative-sticky", "uniform, consumer protocol"} <= set(names)
