"""Assignments of real groups, predicted by the ports.

Each test runs one group, one event at a time. After each event the test rebuilds the input of
the assignor from the member ids of the broker and the result of the previous event. The
port's assignment must be equal to the assignment on the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from tests.conformance.admin import Administrator, GroupView, administrator
from tests.conformance.broker import KafkaCluster, running_cluster
from tests.conformance.consumers import BROKER_ASSIGNORS, CLIENT_ASSIGNORS, Profile
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka

TOPICS = {"a.orders": 7, "b.payments": 4, "c.clicks": 11, "d.audit": 1, "e.stock": 7}
ASSIGNORS = (*CLIENT_ASSIGNORS, *BROKER_ASSIGNORS)
SESSION_MILLIS = 5_000
"""Session timeout in ms, after which a killed consumer is removed."""

_SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION_MILLIS),
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True)
class SharedCluster:
    """Cluster that all tests of this module share."""

    cluster: KafkaCluster
    admin: Administrator
    topics: tuple[Topic, ...]


@pytest.fixture(scope="module")
def site() -> Iterator[SharedCluster]:
    """Provide two brokers in two racks, and topics with one replica per partition."""
    with ExitStack() as stack:
        cluster = stack.enter_context(
            running_cluster(racks=("left", "right"), heap_mib=384, settings=_SETTINGS)
        )
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(
            TOPICS,
            {name: {n: (1 + n % 2,) for n in range(count)} for name, count in TOPICS.items()},
        )
        known = admin.topics(*TOPICS)
        topics = tuple(
            Topic(name=name, partitions=count, racks=known[name].racks, id=known[name].id)
            for name, count in TOPICS.items()
        )
        yield SharedCluster(cluster, admin, topics)


class PredictedGroup:
    """Running group whose assignments the port predicts."""

    def __init__(self, site: SharedCluster, name: str, assignor: str) -> None:
        self.live = RunningGroup(name, site.cluster.bootstrap, site.admin, TOPICS)
        self.assignor = assignor
        self._topics = site.topics
        self._profiles: dict[str, Profile] = {}
        self._previous: Assignment = Assignment({})
        self._generation = NO_GENERATION

    def join(self, client: str, *topics: str, rack: str | None = None) -> None:
        profile = self._profile(client, topics, rack=rack)
        self.live.join(profile)
        self._check(f"{client} joined")

    def join_static(self, client: str, instance: str, *topics: str) -> None:
        self.live.join(replace(self._profile(client, topics), instance=instance))
        self._check(f"{client} joined as {instance}")

    def join_killable(self, client: str, *topics: str) -> None:
        self.live.join_killable(self._profile(client, topics))
        self._check(f"{client} joined from another process")

    def subscribe(self, client: str, *topics: str) -> None:
        self.live.subscribe(client, *topics)
        self._check(f"{client} changed its subscription")

    def leave(self, client: str) -> None:
        self.live.leave(client)
        self._check(f"{client} left")

    def kill(self, client: str) -> None:
        self.live.kill(client)
        self._check(f"{client} was killed")

    def _profile(self, client: str, topics: tuple[str, ...], *, rack: str | None = None) -> Profile:
        self._profiles[client] = Profile(
            client=client,
            topics=topics,
            assignor=self.assignor,
            rack=rack,
            session_millis=SESSION_MILLIS,
        )
        return self._profiles[client]

    def _check(self, event: str) -> None:
        """Compare cluster and port, and store the state for the next step."""
        view = self.live.await_stable()
        generation = self.live.generation
        group = self._group(view)
        assigned_generations = {
            member.id: self.live.assigned_generations(client)
            for client, member in view.members.items()
        }
        predicted_assignment = self._predict(group, generation, assigned_generations)
        names = {member.id: client for client, member in view.members.items()}
        assert {
            names[id]: frozenset((tp.topic, tp.partition) for tp in tps)
            for id, tps in predicted_assignment.items()
        } == {client: member.assigned for client, member in view.members.items()}, (
            f"generation {generation}, after {event}: {json.dumps(group_document(group))}"
        )
        self._previous, self._generation = predicted_assignment, generation

    def _predict(
        self, group: Group, generation: int, assigned_generations: Mapping[str, frozenset[int]]
    ) -> Assignment:
        """Predict the assignment of ``generation``, one rebalance after the other.

        Cooperative rebalances take two generations, and a leader that detects a topic late
        starts a further one. A member without an assignment in a generation keeps its claims.
        """
        assignment = assign(group, self.assignor)
        if self.assignor in BROKER_ASSIGNORS:
            return assignment
        for intermediate in range(max(0, self._generation) + 1, generation):
            members = (
                replace(member, owned=assignment[member.id], generation=intermediate)
                if intermediate in assigned_generations[member.id]
                else member
                for member in group.members
            )
            group = replace(group, members=tuple(members))
            assignment = assign(group, self.assignor)
        return assignment

    def _group(self, view: GroupView) -> Group:
        """Return the input of the assignor.

        Members are in the order of the coordinator's list, on which the result can depend if
        two of them share a bin of a HashMap. The broker's ``TargetAssignmentBuilder`` adds a new
        member after the members of the group.
        """
        members = []
        for client, member in view.members.items():
            was_member = member.id in self._previous
            topics = self.live.subscriptions[client]
            members.append(
                Member(
                    id=member.id,
                    subscription=tuple(sorted(topics)),
                    owned=self._claim(member.id, topics),
                    generation=self._generation if was_member else NO_GENERATION,
                    instance_id=member.instance,
                    rack=self._profiles[client].rack,
                )
            )
        if self.assignor in BROKER_ASSIGNORS:
            members.sort(key=lambda member: member.generation == NO_GENERATION)
        return Group(id=self.live.name, topics=self._topics, members=tuple(members))

    def _claim(self, member: str, topics: tuple[str, ...]) -> Partitions:
        """Return the partitions that a member claims when it rejoins."""
        owned = self._previous.get(member, NO_PARTITIONS)
        if self.assignor == "cooperative-sticky":
            # A cooperative consumer revokes partitions of unsubscribed topics before it rejoins.
            return Partitions.of(tp for tp in owned if tp.topic in topics)
        return owned


@pytest.fixture
def predicted(site: SharedCluster, request: pytest.FixtureRequest) -> Iterator[PredictedGroup]:
    predicted = PredictedGroup(site, request.node.name, request.param)
    yield predicted
    predicted.live.close()


@pytest.mark.parametrize("predicted", ASSIGNORS, indirect=True)
def test_members_with_one_subscription_join_leave_and_crash(predicted: PredictedGroup) -> None:
    topics = ("a.orders", "c.clicks", "d.audit")
    predicted.join("m", *topics)
    predicted.join("b", *topics)
    predicted.join_static("z", "a-post", *topics)
    predicted.join("k", *topics)
    predicted.leave("b")
    predicted.join_killable("f", *topics)
    predicted.kill("f")
    predicted.join("y", *topics)


@pytest.mark.parametrize("predicted", ASSIGNORS, indirect=True)
def test_members_with_differing_subscriptions_join_change_and_leave(
    predicted: PredictedGroup,
) -> None:
    predicted.join("m", "a.orders", "b.payments", "e.stock")
    predicted.join("b", "a.orders", "c.clicks")
    predicted.join("k", "b.payments", "c.clicks")
    predicted.join_static("z", "a-post", "c.clicks", "d.audit", "e.stock")
    predicted.join("f", "a.orders", "b.payments", "c.clicks", "d.audit", "e.stock")
    predicted.subscribe("b", "a.orders", "d.audit")
    predicted.leave("m")
    predicted.leave("z")
    # Last, for a leader that looks for a topic in vain may assign before it has the others.
    predicted.join("y", "c.clicks", "e.stock", "no.such.topic")


@pytest.mark.parametrize("predicted", CLIENT_ASSIGNORS, indirect=True)
def test_members_with_racks_get_partitions_of_their_rack(predicted: PredictedGroup) -> None:
    predicted.join("m", "a.orders", "e.stock", rack="left")
    predicted.join("b", "a.orders", "e.stock", rack="right")
    predicted.join("k", "c.clicks", "e.stock", rack="right")
    predicted.join("f", "a.orders", "c.clicks", rack="left")
    predicted.leave("b")
