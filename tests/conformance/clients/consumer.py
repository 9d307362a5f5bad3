"""Consumer of a Python library, which polls until its standard input ends.

Usage: python consumer.py LIBRARY BOOTSTRAP GROUP ASSIGNOR TOPIC,TOPIC
"""

import asyncio
import sys
import threading
from collections.abc import Sequence

_POLL_SECONDS = 0.1


def _input_ended() -> threading.Event:
    """Return an event that is set when standard input ends."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def librdkafka(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with confluent-kafka; uniform is an assignor of the consumer protocol."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    if assignor == "uniform":
        settings |= {"group.protocol": "consumer", "group.remote.assignor": assignor}
    else:
        settings |= {"partition.assignment.strategy": assignor}
    consumer, ended = Consumer(settings), _input_ended()
    consumer.subscribe(list(topics))
    while not ended.is_set():
        consumer.poll(_POLL_SECONDS)
    consumer.close()


def kafka_python(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with kafka-python."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }
    ended = _input_ended()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        partition_assignment_strategy=[assignors[assignor]],
        auto_offset_reset="earliest",
    )
    consumer.subscribe(list(topics))
    while not ended.is_set():
        consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
    consumer.close()


def aiokafka(bootstrap: str, group: str, assignor: str, topics: Sequence[str]) -> None:
    """Consume with aiokafka."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor}
    ended = _input_ended()

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=[assignors[assignor]],
            auto_offset_reset="earliest",
        )
        await consumer.start()
        while not ended.is_set():
            await consumer.getmany(timeout_ms=int(_POLL_SECONDS * 1000))
        await consumer.stop()

    asyncio.run(consume())


if __name__ == "__main__":
    library, *arguments, topic_names = sys.argv[1:]
    run = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}[library]
    run(*arguments, topic_names.split(","))
