"""Predictions of events: what the simulation of coordinator and consumers shows."""

from dataclasses import replace

import pytest

import kassay
from kassay import Group, Member, Topic
from kassay.experiments.prediction.predict import Distribution, predict, sample_count
from kassay.experiments.prediction.scenario import (
    Configuration,
    Crash,
    Leave,
    NewPartitions,
    NewTopic,
    Order,
    Restart,
    Return,
    RollingRestart,
    ScaleTo,
    Subscribe,
    Timing,
)
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.display import by_ordinal, next_names
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Client, GroupStatus, Protocol

FEW = 6
TOPICS = (
    Topic(name="t", partitions=12),
    Topic(name="u", partitions=3),
    Topic(name="v", partitions=3),
)


def group_of(
    assignor: str,
    *,
    members: int = 5,
    static: bool = False,
    library: str | None = None,
    client: str | None = None,
    topics: tuple[Topic, ...] = TOPICS,
) -> Group:
    is_modern = assignor in ("uniform", "server-range")
    names = tuple(topic.name for topic in topics)
    group = Group(
        id="g",
        topics=topics,
        members=tuple(
            Member(
                id=f"pod-{n}-id",
                subscription=names,
                instance_id=f"pod-{n}" if static else None,
                client=Client(id=client or f"pod-{n}", library=library),
            )
            for n in range(members)
        ),
        status=GroupStatus(
            state="Stable",
            protocol=Protocol.CONSUMER if is_modern else Protocol.CLASSIC,
            assignor=assignor.removeprefix("server-"),
        ),
    )
    return replace(rejoin(group, assign(group, assignor), generation=9), status=group.status)


def change(group: Group, target: str, *, samples: int = FEW):
    current = Configuration.of(group)
    steps = [RollingRestart(to=step) for step in current.steps_to(target)]
    return predict(group, current, steps, samples=samples)


# ---- Samples ----------------------------------------------------------------------------


def test_a_prediction_depends_on_the_seed_alone():
    first, second, other = (predict(group_of("range"), samples=3, seed=seed) for seed in (5, 5, 6))
    assert (first.events, first.final) == (second.events, second.final)
    assert other.total.unowned_seconds != first.total.unowned_seconds
    assert other.total.moves == first.total.moves


def test_member_ids_are_random_in_each_sample():
    # The broker's range sorts members by ids, which the broker creates.
    moves = predict(group_of("server-range"), samples=FEW).total.moves
    assert moves.low < moves.high
    # Client ids come first in the ids of the classic protocol.
    moves = predict(group_of("range"), samples=FEW).total.moves
    assert moves.low == moves.high == 52


def test_members_with_one_client_id_restart_and_sort_in_random_order():
    moves = predict(group_of("range", client="consumer-g-1"), samples=FEW).total.moves
    assert moves.low < moves.high


def test_large_groups_have_fewer_samples():
    small, large = group_of("range"), group_of("range", members=200)
    counts = [
        sample_count(one, Configuration.of(one), [RollingRestart()]) for one in (small, large)
    ]
    assert counts[0] == 20 > counts[1] >= 2
    assert predict(small, events=Leave(members=("pod-1",))).samples == 20


def test_busy_consumers_leave_partitions_longer_without_an_owner():
    found = []
    for poll in ((0, 0), (2_000, 2_000)):
        configuration = Configuration(assignor="range", timing=Timing(poll=poll))
        found.append(predict(group_of("range"), configuration, samples=FEW).total)
    assert found[0].unowned_seconds.high < found[1].unowned_seconds.low
    assert found[0].moves == found[1].moves
    with pytest.raises(UsageError, match="poll must be two ascending times in ms, got 9 and 3"):
        Timing(poll=(9, 3))


def test_eager_groups_stand_still_as_a_whole_and_others_do_not():
    stopped = {
        name: predict(group_of(name), samples=3).total.stopped_seconds
        for name in ("sticky", "cooperative-sticky", "uniform")
    }
    assert stopped["sticky"].low > 0
    assert stopped["cooperative-sticky"].high == stopped["uniform"].high == 0


# ---- Changes of the configuration ---------------------------------------------------------


def test_the_broker_refuses_data_of_the_assignor_of_librdkafka():
    found = change(group_of("cooperative-sticky", library="librdkafka"), "uniform")
    # The last member joins an empty group.
    assert found.events[0].members.mean == 1
    assert found.stopped_members == {"stops with GROUP_ID_NOT_FOUND": FEW}
    for group in (group_of("cooperative-sticky"), group_of("range", library="librdkafka")):
        found = change(group, "uniform", samples=2)
        assert (found.events[0].members.mean, found.stopped_members) == (5, {})


