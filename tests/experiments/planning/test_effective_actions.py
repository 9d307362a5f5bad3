"""The recommended actions of a plan are real: what they promise happens."""

from dataclasses import replace

import pytest

from kassay import Imbalance, Movement
from kassay.experiments.planning.change_forecast import forecast_changes
from kassay.experiments.planning.configuration_choice import recommend
from kassay.experiments.planning.effective_actions import EffectiveAction
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments, plan_summary
from kassay.experiments.planning.render_plans import TEXT, plan_document, render_plan
from kassay.experiments.prediction.scenario import Configuration
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.group import Client, Group, GroupStatus, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.objective import HostImbalance
from tests.notation import changed
from tests.notation import group as small_group

OWNED = {
    "a": (("t", "u"), [("t", 1), ("t", 2), ("t", 3), ("u", 0), ("u", 1)]),
    "b": (("t",), []),
    "c": (("t",), [("t", 0), ("t", 4)]),
}


def sticky_group(**changes: tuple[str, ...]) -> Group:
    """Return a group of sticky Java consumers with a maximum load of 5 partitions."""
    members = tuple(
        Member(
            id=name,
            subscription=changes.get(name, subscription),
            owned=owned,
            generation=1,
            client=Client(library="java"),
        )
        for name, (subscription, owned) in OWNED.items()
    )
    topics = (Topic(name="t", partitions=5), Topic(name="u", partitions=2))
    return Group(id="g", topics=topics, members=members, status=GroupStatus(assignor="sticky"))


def texts(group: Group) -> list[str]:
    return [action.text for action in plan(group).actions]


def by_text(group: Group, start: str) -> EffectiveAction:
    return next(one for one in plan(group).actions if one.text.startswith(start))


def left_and_returned(group: Group, id: str, assignor: str) -> Group:
    """Return the group after two rebalances: one without the member, one with a new member."""
    others = tuple(one for one in group.members if one.id != id)
    left = replace(group, members=others)
    left = rejoin(left, assign(left, assignor))
    [gone] = [one for one in group.members if one.id == id]
    back = replace(gone, id=f"{id}-back", owned=NO_PARTITIONS, generation=-1)
    both = replace(left, members=(*left.members, back))
    return rejoin(both, assign(both, assignor))


def test_the_restart_of_a_member_is_its_leave_and_its_return():
    group = sticky_group()
    for id in OWNED:
        action = by_text(group, f"restart {id}: sticky divides the partitions again")
        after = left_and_returned(group, id, "sticky")
        owned = {one.id.removesuffix("-back"): one.owned for one in after.members}
        assert action.metrics.loads == {one: len(tps) for one, tps in owned.items()}
        assert (action.makespan, action.rebalances, action.configuration) == (3, 2, "sticky")
        assert f"({action.moves} moves, maximum load 3, 2 rebalances)" in action.text


def test_the_lowest_loads_come_first_then_actions_without_a_new_configuration():
    actions = [one for one in plan(sticky_group()).actions if one.metrics is not None]
    keys = [
        (one.makespan, one.metrics.measures["sum_of_squares"], one.changes_assignor, one.moves)
        for one in actions
    ]
    # The first action is that of a forecast.
    assert keys[1:] == sorted(keys[1:])
    assert keys[0][:3] == min(keys)[:3]
    assert {True, False} == {one.changes_assignor for one in actions}


def test_a_restart_is_no_action_for_static_members():
    group = sticky_group()
    members = tuple(replace(one, instance_id=one.id) for one in group.members)
    found = texts(replace(group, members=members))
    assert not any(text.startswith("restart") for text in found)
    for shown, is_static in ((found, True), (texts(group), False)):
        [text] = [one for one in shown if one.startswith("trigger a rebalance")]
        assert "enforceRebalance()" in text
        assert ("removeMembersFromConsumerGroup()" in text) == is_static


@pytest.mark.parametrize("assignor", ["sticky", "range", "uniform"])
def test_partitions_without_an_owner_get_one_by_an_action_that_keeps_the_assignor(assignor):
    group = small_group("t:7 u:7", a="t u", b="t u", c="t u", d="t u")
    group = rejoin(group, assign(group, assignor))
    protocol = "consumer" if assignor == "uniform" else "classic"
    status = GroupStatus(assignor=assignor, protocol=protocol, state="Stable")
    group, parts = replace(group, members=group.members[:3], status=status), list[str]()
    result = plan(group, progress=parts.append)
    assert parts[-1] == "simulated actions"
    to_do = plan_summary(result, None, PlanArguments())["to_do"]
    assert to_do.startswith(("Restart ", "Trigger a rebalance with "))
    first = next(one for one in result.actions if not one.changes_assignor)
    assert (
        plan_document(result)["to_do"].split("; switch")[0] == first.text == result.actions[0].text
    )
    assert (sum(first.metrics.loads.values()), first.configuration) == (14, assignor)
    rebalancing = replace(group, status=replace(status, state="PreparingRebalance"))
    assert all(one.changes_assignor for one in plan(rebalancing).actions)


def test_the_restart_of_a_member_balances_groups_of_the_consumer_protocol():
    # Two of three members stayed without partitions after a lost rebalance.
    status = GroupStatus(protocol="consumer", assignor="uniform", state="Stable")
    group = small_group("t:9", a="t | t-0..8 @4", b="t @4", c="t @4")
    action = by_text(replace(group, status=status), "restart ")
    assert sorted(action.metrics.loads.values()) == [3, 3, 3]


