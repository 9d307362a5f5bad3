"""Answers and errors of the client library are converted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
    Uuid,
)

from kassay.experiments.sources.live_cluster import librdkafka
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup, LiveTopic
from kassay.experiments.sources.live_cluster.kafka_python import UnreadableDescriptionError
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.merge_captures import ObservedMember
from kassay.reference.model.errors import InputError, RunError
from kassay.reference.model.group import GroupStatus, Protocol

HOST = "/10.0.0.1"
ID = uuid.UUID("8f000000-0000-4000-a000-000000000009")
LATE = KafkaError(KafkaError._TIMED_OUT)


class FakeAdmin:
    """Admin client that answers each request with a function of the test."""

    def __init__(self, answers: dict[str, Any], properties: dict[str, Any]) -> None:
        self.properties = properties
        self.calls: list[tuple[Any, ...]] = []
        self.errors: list[KafkaError] = []
        self._answers = answers

    def poll(self, _: float) -> None:
        for error in self.errors:
            self.properties["error_cb"](error)

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def answer(*arguments: Any, **options: Any) -> Any:
            self.calls.append((request, *arguments))
            assert set(options) & {"request_timeout", "timeout"}, "each request has a time limit"
            return self._answers[request](*arguments)

        return answer


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LiveCluster, FakeAdmin]]:
    def build(**answers: Any) -> tuple[LiveCluster, FakeAdmin]:
        admins: list[FakeAdmin] = []

        def create(properties: dict[str, Any]) -> FakeAdmin:
            admins.append(FakeAdmin(answers, properties))
            return admins[0]

        def refuse(*_: object, **__: object) -> None:
            raise UnreadableDescriptionError("not connected")

        monkeypatch.setattr(librdkafka, "AdminClient", create)
        monkeypatch.setattr(librdkafka, "describe_groups_of_kind", refuse)
        return LiveCluster("h:1", {"client.id": "me"}, timeout=2), admins[0]

    return build


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


def refused(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def pairs(*places: tuple[str, int]) -> SimpleNamespace:
    return SimpleNamespace(topic_partitions=[TopicPartition(*place) for place in places])


def described(state: ConsumerGroupState, *members: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(
        state=state,
        members=members,
        type=ConsumerGroupType.CLASSIC,
        partition_assignor="range",
        is_simple_consumer_group=False,
    )


def described_member(
    id: str, assignment: Any, target: Any, instance: str | None
) -> SimpleNamespace:
    return SimpleNamespace(
        member_id=id,
        client_id=f"client-{id}",
        assignment=assignment,
        target_assignment=target,
        group_instance_id=instance,
        host=HOST,
    )


def test_groups_are_described(connect: Any) -> None:
    members = (
        described_member("y", pairs(), pairs(("t", 1)), ""),
        described_member("x", pairs(("t", 0)), None, "i"),
    )
    cluster, _ = connect(
        describe_consumer_groups=lambda names: {
            "g": done(described(ConsumerGroupState.STABLE, *members)),
            "new": done(described(ConsumerGroupState.UNKNOWN)),
        }
    )
    assert cluster.describe(["g", "new"]) == {
        "g": LiveGroup(
            "g",
            "Stable",
            (
                ObservedMember("y", "client-y", HOST, target={("t", 1)}),
                ObservedMember("x", "client-x", HOST, "i", owned={("t", 0)}),
            ),
            "range",
            Protocol.CLASSIC,
        ),
        "new": LiveGroup("new", "Unknown", (), "range", Protocol.CLASSIC),
    }


@pytest.mark.parametrize(("target", "state"), [(("t", 1), "Reconciling"), (("t", 0), "Assigning")])
def test_a_consumer_protocol_group_of_unknown_state_is_rebalancing(
    connect: Any, target: tuple[str, int], state: str
) -> None:
    answer = described(
        ConsumerGroupState.UNKNOWN, described_member("x", pairs(("t", 0)), pairs(target), None)
    )
    answer.type, answer.partition_assignor = ConsumerGroupType.CONSUMER, "uniform"
    cluster, _ = connect(describe_consumer_groups=lambda names: {"g": done(answer)})
    group = cluster.describe(["g"])["g"]
    assert isinstance(group, LiveGroup)
    assert group.status == GroupStatus(state=state, protocol=Protocol.CONSUMER, assignor="uniform")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (KafkaError.GROUP_ID_NOT_FOUND, "the cluster has no such consumer group"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Broker: Group authorization failed"),
        (KafkaError._INVALID_ARG, "Local: Invalid argument or configuration"),
        (KafkaError._BAD_MSG, "Local: Bad message format"),
    ],
)
def test_an_error_replaces_the_description_of_its_group(
    connect: Any, code: int, message: str
) -> None:
    cluster, _ = connect(
        describe_consumer_groups=lambda names: {
            "g": done(refused(code)),
            "h": done(described(ConsumerGroupState.EMPTY)),
        }
    )
    answers = cluster.describe(["g", "h"])
    assert str(answers["g"]) == f"group 'g': {message}"
    assert answers["h"] == LiveGroup("h", "Empty", (), "range", Protocol.CLASSIC)


def test_a_group_with_unreadable_subscriptions_does_not_affect_the_others(connect: Any) -> None:
    def list_groups(*names: str) -> list[SimpleNamespace]:
        if "bad" in names or not names:
            raise refused(KafkaError._BAD_MSG)
        return [listing(name, "x") for name in names]

    cluster, _ = connect(
        list_groups=list_groups,
        describe_consumer_groups=lambda names: {"g": done(described(ConsumerGroupState.EMPTY))},
    )
    cluster.describe(["g"])
    names = [*"abcdefgh", "bad"]
    assert sorted(cluster.subscriptions(names)) == [f"{name}-x" for name in "abcdefgh"]


def listing(id: str, members: Iterable[str], kind: str = "consumer") -> SimpleNamespace:
    members = [SimpleNamespace(id=f"{id}-{name}", metadata=name.encode()) for name in members]
    return SimpleNamespace(id=id, protocol_type=kind, members=members)


def test_partitions_without_a_committed_offset_are_skipped(connect: Any) -> None:
    committed = [TopicPartition("t", 0, 5), TopicPartition("t", 1, -1001)]
    cluster, _ = connect(
        list_consumer_group_offsets=lambda requests: {
            requests[0].group_id: done(SimpleNamespace(topic_partitions=committed))
        }
    )
    assert cluster.committed_offsets(["g"]) == {"g": {("t", 0): 5}}


def partition(number: int, *racks: str | None) -> SimpleNamespace:
    return SimpleNamespace(id=number, replicas=[SimpleNamespace(rack=rack) for rack in racks])


def test_topics_have_their_id_and_racks_in_partition_order(connect: Any) -> None:
    halves = (ID.bytes[:8], ID.bytes[8:])
    number = Uuid(*(int.from_bytes(half, "big", signed=True) for half in halves))
    topics = {
        "t": done(
            SimpleNamespace(topic_id=number, partitions=[partition(1, None, "b"), partition(0)])
        ),
        "old": done(SimpleNamespace(topic_id=Uuid(0, 0), partitions=[partition(0, None)])),
        "gone": done(refused(KafkaError.UNKNOWN_TOPIC_OR_PART)),
    }
    cluster, _ = connect(describe_topics=lambda names: topics)
    assert cluster.topics(list(topics)) == {
        "t": LiveTopic(2, ID, ((), (None, "b"))),
        "old": LiveTopic(1),
    }


def test_partitions_without_an_end_offset_are_skipped(connect: Any) -> None:
    answers = [
        SimpleNamespace(offset=7),
        SimpleNamespace(offset=-1001),
        refused(KafkaError.LEADER_NOT_AVAILABLE),
    ]
    cluster, _ = connect(
        list_offsets=lambda requests: dict(zip(requests, map(done, answers), strict=True))
    )
    assert cluster.end_offsets([("t", 0), ("t", 1), ("t", 2)]) == {("t", 0): 7}


def test_an_error_replaces_the_description_of_its_topic(connect: Any) -> None:
    answer = done(refused(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    cluster, _ = connect(describe_topics=lambda names: {"t": answer})
    found = cluster.topics(["t"])["t"]
    assert isinstance(found, InputError)
    assert str(found) == "topic 't': Broker: Topic authorization failed"


@pytest.mark.parametrize(
    ("errors", "cause"),
    [
        ([], "no answer within 2 s"),
        ([KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down")], "no answer within 2 s"),
        ([KafkaError(KafkaError._TRANSPORT, "connection refused")], "connection refused"),
        (
            [
                KafkaError(KafkaError._TRANSPORT, "disconnected"),
                KafkaError(KafkaError._AUTHENTICATION, "wrong password"),
            ],
            "wrong password",
        ),
    ],
)
def test_a_time_out_reports_the_connection_error(
    connect: Any, errors: list[KafkaError], cause: str
) -> None:
    cluster, admin = connect(
        list_consumer_groups=lambda: done(SimpleNamespace(valid=[], errors=[LATE]))
    )
    admin.errors = errors
    with pytest.raises(RunError) as failed:
        cluster.group_ids()
    assert str(failed.value) == f"h:1: cannot list groups: {cause}"


def test_a_request_ends_early_if_no_connection_can_succeed(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "_CONNECTION_SECONDS", 0.0)
    monkeypatch.setattr(librdkafka, "_GRACE_SECONDS", 3600.0)
    cluster, admin = connect(list_consumer_groups=Future)
    admin.errors = [KafkaError(KafkaError._AUTHENTICATION, "wrong password")]
    with pytest.raises(RunError, match="cannot list groups: wrong password"):
        cluster.group_ids()