def test_librdkafka_refuses_a_list_with_assignors_of_two_protocols():
    eager, cooperative = (
        group_of(name, library="librdkafka") for name in ("range", "cooperative-sticky")
    )
    refused = {"stops with INCONSISTENT_GROUP_PROTOCOL": FEW}
    assert change(eager, "cooperative-sticky").stopped_members == refused
    assert change(cooperative, "range").stopped_members == refused
    assert not change(eager, "roundrobin").stopped_members
    assert not change(group_of("range"), "cooperative-sticky").stopped_members


def test_leaders_of_aiokafka_join_twice_with_sticky():
    current, sticky = (group_of(name, library="aiokafka") for name in ("range", "sticky"))
    one = predict(current, samples=FEW).total
    # The last member leaves and joins when all members list sticky first.
    assert change(current, "sticky").total.rebalances.mean == one.rebalances.mean + 2
    assert predict(sticky, samples=FEW).total.rebalances.mean == 2 * one.rebalances.mean
    assert predict(group_of("sticky"), samples=FEW).total.rebalances == one.rebalances


def test_members_of_cooperative_groups_can_miss_an_assignment():
    values = set(predict(group_of("cooperative-sticky"), samples=20).total.rebalances.values)
    assert len(values) > 1


def test_static_classic_members_keep_their_assignment_in_the_consumer_protocol():
    found = change(group_of("range", static=True), "uniform", samples=3)
    assert found.total.rebalances.high == found.total.moves.high == 0
    assert found.events[0].maximum_load.mean == 5
    assert not found.stopped_members


def test_static_members_change_the_assignor_of_the_broker():
    found = change(group_of("server-range", static=True), "uniform", samples=3)
    assert found.total.rebalances.mean == 1
    assert (found.total.moves.mean, found.events[0].maximum_load.mean) == (2, 4)


def test_a_downgrade_is_online():
    for target, load in (("sticky", 4), ("cooperative-sticky", 4), ("range", 5)):
        found = change(group_of("uniform"), target, samples=3)
        assert (found.events[0].members.mean, found.events[0].maximum_load.mean) == (5, load)
        assert found.total.rebalances.low >= 10
        assert not found.stopped_members


def test_a_change_that_ends_in_a_classic_group_is_a_classic_group():
    group = group_of("uniform")
    classic = Configuration.of(group).steps_to("sticky")[0]
    events = [RollingRestart(to=classic), RollingRestart()]
    later = predict(group, events=events, samples=3).events[1].cost
    expected = predict(group_of("sticky"), samples=3).total
    assert (later.rebalances, later.moves) == (expected.rebalances, expected.moves)
    assert later.stopped_seconds.low > 0


# ---- Events --------------------------------------------------------------------------------


def test_partitions_of_members_that_leave_wait_for_the_next_heartbeats():
    for assignor in ("cooperative-sticky", "uniform"):
        cost = predict(group_of(assignor), events=Leave(members=("pod-1",)), samples=FEW).total
        assert cost.unowned_seconds.low > 0
        assert (cost.rebalances.mean, cost.moves.mean) == (1, 0)


def test_partitions_of_crashed_members_wait_for_the_session_timeout():
    for session in (45.0, 200.0):
        configuration = Configuration(assignor="range", session_timeout=session)
        group = group_of("range")
        events = [Crash(members=("pod-0",)), Return(members=("pod-0",))]
        crash, back = predict(group, configuration, events, samples=3).events
        # The last heartbeat is at most 3 s old at the crash.
        assert 5 * (session - 3) < crash.cost.unowned_seconds.low
        assert crash.cost.unowned_seconds.high < 5 * (session + 8)
        assert (crash.members.mean, back.members.mean) == (4, 5)
        assert back.cost.rebalances.mean == 1


def test_static_members_return_without_a_rebalance_within_the_session_timeout():
    group = group_of("range", static=True)
    for downtime, rebalances in ((10, 0), (60, 2)):
        cost = predict(group, events=RollingRestart(downtime=downtime), samples=2).total
        assert cost.rebalances.mean == 5 * rebalances
        if not rebalances:
            assert cost.moves.high == 0
            # Each of the 18 partitions waits for the downtime and the start-up of its member.
            assert 18 * 10.1 <= cost.unowned_seconds.low <= cost.unowned_seconds.high < 18 * 10.7


def test_members_of_a_static_configuration_are_static_from_the_start():
    configuration = Configuration(assignor="range", is_static=True)
    cost = predict(group_of("range"), configuration, samples=2).total
    assert (cost.rebalances.high, cost.moves.high) == (0, 0)


def test_classic_leaders_notice_new_partitions_when_their_metadata_expire():
    grow = NewPartitions(topic="u", partitions=6)
    classic = predict(group_of("range"), events=grow, samples=FEW).total
    assert classic.rebalances.mean == 1
    assert classic.unowned_seconds.low < 3 * 150 < classic.unowned_seconds.high < 3 * 310
    modern = predict(group_of("uniform"), events=grow, samples=FEW).total
    assert modern.rebalances.mean == 1
    assert 0 < modern.unowned_seconds.high < 3 * 12


