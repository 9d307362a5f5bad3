"""The recommended actions of a plan are real: what they promise happens."""

from dataclasses import replace

from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.predictions import changed_groups
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import movement
from kassay.reference.model.group import Client, Group, GroupStatus, Member, Topic
from kassay.reference.model.metrics import loads
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver import HostImbalance, Imbalance, Movement
from kassay.solver.solve import solve

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


def test_the_restart_of_a_member_has_the_stated_load_and_moves():
    group = sticky_group()
    text = "restart a, so that sticky redistributes its partitions (2 moves, maximum load 3)"
    assert text in texts(group)
    members = (replace(group.members[0], owned=NO_PARTITIONS), *group.members[1:])
    result = assign(replace(group, members=members), "sticky")
    assert (max(loads(group, result).values()), movement(group, result)) == (3, 2)


def test_more_partitions_give_every_member_the_stated_number():
    group = sticky_group()
    text = "give topic t 2 more partitions: every member can then have 3 partitions"
    assert any(one.startswith(text) for one in texts(group))
    [grown] = changed_groups(group, partitions=["t=7"]).values()
    assert set(solve(grown).assignment.counts().values()) == {3}


def test_a_change_of_the_assignor_states_its_rolling_restarts():
    group = replace(sticky_group(), status=GroupStatus(assignor="range"))
    cooperative = [text for text in texts(group) if "cooperative-sticky" in text]
    assert cooperative[0].endswith(
        "; 2 rolling restarts, or 1 from the default list of the Java client)"
    )
    assert any(
        "to sticky (" in text and text.endswith("; 1 rolling restart)") for text in texts(group)
    )


def test_an_action_of_a_plan_by_host_also_reaches_the_loads_of_hosts():
    # Both pods have three members. Every assignor can choose the pod of the fourth partition.
    members = tuple(
        Member(
            id=f"{pod}{number}",
            subscription=("t", "u"),
            owned=[("t", number), ("u", number)] if pod == "p" and number < 2 else [],
            generation=1,
            client=Client(host=pod),
        )
        for pod in "pq"
        for number in range(3)
    )
    group = Group(
        topics=(Topic(name="t", partitions=2), Topic(name="u", partitions=2)), members=members
    )
    levels = (HostImbalance(), Imbalance(), Movement())
    result = plan(group, levels=levels)
    assert result.planned.host_makespan == 2
    for action in result.actions:
        assert action.makespan is None or (action.makespan, action.metrics.host_makespan) == (1, 2)
    names = {one.assignor: one.metrics.host_makespan for one in result.assignor_outcomes}
    balanced = {name for name, load in names.items() if load == 2}
    shown = " ".join(action.text for action in result.actions)
    assert all((f"to {name} " in shown) == (name in balanced) for name in ("range", "sticky"))
