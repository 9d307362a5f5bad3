"""Consumer of a Python library, which polls until its standard input ends.

An input line ``TOPIC,TOPIC`` changes the subscription. The assignor ``optimal`` is that of
`kassay.clients`. Output lines have the sign of an assignment (+), a revocation (-) or the
revocation of all (.), the time in ms, and partitions. The environment variable CONSUMER is a JSON
object with the client id, the instance id, the heartbeat interval in ms, and the start time.

Usage: python consumer.py LIBRARY BOOTSTRAP GROUP ASSIGNOR TOPIC,TOPIC
"""

import asyncio
import importlib
import json
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from kassay.experiments.implementations.drivers.python.driver import assignor_class

_POLL_SECONDS = 0.1
_LONG_POLL_MILLIS = 3000
_CONSUMER = json.loads(os.environ.get("CONSUMER", "{}"))
_HEARTBEAT_MILLIS = _CONSUMER.get("heartbeat_millis", 300)
_SESSION_MILLIS = 30_000
_REJOIN_MILLIS = 15_000


def _record(sign: str, partitions: Sequence[Any] = ()) -> None:
    names = (f"{one.topic}:{one.partition}" for one in partitions)
    print(sign, round(1000 * time.time()), *names, flush=True)  # noqa: T201


def _changes() -> Iterator[Sequence[str]]:
    """Yield a new subscription, or nothing if there is none, until standard input ends."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get_nowait()
        except queue.Empty:
            yield ()
            continue
        if line is None:
            _record(".")
            return
        yield line.strip().split(",")


def _settings(package: str, bootstrap: str, group: str, assignor: str) -> dict[str, Any]:
    """Return the settings that kafka-python and aiokafka share."""
    if assignor == "optimal":
        name = "aiokafka" if package == "aiokafka" else "kafka_python"
        chosen = [importlib.import_module(f"kassay.clients.{name}").OptimalAssignor]
    else:
        chosen = [assignor_class(package, name) for name in assignor.split(",")]
    settings = {
        "bootstrap_servers": bootstrap.split(","),
        "group_id": group,
        "partition_assignment_strategy": chosen,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": _HEARTBEAT_MILLIS,
        "session_timeout_ms": _SESSION_MILLIS,
        # kafka-python 3.0 can repeat a failed commit without end when it rejoins.
        "enable_auto_commit": False,
        # The coordinator removes a member that does not rejoin within this time.
        "max_poll_interval_ms": _REJOIN_MILLIS,
    }
    if "client" in _CONSUMER:
        settings["client_id"] = _CONSUMER["client"]
        settings["group_instance_id"] = _CONSUMER.get("instance")
    return settings | ({"client_id": f"{package}-optimal"} if assignor == "optimal" else {})


def librdkafka(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with confluent-kafka; uniform is an assignor of the consumer protocol."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    if "client" in _CONSUMER:
        settings["client.id"] = _CONSUMER["client"]
    if _CONSUMER.get("instance"):
        settings["group.instance.id"] = _CONSUMER["instance"]
    if assignor == "uniform":
        settings |= {"group.protocol": "consumer", "group.remote.assignor": assignor}
    else:
        settings |= {
            "partition.assignment.strategy": assignor,
            "heartbeat.interval.ms": str(_HEARTBEAT_MILLIS),
            "session.timeout.ms": str(_SESSION_MILLIS),
        }
    consumer = Consumer(settings)
    listeners = {
        "on_assign": lambda _, partitions: _record("+", partitions),
        "on_revoke": lambda _, partitions: _record("-", partitions),
    }
    consumer.subscribe(list(topics), **listeners)
    for change in _changes():
        if change:
            consumer.subscribe(list(change), **listeners)
        consumer.poll(_POLL_SECONDS)
    consumer.close()


def kafka_python(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with kafka-python.

    The subscriptions are patterns, so that the client knows all topics. Otherwise a leader does
    not assign the topics of other members until its metadata contain them. After a short poll
    that ends during a rebalance, the client can stop its heartbeats, so the polls are long.
    """
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    def pattern(names: Sequence[str]) -> str:
        return f"^({'|'.join(map(re.escape, names))})$"

    consumer = KafkaConsumer(**_settings("kafka", bootstrap, group, assignor))
    consumer.subscribe(pattern=pattern(topics))
    for change in _changes():
        if change:
            consumer.subscribe(pattern=pattern(change))
        with suppress(KafkaError):  # A poll of a slow broker can fail.
            consumer.poll(timeout_ms=_LONG_POLL_MILLIS)
    consumer.close()


def aiokafka(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with aiokafka."""
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Sequence[Any]) -> None:
            _record("+", assigned)

        def on_partitions_revoked(self, revoked: Sequence[Any]) -> None:
            _record(".")

    async def consume() -> None:
        consumer = AIOKafkaConsumer(**_settings("aiokafka", bootstrap, group, assignor))
        consumer.subscribe(list(topics), listener=Listener())
        await consumer.start()
        for change in _changes():
            if change:
                consumer.subscribe(list(change), listener=Listener())
            await consumer.getmany(timeout_ms=int(_POLL_SECONDS * 1000))
        await consumer.stop()

    asyncio.run(consume())


if __name__ == "__main__":
    library, *arguments, topic_names = sys.argv[1:]
    time.sleep(max(0.0, _CONSUMER.get("start_at", 0.0) - time.time()))
    run = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}[library]
    run(*arguments, topic_names.split(","))
