"""The topic ``__consumer_offsets`` of a live cluster, read without joining any group."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.group_descriptions import LiveTopic
from kassay.reference.model.errors import InputError

TOPIC = "__consumer_offsets"
_FETCHED = 1_000  # messages at once
_POLL = 0.25  # seconds
_OWN = {
    # librdkafka wants a name; nothing is committed under it, and no group is joined.
    "group.id": "kassay-reads-only",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "log_level": "0",
}


class OffsetsReader:
    """Reads the topic up to the end that it has when it gets there.

    Parameters
    ----------
    settings
        librdkafka's settings, ``bootstrap.servers`` among them.
    timeout
        Seconds to wait for an answer.
    """

    def __init__(self, settings: Mapping[str, str], *, timeout: float = 30.0) -> None:
        self._settings = {**settings, **_OWN}
        self._timeout = timeout

    def partitions(self) -> list[int]:
        """Return the numbers of the topic's partitions.

        Raises
        ------
        InputError
            If the cluster does not answer, or has no such topic.
        """
        consumer = Consumer(self._settings)
        try:
            found = consumer.list_topics(TOPIC, timeout=self._timeout).topics[TOPIC]
        except KafkaException as error:
            raise InputError(f"{self._where}: {error.args[0].str()}") from None
        finally:
            consumer.close()
        if found.error is not None or not found.partitions:
            why = "no group has ever been there" if found.error is None else found.error.str()
            raise InputError(f"{self._where}: no topic {TOPIC}: {why}")
        return sorted(found.partitions)

    def read(self, partitions: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the records of partitions as rows.

        Raises
        ------
        InputError
            If the cluster does not answer in time.
        """
        if not partitions:
            return
        left = set(partitions)
        consumer = Consumer(self._settings)
        try:
            consumer.assign([TopicPartition(TOPIC, n, OFFSET_BEGINNING) for n in sorted(left)])
            deadline = time.monotonic() + self._timeout
            while left:
                messages = consumer.consume(_FETCHED, timeout=_POLL)
                deadline = time.monotonic() + self._timeout if messages else deadline
                if time.monotonic() > deadline:
                    raise InputError(f"{self._where}: no answer within {self._timeout:g} s")
                for message in messages:
                    error = message.error()
                    if error is None:
                        yield _row(message)
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        left.discard(message.partition())
                    elif not error.retriable():
                        raise InputError(f"{self._where}: {error.str()}")
        finally:
            consumer.close()

    @property
    def _where(self) -> str:
        return str(self._settings["bootstrap.servers"])


def topics_of(
    settings: Mapping[str, str], *, timeout: float = 30.0
) -> tuple[dict[str, int], dict[str, str]]:
    """Return partition counts by topic, and topic names by id.

    Raises
    ------
    InputError
        If the cluster does not answer.
    """
    servers = settings["bootstrap.servers"]
    consumer = Consumer({**settings, **_OWN})
    try:
        listed = consumer.list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise InputError(f"{servers}: {error.args[0].str()}") from None
    finally:
        consumer.close()
    names = sorted(name for name in listed if not name.startswith("__"))
    answers = LiveCluster(servers, settings, timeout=timeout).topics(names) if names else {}
    # A topic may be deleted between the two questions.
    found = {name: topic for name, topic in answers.items() if isinstance(topic, LiveTopic)}
    return (
        {name: topic.partitions for name, topic in found.items()},
        {str(topic.id): name for name, topic in found.items() if topic.id is not None},
    )


def _row(message: Any) -> dict[str, Any]:
    kind, stamp = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": stamp if kind else None,
    }