def test_a_static_member_of_the_consumer_protocol_stays_away_until_its_session_has_ended():
    status = GroupStatus(protocol="consumer", assignor="uniform", state="Stable")
    group = small_group("t:9", a="t | t-0..7 @4", b="t | t-8 @4", c="t @4")
    members = tuple(replace(one, instance_id=one.id) for one in group.members)
    group = replace(group, members=members, status=status)
    action = plan(group).actions[0]
    assert action.text.startswith("stop c for 60 s, ")
    assert sorted(action.metrics.loads.values()) == [3, 3, 3]
    best = recommend(forecast_changes(group, Configuration.of(group)))
    assert best.configuration == "uniform, restart of c after 60 s"


def test_a_downgrade_is_no_action_if_the_consumer_protocol_has_one():
    group = small_group("t:7 u:7", a="t u", b="t u", c="t u")
    group = rejoin(group, assign(group, "server-range"))
    status = GroupStatus(protocol="consumer", assignor="range", state="Stable")
    shown = texts(replace(group, status=status))
    assert any("with group.remote.assignor=uniform" in text for text in shown)
    assert not any("classic protocol" in text for text in shown)


def test_upgrades_that_the_broker_refuses_or_delays_are_no_actions():
    group = sticky_group()
    status = GroupStatus(protocol="classic", assignor="cooperative-sticky")
    librdkafka = tuple(replace(one, client=Client(library="librdkafka")) for one in group.members)
    static = tuple(replace(one, instance_id=one.id) for one in group.members)
    for members, is_upgraded in ((group.members, True), (librdkafka, False), (static, False)):
        changed = replace(group, members=members, status=status)
        shown = texts(changed)
        assert any("consumer protocol" in text for text in shown) == is_upgraded
        # The restart of a member is an action in each of the libraries.
        assert any(text.startswith("restart ") for text in shown) == (members is not static)
    shown = texts(replace(group, members=librdkafka))
    assert any("of Java, " in text for text in shown)
    assert not any("enforceRebalance()" in text for text in shown)


def test_a_change_of_the_assignor_states_its_rolling_restarts():
    group = replace(sticky_group(), status=GroupStatus(assignor="range"))
    cooperative = [text for text in texts(group) if "cooperative-sticky" in text]
    assert all(text.endswith("; a restart without the change: 9 moves)") for text in cooperative)
    assert [text.split("; ")[1] for text in cooperative] == [
        "1 rolling restart if the members list range and cooperative-sticky",
        "2 rolling restarts",
    ]
    assert any("to sticky (" in text and "; 1 rolling restart; a " in text for text in texts(group))
    unknown = texts(replace(group, status=GroupStatus()))
    assert any("or 1 from the default list of the Java client" in text for text in unknown)


def test_an_action_of_a_plan_by_host_also_reaches_the_loads_of_hosts():
    # Both pods have three members. Every assignor can choose the pod of the fourth partition.
    rest = dict.fromkeys(("p2", "q0", "q1", "q2"), "t u @1")
    group = small_group("t:2 u:2", p0="t u | t-0 u-0", p1="t u | t-1 u-1", **rest)
    hosts = {one.id: {"client": Client(host=one.id[0])} for one in group.members}
    group = changed(group, **hosts)
    levels = (HostImbalance(), Imbalance(), Movement())
    result = plan(group, levels=levels)
    assert result.planned.host_makespan == 2
    for action in result.actions:
        assert action.makespan is None or (action.makespan, action.metrics.host_makespan) == (1, 2)
    names = {one.assignor: one.metrics.host_makespan for one in result.assignor_outcomes}
    balanced = {name for name, load in names.items() if load == 2}
    shown = " ".join(action.text for action in result.actions)
    assert all((f"to {name} " in shown) == (name in balanced) for name in ("range", "sticky"))


@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_a_group_without_members_has_no_action(assignor):
    document = {"id": "left", "topics": {"t": 3}, "members": [], "assignor": assignor}
    result = plan(parse_group(document))
    assert not result.actions
    assert result.planned.makespan == 0
    # A forecast of other numbers of members needs a member.
    assert "kassay forecast" not in render_plan(result, TEXT, directory=None)


def test_an_action_that_does_not_reach_the_plan_is_that_of_the_forecast():
    weights = (90, 10, 10, 10, 10, 10), (80, 10, 10, 10, 10, 10)
    topics = tuple(Topic(f"t{at}", 6, weights=one) for at, one in enumerate(weights))
    status = GroupStatus(state="Stable", assignor="range")
    members = tuple(Member(f"pod-{at}", ("t0", "t1")) for at in range(4))
    group = Group(topics=topics, members=members, id="g", status=status)
    group = replace(rejoin(group, assign(group, "range"), generation=5), status=status)
    result = plan(group)
    [action] = result.actions
    found = forecast_changes(group, Configuration.of(group))
    assert recommend(found).configuration == action.configuration
    assert result.planned.makespan * 21 < action.makespan * 20
    assert action.makespan < result.current.makespan
    text = render_plan(result, TEXT, directory=None)
    assert "No action that kassay checks reaches the maximum load of this plan." in text


def test_actions_of_a_group_that_rebalances_come_after_the_rebalance():
    group = sticky_group()
    for state, is_first in (("PreparingRebalance", True), ("Stable", False)):
        result = plan(replace(group, status=replace(group.status, state=state)))
        assert result.actions
        assert ("Wait first: " in render_plan(result, TEXT, directory=None)) == is_first
