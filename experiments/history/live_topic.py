"""Read the topic ``__consumer_offsets`` of a live cluster without joining a group."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.cluster_responses import LiveTopic
from kassay.experiments.sources.live_cluster.msk_iam import connection_properties
from kassay.reference.model.errors import InputError

TOPIC = "__consumer_offsets"
_MAX_MESSAGES = 1_000  # maximum number of messages per call
_POLL_SECONDS = 0.25
_CONSUMER_SETTINGS = {
    # librdkafka requires a group id, but this consumer joins no group and commits nothing.
    "group.id": "kassay-reads-only",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",  # after the deletion of old records
    "isolation.level": "read_committed",
    "log_level": "0",
}


class OffsetsReader:
    """Reader of the records in the topic ``__consumer_offsets`` of a live cluster."""

    def __init__(self, settings: Mapping[str, str], *, timeout: float = 30.0) -> None:
        self._settings = settings
        self._servers = settings["bootstrap.servers"]
        self._timeout = timeout

    def partitions(self) -> list[int]:
        """Return the partition numbers of ``__consumer_offsets``."""
        topic = _cluster(self._settings, self._timeout).topics([TOPIC]).get(TOPIC)
        if isinstance(topic, LiveTopic):
            return list(range(topic.partitions))
        reason = topic or "the cluster creates it for its first consumer group"
        raise InputError(f"{self._servers}: cannot find the topic {TOPIC}: {reason}")

    def read(self, partitions: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the raw records in partitions of ``__consumer_offsets`` as table rows."""
        if not partitions:
            return
        unfinished = set(partitions)
        known = connection_properties(self._settings, self._servers)
        consumer = Consumer({**known, **_CONSUMER_SETTINGS})
        try:
            consumer.assign(
                [TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in sorted(unfinished)]
            )
            deadline = time.monotonic() + self._timeout
            while unfinished:
                messages = consumer.consume(_MAX_MESSAGES, timeout=_POLL_SECONDS)
                deadline = time.monotonic() + self._timeout if messages else deadline
                if time.monotonic() > deadline:
                    raise InputError(
                        f"{self._servers}: received no records within {self._timeout:g} s; "
                        "give a higher --timeout"
                    )
                for message in messages:
                    error = message.error()
                    if error is None:
                        yield _row(message)
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        unfinished.discard(message.partition())
                    elif not error.retriable():
                        raise InputError(f"{self._servers}: cannot read {TOPIC}: {error.str()}")
        finally:
            consumer.close()


def list_cluster_topics(
    settings: Mapping[str, str], *, timeout: float = 30.0
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the partition counts of a cluster's topics by name, and the topic names by id."""
    cluster = _cluster(settings, timeout)
    names = [name for name in cluster.topic_names() if not name.startswith("__")]
    described = cluster.topics(names) if names else {}
    # A topic may be deleted between the two requests.
    topics = {name: topic for name, topic in described.items() if isinstance(topic, LiveTopic)}
    return (
        {name: topic.partitions for name, topic in topics.items()},
        {str(topic.id): name for name, topic in topics.items() if topic.id is not None},
    )


def _cluster(settings: Mapping[str, str], timeout: float) -> LiveCluster:
    return LiveCluster(settings["bootstrap.servers"], settings, timeout=timeout)


def _row(message: Any) -> dict[str, Any]:
    timestamp_type, timestamp = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if timestamp_type else None,
    }
