"""The optimal assignors of consumers on a broker, and the switch from the sticky assignor.

The subscriptions form a chain. The sticky assignor of each library leaves loads from 3 to 7
partitions; the optimum is 5 partitions for each member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import load_vector, movement, sum_of_squares
from kassay.solver.solve import solve
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.client_groups import ClientGroup, RunningClients
from tests.conformance.client_rebalances import (
    ObservedRebalance,
    observed_rebalances,
    predicts,
    unstable_groups,
    without_unassigned_topics,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LIBRARIES = ("aiokafka", "kafka-python")
TOPICS = {"a": 9, "b": 5, "c": 4, "d": 7}
SUBSCRIPTIONS = (("a",), ("a", "b"), ("b", "c"), ("c", "d"), ("d",))
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def rebalances() -> Iterator[dict[str, list[ObservedRebalance]]]:
    """Let consumers with the sticky assignor join, and replace them one after the other.

    At the end, one consumer returns to the sticky assignor, and another consumer joins.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=SETTINGS))
        stack.enter_context(administrator(cluster.bootstrap)).create_topics(TOPICS)
        running = [
            RunningClients(
                ClientGroup(library=library, assignor="sticky"), cluster.bootstrap, TOPICS
            )
            for library in LIBRARIES
        ]
        for clients in running:
            stack.callback(clients.close)
        numbers = range(len(SUBSCRIPTIONS))
        steps = [(number, "sticky") for number in numbers]
        steps += [(number, "optimal") for number in numbers]
        steps += [(numbers[-1], "sticky"), (len(numbers), "optimal")]
        for number, assignor in steps:
            for clients in running:
                if number in clients.consumers:
                    clients.leave(number)
                topics = SUBSCRIPTIONS[number % len(numbers)]
                clients.join(number, topics, assignor=assignor)
            assert unstable_groups(cluster.bootstrap, running) == []
        yield observed_rebalances(cluster.bootstrap, TOPICS)


def is_optimal_leader(observed: ObservedRebalance) -> bool:
    return observed.clients[observed.leader].endswith("optimal")


def loads(observed: ObservedRebalance) -> list[int]:
    """Return the loads in the order of the subscriptions."""
    subscriptions = {each.id: tuple(sorted(each.subscription)) for each in observed.group.members}
    by_topics = {subscriptions[id]: len(pairs) for id, pairs in observed.assignment.items()}
    return [by_topics[topics] for topics in SUBSCRIPTIONS]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_switch_of_all_members_balances_the_group(
    library: str, rebalances: dict[str, list[ObservedRebalance]]
) -> None:
    complete = [
        each for each in rebalances[f"{library}-sticky"] if len(each.clients) == len(SUBSCRIPTIONS)
    ]
    before = [loads(each) for each in complete if not is_optimal_leader(each)]
    assert [7, 6, 5, 4, 3] in before
    switched = [
        each for each in complete if all(name.endswith("optimal") for name in each.clients.values())
    ]
    assert loads(switched[-1]) == [5, 5, 5, 5, 5]


def is_optimum(group: Group, observed: ObservedRebalance) -> bool:
    """Return whether an assignment has minimum imbalance and, with it, fewest moves."""
    best = solve(group).assignment
    assert best is not None
    found = Assignment({id: sorted(pairs) for id, pairs in observed.assignment.items()})
    values = [
        (sum_of_squares(load_vector(group, each)), movement(group, each)) for each in (found, best)
    ]
    return values[0] == values[1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_leader_decides_and_reads_the_user_data_of_both_assignors(
    library: str, rebalances: dict[str, list[ObservedRebalance]]
) -> None:
    own, mixed = Counter(), Counter()
    for each in rebalances[f"{library}-sticky"]:
        groups = (each.group, without_unassigned_topics(each))
        leader = each.clients[each.leader]
        own[leader] += 1
        mixed[leader] += any(
            member.owned and each.clients[member.id] != leader for member in each.group.members
        )
        if is_optimal_leader(each):
            assert any(is_optimum(group, each) for group in groups), each
        else:
            name = f"{library}:sticky"
            assert any(predicts(name, group, each.assignment) for group in groups), each
    print(f"rebalances by leader: {own}; with owners of the other assignor: {mixed}")  # noqa: T201
    assert len(own) == 2
    assert all(mixed.values())
