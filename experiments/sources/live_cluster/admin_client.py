"""Asks a running cluster, by confluent-kafka's AdminClient: no consumer, no write."""

import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.live_cluster.group_descriptions import (
    DEAD,
    LiveGroup,
    LiveMember,
    LiveTopic,
)
from kassay.experiments.sources.merge_captures import PartitionKey

_STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: DEAD,
    ConsumerGroupState.EMPTY: "Empty",
}
_LEADERLESS = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
_REFUSALS = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.GROUP_ID_NOT_FOUND,
        KafkaError.INVALID_GROUP_ID,
    }
)
# The library's own answer comes first; this one stands behind it.
_GRACE_SECONDS = 5.0
_DRAIN_SECONDS = 0.2
_STEP_SECONDS = 0.2
_PATIENCE_SECONDS = 3.0
_FEW_GROUPS = 8

_T = TypeVar("_T")


class LiveCluster:
    """Implements `group_descriptions.Cluster` with confluent-kafka.

    Parameters
    ----------
    bootstrap
        ``host:port`` of some brokers, separated by commas.
    settings
        librdkafka properties, those for TLS and SASL above all.
    timeout
        How long to wait for each answer, in seconds.

    Raises
    ------
    SourceError
        If the settings contradict each other.
    """

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str] | None = None, *, timeout: float = 30.0
    ) -> None:
        self._bootstrap = bootstrap
        self._timeout = timeout
        self._troubles: list[KafkaError] = []
        self._answered = False
        properties: dict[str, Any] = {"client.id": "kassay"} | dict(settings or {})
        properties["bootstrap.servers"] = bootstrap
        properties["log_level"] = 0  # what goes wrong is said by the errors raised here
        properties["error_cb"] = self._troubles.append
        try:
            self._admin: Any = AdminClient(properties)
        except KafkaException as error:
            raise SourceError(f"{bootstrap}: {_words(error)}") from None

    def group_ids(self) -> list[str]:
        """Name all consumer groups."""
        with self._asking("list groups"):
            listed = self._wait(self._admin.list_consumer_groups(request_timeout=self._timeout))
            if listed.errors:
                raise KafkaException(listed.errors[0])
            return sorted(group.group_id for group in listed.valid)

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | SourceError]:
        """Describe groups; one that does not exist is in state `DEAD`."""
        with self._asking("describe groups"):
            futures = self._admin.describe_consumer_groups(
                list(groups), request_timeout=self._timeout
            )
            return {name: self._of_group(name, futures[name], _group) for name in groups}

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        """Give what members of the classic protocol sent when they joined, by member id."""
        found: dict[str, bytes] = {}
        wanted = frozenset(groups)
        with self._asking("read subscriptions"), warnings.catch_warnings():
            # No later call of the library gives these bytes.
            warnings.simplefilter("ignore", DeprecationWarning)
            # Each call asks every broker: past a few groups, one for all of them is cheaper.
            calls = ([name] for name in groups) if len(groups) <= _FEW_GROUPS else ([],)
            for names in calls:
                for group in self._admin.list_groups(*names, timeout=self._timeout):
                    if group.protocol_type == "consumer" and group.id in wanted:
                        found |= {member.id: bytes(member.metadata) for member in group.members}
        return found

    def committed(self, groups: Sequence[str]) -> dict[str, dict[PartitionKey, int] | SourceError]:
        """Give the committed offsets of groups."""
        with self._asking("read committed offsets"):
            futures = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=self._timeout
                )[name]
                for name in groups
            }
            return {name: self._of_group(name, futures[name], _offsets) for name in groups}

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | SourceError]:
        """Describe topics; those that do not exist are left out."""
        found: dict[str, LiveTopic | SourceError] = {}
        with self._asking("describe topics"):
            futures = self._admin.describe_topics(
                TopicCollection(list(names)), request_timeout=self._timeout
            )
            for name in names:
                try:
                    described = self._unless(_LEADERLESS, futures[name])
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        raise
                    found[name] = SourceError(f"topic {name!r}: {_words(error)}")
                    continue
                if described is not None:
                    found[name] = _topic(described)
        return found

    def ends(self, places: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Give end offsets; partitions without a leader are left out."""
        found: dict[PartitionKey, int] = {}
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        with self._asking("read end offsets"):
            futures = self._admin.list_offsets(
                {TopicPartition(*place): latest for place in places},
                request_timeout=self._timeout,
            )
            for partition, future in futures.items():
                answer = self._unless(_LEADERLESS, future)
                # Of a broker that does not answer, the library gives no error but -1001.
                if answer is not None and answer.offset >= 0:
                    found[partition.topic, partition.partition] = int(answer.offset)
        return found

    def _wait(self, future: "Future[Any]") -> Any:
        """Wait for an answer; less long where it is known why none will come."""
        started = time.monotonic()
        while True:
            try:
                answer = future.result(_STEP_SECONDS)
            except FutureTimeoutError:
                self._admin.poll(0)
                waited = time.monotonic() - started
                if waited > self._timeout + _GRACE_SECONDS:
                    raise
                if waited > _PATIENCE_SECONDS and self._refusals() and not self._answered:
                    raise
            else:
                self._answered = True
                return answer

    def _refusals(self) -> list[KafkaError]:
        """Errors of connections that the next attempt will meet again."""
        codes = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)  # noqa: SLF001
        return [error for code in codes for error in self._troubles if error.code() == code]

    def _unless(self, codes: frozenset[int], future: "Future[Any]") -> Any:
        try:
            return self._wait(future)
        except KafkaException as error:
            if error.args[0].code() in codes:
                return None
            raise

    def _of_group(
        self, name: str, future: "Future[Any]", read: Callable[[str, Any], _T]
    ) -> _T | SourceError:
        """Take the answer for one group, or why this group has none."""
        try:
            return read(name, self._wait(future))
        except SourceError as error:
            return error
        except KafkaException as error:
            code = error.args[0].code()
            if code not in _REFUSALS:
                raise
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return SourceError(f"group {name!r}: the cluster has no such consumer group")
            return SourceError(f"group {name!r}: {_words(error)}")

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Turn what the library raises into one error, with the cause that it told aside."""
        try:
            yield
        except (KafkaException, FutureTimeoutError, TypeError, ValueError) as error:
            raise SourceError(f"{self._bootstrap}: cannot {what}: {self._cause(error)}") from None

    def _cause(self, error: Exception) -> str:
        """Prefer why connections fail to the time-out that follows."""
        self._admin.poll(_DRAIN_SECONDS)
        others = [
            trouble
            for trouble in self._troubles
            if trouble.code() != KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
        ]
        late = isinstance(error, FutureTimeoutError) or _is_late(error)
        for trouble in (*self._refusals(), *others) if late else ():
            return str(trouble.str())
        return f"no answer within {self._timeout:g} s" if late else _words(error)


def _is_late(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in {
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
    }


def _words(error: Exception) -> str:
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return str(error.args[0].str())
    return str(error)


def _group(name: str, described: Any) -> LiveGroup:
    members = (
        LiveMember(
            id=member.member_id,
            client_id=member.client_id,
            instance_id=member.group_instance_id or None,
            assigned=_places(member.assignment),
            target=None if member.target_assignment is None else _places(member.target_assignment),
        )
        for member in described.members
    )
    return LiveGroup(
        name,
        _STATES.get(described.state, "Unknown"),
        tuple(sorted(members, key=lambda member: member.id)),
    )


def _places(assignment: Any) -> frozenset[PartitionKey]:
    return frozenset((tp.topic, tp.partition) for tp in assignment.topic_partitions)


def _offsets(name: str, answer: Any) -> dict[PartitionKey, int]:
    for partition in answer.topic_partitions:
        if partition.error is not None:
            place = f"{partition.topic}-{partition.partition}"
            raise SourceError(f"group {name!r}: {place}: {partition.error.str()}")
    return {
        (partition.topic, partition.partition): partition.offset
        for partition in answer.topic_partitions
        if partition.offset >= 0
    }


def _topic(described: Any) -> LiveTopic:
    ordered = sorted(described.partitions, key=lambda partition: int(partition.id))
    racks = tuple(
        tuple(replica.rack or None for replica in partition.replicas) for partition in ordered
    )
    number = (described.topic_id.get_most_significant_bits() % 2**64) << 64 | (
        described.topic_id.get_least_significant_bits() % 2**64
    )
    return LiveTopic(
        partitions=len(ordered),
        id=uuid.UUID(int=number) if number else None,  # brokers before 2.8 have none
        racks=racks if any(rack is not None for row in racks for rack in row) else None,
    )
