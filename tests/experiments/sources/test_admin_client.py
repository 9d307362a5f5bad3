"""What the client library answers is taken for what it is, errors included."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    TopicPartition,
    Uuid,
)

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.live_cluster import admin_client as live_client
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.group_descriptions import (
    LiveGroup,
    LiveMember,
    LiveTopic,
)

ID = uuid.UUID("8f000000-0000-4000-a000-000000000009")
LATE = KafkaError(KafkaError._TIMED_OUT)


class FakeAdmin:
    """Answers each question by a function that a test gives."""

    def __init__(self, answers: dict[str, Any], properties: dict[str, Any]) -> None:
        self.properties = properties
        self.calls: list[tuple[Any, ...]] = []
        self.troubles: list[KafkaError] = []
        self._answers = answers

    def poll(self, _: float) -> None:
        for trouble in self.troubles:
            self.properties["error_cb"](trouble)

    def __getattr__(self, question: str) -> Callable[..., Any]:
        def answer(*arguments: Any, **options: Any) -> Any:
            self.calls.append((question, *arguments))
            assert set(options) & {"request_timeout", "timeout"}, "each question has a time limit"
            return self._answers[question](*arguments)

        return answer


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LiveCluster, FakeAdmin]]:
    def build(**answers: Any) -> tuple[LiveCluster, FakeAdmin]:
        made: list[FakeAdmin] = []

        def make(properties: dict[str, Any]) -> FakeAdmin:
            made.append(FakeAdmin(answers, properties))
            return made[0]

        monkeypatch.setattr(live_client, "AdminClient", make)
        return LiveCluster("h:1", {"client.id": "me"}, timeout=2), made[0]

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
    return SimpleNamespace(state=state, members=members)


def person(id: str, assignment: Any, target: Any, instance: str | None) -> SimpleNamespace:
    return SimpleNamespace(
        member_id=id,
        client_id=f"client-{id}",
        assignment=assignment,
        target_assignment=target,
        group_instance_id=instance,
    )


def test_settings_go_to_the_client_and_its_logs_stay_off_the_terminal(ask: Any) -> None:
    _, admin = ask()
    given = admin.properties
    assert (given["bootstrap.servers"], given["client.id"], given["log_level"]) == ("h:1", "me", 0)


def test_groups_are_described(ask: Any) -> None:
    members = (person("y", pairs(), pairs(("t", 1)), ""), person("x", pairs(("t", 0)), None, "i"))
    cluster, _ = ask(
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
                LiveMember("x", "client-x", "i", frozenset({("t", 0)})),
                LiveMember("y", "client-y", None, frozenset(), frozenset({("t", 1)})),
            ),
        ),
        "new": LiveGroup("new", "Unknown"),
    }


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (KafkaError.GROUP_ID_NOT_FOUND, "the cluster has no such consumer group"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Broker: Group authorization failed"),
    ],
)
def test_a_group_that_is_refused_is_an_error_in_its_place(
    ask: Any, code: int, message: str
) -> None:
    cluster, _ = ask(
        describe_consumer_groups=lambda names: {
            "g": done(refused(code)),
            "h": done(described(ConsumerGroupState.EMPTY)),
        }
    )
    answers = cluster.describe(["g", "h"])
    assert str(answers["g"]) == f"group 'g': {message}"
    assert answers["h"] == LiveGroup("h", "Empty")


def listing(id: str, members: Iterable[str], kind: str = "consumer") -> SimpleNamespace:
    people = [SimpleNamespace(id=f"{id}-{name}", metadata=name.encode()) for name in members]
    return SimpleNamespace(id=id, protocol_type=kind, members=people)


def test_few_groups_are_asked_for_by_name_and_many_at_once(ask: Any) -> None:
    everything = {name: listing(name, "xy") for name in "abcdefghijk"}
    everything["b"].protocol_type = "connect"
    cluster, admin = ask(
        list_groups=lambda *names: [everything[n] for n in (names or tuple(everything))]
    )
    assert cluster.subscriptions(["a", "b"]) == {"a-x": b"x", "a-y": b"y"}
    assert admin.calls == [("list_groups", "a"), ("list_groups", "b")]
    admin.calls.clear()
    assert len(cluster.subscriptions(list("abcdefghi"))) == 16
    assert admin.calls == [("list_groups",)]


def test_committed_offsets_leave_out_what_was_not_committed(ask: Any) -> None:
    committed = [TopicPartition("t", 0, 5), TopicPartition("t", 1, -1001)]
    cluster, _ = ask(
        list_consumer_group_offsets=lambda requests: {
            requests[0].group_id: done(SimpleNamespace(topic_partitions=committed))
        }
    )
    assert cluster.committed(["g"]) == {"g": {("t", 0): 5}}


def test_an_error_of_one_committed_offset_is_an_error_of_its_group(ask: Any) -> None:
    broken = SimpleNamespace(topic="t", partition=3, offset=-1, error=KafkaError(29))
    cluster, _ = ask(
        list_consumer_group_offsets=lambda requests: {
            "g": done(SimpleNamespace(topic_partitions=[broken]))
        }
    )
    answer = cluster.committed(["g"])["g"]
    assert str(answer) == "group 'g': t-3: Broker: Topic authorization failed"


def partition(number: int, *racks: str | None) -> SimpleNamespace:
    return SimpleNamespace(id=number, replicas=[SimpleNamespace(rack=rack) for rack in racks])


def test_topics_come_in_partition_order_with_id_and_racks(ask: Any) -> None:
    halves = (ID.bytes[:8], ID.bytes[8:])
    number = Uuid(*(int.from_bytes(half, "big", signed=True) for half in halves))
    topics = {
        "t": done(
            SimpleNamespace(topic_id=number, partitions=[partition(1, None, "b"), partition(0)])
        ),
        "old": done(SimpleNamespace(topic_id=Uuid(0, 0), partitions=[partition(0, None)])),
        "gone": done(refused(KafkaError.UNKNOWN_TOPIC_OR_PART)),
    }
    cluster, _ = ask(describe_topics=lambda names: topics)
    assert cluster.topics(list(topics)) == {
        "t": LiveTopic(2, ID, ((), (None, "b"))),
        "old": LiveTopic(1),
    }


def test_end_offsets_leave_out_partitions_that_nobody_answers_for(ask: Any) -> None:
    answers = [
        SimpleNamespace(offset=7),
        SimpleNamespace(offset=-1001),
        refused(KafkaError.LEADER_NOT_AVAILABLE),
    ]
    cluster, _ = ask(list_offsets=lambda asked: dict(zip(asked, map(done, answers), strict=True)))
    assert cluster.ends([("t", 0), ("t", 1), ("t", 2)]) == {("t", 0): 7}


def test_a_topic_that_may_not_be_described_is_an_error_in_its_place(ask: Any) -> None:
    answer = done(refused(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    cluster, _ = ask(describe_topics=lambda names: {"t": answer})
    found = cluster.topics(["t"])["t"]
    assert isinstance(found, SourceError)
    assert str(found) == "topic 't': Broker: Topic authorization failed"


def test_any_other_failure_is_one_error(ask: Any) -> None:
    answer = done(refused(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
    cluster, _ = ask(describe_topics=lambda names: {"t": answer})
    with pytest.raises(SourceError) as failed:
        cluster.topics(["t"])
    assert str(failed.value) == "h:1: cannot describe topics: Broker: Cluster authorization failed"


@pytest.mark.parametrize(
    ("troubles", "cause"),
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
def test_a_time_out_tells_why_there_is_no_connection(
    ask: Any, troubles: list[KafkaError], cause: str
) -> None:
    cluster, admin = ask(
        list_consumer_groups=lambda: done(SimpleNamespace(valid=[], errors=[LATE]))
    )
    admin.troubles = troubles
    with pytest.raises(SourceError) as failed:
        cluster.group_ids()
    assert str(failed.value) == f"h:1: cannot list groups: {cause}"


def test_groups_are_listed_by_name(ask: Any) -> None:
    names = [SimpleNamespace(group_id=name) for name in ("b", "a")]
    cluster, _ = ask(list_consumer_groups=lambda: done(SimpleNamespace(valid=names, errors=[])))
    assert cluster.group_ids() == ["a", "b"]


def test_no_answer_is_waited_for_once_it_is_known_that_none_will_come(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_client, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(live_client, "_GRACE_SECONDS", 3600.0)
    cluster, admin = ask(list_consumer_groups=Future)
    admin.troubles = [KafkaError(KafkaError._AUTHENTICATION, "wrong password")]
    with pytest.raises(SourceError, match="cannot list groups: wrong password"):
        cluster.group_ids()


def test_a_cluster_that_has_answered_is_waited_for_whatever_one_broker_says(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_client, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(live_client, "_STEP_SECONDS", 0.01)
    listed = SimpleNamespace(valid=[], errors=[])
    slow = FutureThatComes(after=5, result=listed)
    answers = iter([done(listed), slow])
    cluster, admin = ask(list_consumer_groups=lambda: next(answers))
    admin.troubles = [KafkaError(KafkaError._SSL, "one broker's certificate")]
    assert cluster.group_ids() == cluster.group_ids() == []


class FutureThatComes:
    """A future that is asked some times before it has its result."""

    def __init__(self, *, after: int, result: object) -> None:
        self._left = after
        self._result = result

    def result(self, _: float) -> object:
        self._left -= 1
        if self._left:
            raise TimeoutError
        return self._result


def test_a_library_that_keeps_no_time_limit_is_not_waited_for(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_client, "_GRACE_SECONDS", -2.0)
    cluster, _ = ask(list_consumer_groups=Future)
    with pytest.raises(SourceError, match="cannot list groups: no answer within 2 s"):
        cluster.group_ids()
