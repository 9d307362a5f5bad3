"""Read groups and topics of a running cluster with confluent-kafka's AdminClient.

`kafka_python` requests the descriptions of groups of the consumer protocol.
"""

import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from kassay.experiments.sources.live_cluster.cluster_responses import (
    DEAD,
    LiveGroup,
    LiveTopic,
    ThreadMember,
)
from kassay.experiments.sources.live_cluster.kafka_python import (
    UnreadableDescriptionError,
    describe_groups_of_kind,
    list_other_groups,
    live_group,
)
from kassay.experiments.sources.live_cluster.msk_iam import connection_properties
from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError, RunError
from kassay.reference.model.group import Protocol

_STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: DEAD,
    ConsumerGroupState.EMPTY: "Empty",
}
_PROTOCOLS: Mapping[ConsumerGroupType, Protocol] = {
    ConsumerGroupType.CLASSIC: Protocol.CLASSIC,
    ConsumerGroupType.CONSUMER: Protocol.CONSUMER,
}


def convert_group(name: str, described: Any) -> LiveGroup:
    """Convert a group description of confluent-kafka to a `LiveGroup`."""
    members = tuple(map(_member, described.members))
    # An empty group of subscribing consumers keeps its protocol type; this one never had one.
    is_simple = described.is_simple_consumer_group and not members
    protocol = Protocol.SIMPLE if is_simple else _PROTOCOLS.get(described.type)
    state = _STATES.get(described.state, "Unknown")
    if state == "Unknown" and protocol is Protocol.CONSUMER:
        # The library does not know the other states of the consumer protocol.
        reconciling = any(member.target is not None for member in members)
        state = "Reconciling" if reconciling else "Assigning"
    return LiveGroup(name, state, members, described.partition_assignor or None, protocol)


def _member(member: Any) -> ObservedMember:
    assigned, target = (
        tuple((tp.topic, tp.partition) for tp in one.topic_partitions)
        for one in (member.assignment, member.target_assignment or member.assignment)
    )
    return ObservedMember(
        id=member.member_id,
        client_id=member.client_id,
        host=member.host or None,
        instance_id=member.group_instance_id or None,
        owned=set(assigned),
        target=None if set(target) == set(assigned) else set(target),
        ordered=target,
    )


def convert_offsets(name: str, answer: Any) -> dict[PartitionKey, int]:
    """Convert committed offsets of confluent-kafka to offsets by partition.

    Partitions without a committed offset are skipped.
    """
    offsets: dict[PartitionKey, int] = {}
    for tp in answer.topic_partitions:
        if tp.error is not None:
            raise InputError(f"group {name!r}: {tp.topic}-{tp.partition}: {tp.error.str()}")
        if tp.offset >= 0:
            offsets[tp.topic, tp.partition] = tp.offset
    return offsets


def convert_topic(described: Any) -> LiveTopic:
    """Convert a topic description of confluent-kafka to a `LiveTopic`."""
    ordered = sorted(described.partitions, key=lambda partition: int(partition.id))
    racks = tuple(tuple(each.rack or None for each in tp.replicas) for tp in ordered)
    id = described.topic_id
    high, low = id.get_most_significant_bits(), id.get_least_significant_bits()
    number = (high % 2**64) << 64 | (low % 2**64)
    return LiveTopic(
        partitions=len(ordered),
        id=uuid.UUID(int=number) if number else None,  # brokers before 2.8 have none
        racks=racks if any(rack is not None for row in racks for rack in row) else None,
    )