def test_members_with_the_highest_ordinals_leave_first_and_added_ones_continue():
    found = predict(
        group_of("range", members=11), events=[ScaleTo(members=9), ScaleTo(members=12)], samples=2
    )
    first, second = found.events
    assert set(first.loads) == {f"pod-{n}" for n in range(9)}
    assert set(second.loads) == {f"pod-{n}" for n in range(9)} | {"pod-11", "pod-12", "pod-13"}
    assert by_ordinal(["p-10", "p-9"]) == ["p-9", "p-10"]
    assert by_ordinal(["a", "p-1"]) is None
    assert next_names(["a", "b"], 2) == ["new-1", "new-2"]


def test_new_topics_and_subscriptions():
    group = group_of("sticky")
    events = [
        NewTopic(topic="w", partitions=2),
        Subscribe(members=("pod-0",), topics=("w",)),
        Restart(members=("pod-1", "pod-2"), downtime=5),
    ]
    found = predict(group, events=events, samples=2)
    assert [sum(load.mean for load in one.loads.values()) for one in found.events] == [20, 20, 20]
    assert found.events[1].loads["pod-0"].high <= 2


def test_the_order_of_a_rolling_restart_can_be_chosen():
    group = group_of("sticky")
    for order, last in ((Order.NAMES, "pod-4"), (Order.REVERSED, "pod-0")):
        # The last member gets 3 partitions, from others that keep 3 or 4.
        loads = predict(group, events=RollingRestart(order=order), samples=FEW).events[0].loads
        assert loads[last].high == 3
        assert sum(load.mean > 3 for load in loads.values()) >= 3
    loads = predict(group, events=RollingRestart(order=Order.RANDOM), samples=20).events[0].loads
    assert {load.high for load in loads.values()} == {4}


def test_loads_have_the_unit_of_the_weights():
    topics = (Topic(name="t", partitions=4, weights=(8, 4, 2, 2)),)
    group = group_of("range", members=2, topics=topics)
    found = predict(group, events=NewPartitions(topic="t", partitions=5), samples=2)
    assert found.events[0].maximum_load.mean == 8 + 4 + 2  # the new partition has the mean, 4
    assert sum(load.mean for load in found.events[0].loads.values()) == 20
    assert found.events[0].squares is None


# ---- Errors -----------------------------------------------------------------------------------


def test_errors_name_the_value():
    group = group_of("range")
    with pytest.raises(InputError, match="no member 'pod-9'"):
        predict(group, events=Leave(members=("pod-9",)))
    with pytest.raises(InputError, match="'pod-1' has left the group"):
        predict(group, events=[Leave(members=("pod-1",)), Restart(members=("pod-1",))])
    with pytest.raises(InputError, match="new partition count must be at least"):
        predict(group, events=NewPartitions(topic="t", partitions=3))
    with pytest.raises(InputError, match="give configuration=NAME"):
        predict(replace(group, status=GroupStatus()))
    with pytest.raises(UsageError, match="samples must be at least 1, got 0"):
        predict(group, samples=0)
    with pytest.raises(UsageError, match="broker must be a release"):
        Configuration(assignor="range", broker="new")
    with pytest.raises(InputError, match="has no members"):
        kassay.predict(replace(group, members=()))


def test_brokers_since_4_3_compute_assignments_at_most_once_per_interval():
    events = ScaleTo(members=2)
    group = group_of("uniform")
    old, new = (
        predict(group, Configuration(assignor="uniform", broker=release), events, samples=3).total
        for release in ("4.2", "4.4")
    )
    assert old.rebalances == new.rebalances
    assert Configuration(assignor="uniform", broker="4.2.1").batching_ms == 0
    assert Configuration(assignor="uniform", broker="4.3").batching_ms == 1_000


def test_a_custom_assignor_is_predicted_with_the_eager_protocol(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "def assign(group):\n"
        "    ids = sorted(one.id for one in group.members)\n"
        "    tps = [(t.name, n) for t in group.topics for n in range(t.partitions)]\n"
        "    return {one: tps[at :: len(ids)] for at, one in enumerate(ids)}\n"
    )
    own = Configuration(assignor=f"python:{file}:assign")
    found = predict(group_of("range"), own, Leave(members=("pod-2",)), samples=1)
    assert (found.total.rebalances.mean, own.is_consumer_protocol) == (1, False)
    loads = [load.mean for load in found.events[0].sorted_loads]
    assert max(loads) - min(loads) <= 1


@pytest.mark.parametrize(
    ("values", "text"), [([1, 1], "1 move"), ([4, 4], "4 moves"), (range(11), "0 to 10 moves")]
)
def test_a_distribution_without_differences_is_a_number(values, text):
    assert Distribution.of(values).count("move") == text
