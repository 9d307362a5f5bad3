"""The optimal assignors of consumers on a broker, and the switch from the sticky assignor.

The subscriptions form a chain. The sticky assignor of each library leaves loads from 3 to 7
partitions; the optimum is 5 partitions for each member.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest

from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import load_vector, sum_of_squares
from kassay.solver.solve import solve
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.client_groups import ClientGroup, RunningClients, require_libraries
from tests.conformance.client_rebalances import (
    ObservedRebalance,
    observed_rebalances,
    predicts,
    unstable_groups,
)

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

LIBRARIES = ("aiokafka", "kafka-python")
TOPICS = {"a": 9, "b": 5, "c": 4, "d": 7}
SUBSCRIPTIONS = (("a",), ("a", "b"), ("b", "c"), ("c", "d"), ("d",))
_ATTEMPTS = 3
_STABLE_SECONDS = 60.0
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module", params=LIBRARIES)
def switched(request: pytest.FixtureRequest) -> tuple[str, list[ObservedRebalance]]:
    """Provide a library, and the rebalances of a group that changes its assignor.

    A consumer of kafka-python can remain in a rebalance, so that a failed switch is repeated.
    """
    require_libraries(request.param)
    for _ in range(_ATTEMPTS):
        observed = switch(request.param)
        if observed is not None:
            return request.param, observed
    raise TimeoutError(f"the group of {request.param} was not stable in {_ATTEMPTS} attempts")


def switch(library: str) -> list[ObservedRebalance] | None:
    """Let consumers with the sticky assignor join, and replace them one after the other.

    The first consumer is the leader until it is replaced, because a leader remains the leader
    while it is a member. It is replaced last, so that a sticky leader reads the user data of
    optimal members. Then it returns to the sticky assignor, and another consumer joins, so that
    an optimal leader reads the user data of a sticky member. Return None if the group is not
    stable in time after one of these steps.
    """
    numbers = range(len(SUBSCRIPTIONS))
    steps = [(number, "sticky") for number in numbers]
    steps += [(number, "optimal") for number in reversed(numbers)]
    steps += [(numbers[0], "sticky"), (len(numbers), "optimal")]
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384, settings=SETTINGS))
        stack.enter_context(administrator(cluster.bootstrap)).create_topics(TOPICS)
        group = ClientGroup(library=library, assignor="sticky")
        clients = RunningClients(group, cluster.bootstrap, TOPICS)
        stack.callback(clients.close)
        for number, assignor in steps:
            if number in clients.consumers:
                clients.leave(number)
            clients.join(number, SUBSCRIPTIONS[number % len(numbers)], assignor=assignor)
            if unstable_groups(cluster.bootstrap, [clients], seconds=_STABLE_SECONDS):
                return None
        return observed_rebalances(cluster.bootstrap, TOPICS)[group.name]


def is_optimal_leader(observed: ObservedRebalance) -> bool:
    return observed.clients[observed.leader].endswith("optimal")


def loads(observed: ObservedRebalance) -> list[int]:
    """Return the loads in the order of the subscriptions."""
    subscriptions = {each.id: tuple(sorted(each.subscription)) for each in observed.group.members}
    by_topics = {subscriptions[id]: len(pairs) for id, pairs in observed.assignment.items()}
    return [by_topics[topics] for topics in SUBSCRIPTIONS]


def test_a_switch_of_all_members_balances_the_group(
    switched: tuple[str, list[ObservedRebalance]],
) -> None:
    complete = [each for each in switched[1] if len(each.clients) == len(SUBSCRIPTIONS)]
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


def test_the_leader_decides_and_reads_the_user_data_of_both_assignors(
    switched: tuple[str, list[ObservedRebalance]],
) -> None:
    library, rebalances = switched
    own, mixed = Counter(), Counter()
    for each in rebalances:
        groups = (each.group, each.without_unassigned_topics())
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