# Local errors of librdkafka; the library documents these names with an underscore.
_ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
_AUTHENTICATION = KafkaError._AUTHENTICATION  # noqa: SLF001
_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)  # noqa: SLF001
_PERMANENT = (_AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)  # noqa: SLF001
_TIMEOUTS = (*_NO_ANSWER, _ALL_BROKERS_DOWN, _AUTHENTICATION, KafkaError.REQUEST_TIMED_OUT)
_UNKNOWN_OR_LEADERLESS = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)
# Errors that concern the connection to the cluster, not one group.
_CLUSTER_ERRORS = (*_PERMANENT, _ALL_BROKERS_DOWN, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
# Additional time after the library's own time limit, in case the library does not stop.
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.2
# Permanent connection errors end a request after this time.
_CONNECTION_SECONDS = 1.0
_MAX_REQUESTS_BY_GROUP = 8

_T = TypeVar("_T")


class LiveCluster:
    """Connection to a running Kafka cluster with confluent-kafka.

    If the cluster refuses to describe a group or topic, the result contains an error for it. The
    settings are librdkafka properties. The timeout is in seconds per request.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, str] | None = None,
        *,
        timeout: float = 30.0,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._settings = dict(settings or {})
        self._timeout = timeout
        self._connection_errors: list[KafkaError] = []
        self._answered = False
        known = connection_properties(self._settings, bootstrap_servers)
        properties: dict[str, Any] = {"client.id": "kassay"} | known
        properties["bootstrap.servers"] = bootstrap_servers
        properties["log_level"] = 0  # the errors raised here report failures
        properties["error_cb"] = self._connection_errors.append
        try:
            self._admin: Any = AdminClient(properties)
        except KafkaException as error:
            raise InputError(f"{bootstrap_servers}: {_message(error)}") from None

    def group_ids(self) -> list[str]:
        """Return the ids of all consumer groups."""
        with self._request("list groups"):
            listed = self._wait(self._admin.list_consumer_groups(request_timeout=self._timeout))
            if listed.errors:
                raise KafkaException(listed.errors[0])
            return sorted(group.group_id for group in listed.valid)

    def other_groups(self) -> dict[str, str]:
        """Return the protocol type of each group that is not a consumer group.

        The result is empty if kafka-python cannot list them.
        """
        try:
            return list_other_groups(self._bootstrap_servers, self._settings, timeout=self._timeout)
        except UnreadableDescriptionError:
            return {}

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | InputError]:
        """Describe groups. A group that does not exist has the state `DEAD`."""
        with self._request("describe groups"):
            futures = self._admin.describe_consumer_groups(
                list(groups), request_timeout=self._timeout
            )
            answers = {
                name: self._group_answer(name, futures[name], convert_group) for name in groups
            }
        return answers | self._complete(answers)

    def _complete(
        self, answers: Mapping[str, LiveGroup | InputError]
    ) -> dict[str, LiveGroup | InputError]:
        """Describe groups of the consumer protocol again with kafka-python."""
        groups = {
            name: answer
            for name, answer in answers.items()
            if isinstance(answer, LiveGroup) and answer.protocol is Protocol.CONSUMER
        }
        if not groups:
            return {}
        described: Mapping[str, Mapping[str, Any]] = {}
        reason = "the coordinator does not describe the group"
        try:
            described = self.describe_groups(Kind.CONSUMER, sorted(groups))
        except UnreadableDescriptionError as error:
            reason = str(error)
        return {
            name: live_group(described[name])
            if name in described
            else replace(group, incomplete=reason)
            for name, group in groups.items()
        }

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        """Return the encoded subscriptions of members of the classic protocol, by member id.

        A group that cannot be read has no entries.
        """
        subscriptions: dict[str, bytes] = {}
        with self._request("read subscriptions"), warnings.catch_warnings():
            # The library has no newer call that returns these bytes.
            warnings.simplefilter("ignore", DeprecationWarning)
            # A call contacts every broker. For many groups, one call for all is cheaper.
            if len(groups) > _MAX_REQUESTS_BY_GROUP:
                with suppress(KafkaException):
                    return self._list_subscriptions(None, set(groups))
            for name in groups:
                try:
                    subscriptions |= self._list_subscriptions(name, {name})
                except KafkaException:
                    if not self._answered:
                        raise
        return subscriptions

    def describe_groups(self, kind: Kind, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Describe groups of one kind with kafka-python."""
        return describe_groups_of_kind(
            self._bootstrap_servers, self._settings, kind, groups, timeout=self._timeout
        )

    def thread_members(self, group: str) -> list[ThreadMember]:
        """Return the members of a Streams application that uses the classic protocol."""
        with self._request("read members"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return [
                ThreadMember(member.id, bytes(member.metadata), bytes(member.assignment))
                for one in self._admin.list_groups(group, timeout=self._timeout)
                for member in one.members
            ]

    def _list_subscriptions(self, name: str | None, wanted: set[str]) -> dict[str, bytes]:
        names = () if name is None else (name,)
        return {
            member.id: bytes(member.metadata)
            for group in self._admin.list_groups(*names, timeout=self._timeout)
            if group.protocol_type == "consumer" and group.id in wanted
            for member in group.members
        }

    def committed_offsets(
        self, groups: Sequence[str]
    ) -> dict[str, dict[PartitionKey, int] | InputError]:
        """Return the committed offsets of each group by partition, or an error."""
        with self._request("read committed offsets"):
            futures = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=self._timeout
                )[name]
                for name in groups
            }
            return {
                name: self._group_answer(name, futures[name], convert_offsets) for name in groups
            }

    def topic_names(self) -> list[str]:
        """Return the names of all topics that the client may read."""
        with self._request("list topics"):
            return sorted(self._admin.list_topics(timeout=self._timeout).topics)

    def cluster_id(self) -> str | None:
        """Return the cluster id, or None if the broker does not send it."""
        with self._request("read the cluster id"):
            id: str | None = self._admin.list_topics(timeout=self._timeout).cluster_id
            return id

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | InputError]:
        """Describe topics, with an error for each topic that the client has no permission for."""
        topics: dict[str, LiveTopic | InputError] = {}
        with self._request("describe topics"):
            futures = self._admin.describe_topics(
                TopicCollection(list(names)), request_timeout=self._timeout
            )
            for name in names:
                try:
                    described = self._topic_answer(futures[name])
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        raise
                    topics[name] = InputError(f"topic {name!r}: {_message(error)}")
                    continue
                if described is not None:
                    topics[name] = convert_topic(described)
        return topics

    def end_offsets(
        self, partitions: Sequence[PartitionKey], *, timeout: float = inf
    ) -> dict[PartitionKey, int]:
        """Return the end offset of each partition that has a leader."""
        end_offsets: dict[PartitionKey, int] = {}
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        with self._request("read end offsets"):
            futures = self._admin.list_offsets(
                {TopicPartition(*partition): latest for partition in partitions},
                request_timeout=min(timeout, self._timeout),
            )
            for partition, future in futures.items():
                end = self._topic_answer(future)
                # If a broker does not answer, the library returns -1001 and no error.
                if end is not None and end.offset >= 0:
                    end_offsets[partition.topic, partition.partition] = int(end.offset)
        return end_offsets

    def _wait(self, future: "Future[Any]") -> Any:
        """Wait for the response to a request, or raise on a permanent connection error."""
        started = time.monotonic()
        while True:
            try:
                answer = future.result(_POLL_SECONDS)
            except FutureTimeoutError:
                self._admin.poll(0)
                waited = time.monotonic() - started
                if waited > self._timeout + _GRACE_SECONDS:
                    raise
                if waited > _CONNECTION_SECONDS and self._permanent_errors() and not self._answered:
                    raise
            else:
                self._answered = True
                return answer

    def _permanent_errors(self) -> list[KafkaError]:
        """Return the connection errors that further attempts cannot solve."""
        found = [e for code in _PERMANENT for e in self._connection_errors if e.code() == code]
        is_down = any(e.code() == _ALL_BROKERS_DOWN for e in self._connection_errors)
        refused = [e for e in self._connection_errors if is_down and "refused" in e.str()]
        return [*found, *refused]

    def _topic_answer(self, future: "Future[Any]") -> Any:
        try:
            return self._wait(future)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN_OR_LEADERLESS:
                return None
            raise

    def _group_answer(
        self, name: str, future: "Future[Any]", read: Callable[[str, Any], _T]
    ) -> _T | InputError:
        """Wait for a response about a group, and return the result of ``read`` or an error."""
        try:
            return read(name, self._wait(future))
        except InputError as error:
            return error
        except KafkaException as error:
            code = error.args[0].code()
            if code in _CLUSTER_ERRORS or (code in _TIMEOUTS and not self._answered):
                raise
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return InputError(f"group {name!r}: the cluster has no such consumer group")
            return InputError(f"group {name!r}: {_message(error)}")
        except FutureTimeoutError:
            if not self._answered:
                raise
            return InputError(f"group {name!r}: no answer within {self._timeout:g} s")

    @contextmanager
    def _request(self, action: str) -> Iterator[None]:
        """Convert errors of confluent-kafka to a `RunError` that names the action."""
        try:
            yield
        except (KafkaException, FutureTimeoutError, TypeError, ValueError) as error:
            raise RunError(
                f"{self._bootstrap_servers}: cannot {action}: {self._cause(error)}"
            ) from None

    def _cause(self, error: Exception) -> str:
        """Return the message of an error; for a time-out, the message of the connection error."""
        self._admin.poll(_POLL_SECONDS)
        is_other = not isinstance(error, KafkaException) or error.args[0].code() not in _TIMEOUTS
        if is_other and not isinstance(error, FutureTimeoutError):
            return _message(error)
        others = [e for e in self._connection_errors if e.code() != _ALL_BROKERS_DOWN]
        causes = [*self._permanent_errors(), *others]
        return str(causes[0].str()) if causes else f"no answer within {self._timeout:g} s"


def _message(error: Exception) -> str:
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return str(error.args[0].str())
    return str(error)
