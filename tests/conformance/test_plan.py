"""Execution of plans on a real broker."""

import json
import time
from collections import Counter
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from jpype import JClass

from kassay.experiments.cli import main
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plan import static_assignment
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.jvm import java_map
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka

CAPTURE = "examples/captures/analytics-sticky"
SUBSCRIPTIONS = "examples/captures/subscriptions.json"


def test_consumers_with_the_planned_lists_have_the_planned_loads(tmp_path, capsys):
    main_arguments = ["plan", CAPTURE, "--subscriptions", SUBSCRIPTIONS, "-o", str(tmp_path)]
    with pytest.raises(SystemExit) as exited:
        main(main_arguments)
    assert not exited.value.code, capsys.readouterr().err
    planned = json.loads((tmp_path / "plan.json").read_text())
    lists = json.loads((tmp_path / "static-assignment.json").read_text())["members"]
    assert planned["current"]["loads"] != planned["planned"]["loads"]
    subscribed = {topic for topics in lists.values() for topic in topics}
    counts = {
        topic: 1 + max(max(numbers.get(topic, [-1])) for numbers in lists.values())
        for topic in subscribed
    }
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(counts)
        partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
        admin.produce(dict.fromkeys(partitions, 1))
        read = {
            member: _read(cluster.bootstrap, member, topics) for member, topics in lists.items()
        }
    assert {member: sum(seen.values()) for member, seen in read.items()} == planned["planned"][
        "loads"
    ]
    assert sum(read.values(), Counter()) == Counter(partitions)


def _run(*arguments):
    with pytest.raises(SystemExit) as exited:
        main([str(argument) for argument in arguments])
    assert not exited.value.code


def test_a_plan_with_at_most_ten_moves_has_the_promised_loads(tmp_path):
    # The range assignor gives the first member 40 of 100 partitions. A balanced group needs 15
    # moves; with ten moves, the minimum of the maximum load is 30.
    counts = {f"topic-{number:02}": 5 for number in range(20)}
    partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(counts)
        admin.produce(dict.fromkeys(partitions, 1))
        live = RunningGroup("pods", cluster.bootstrap, admin, counts)
        stack.callback(live.close)
        profiles = [
            Profile(client=f"pod-{number}", topics=tuple(counts), assignor="range")
            for number in range(4)
        ]
        live.join(*profiles)
        view = live.await_stable()
        file = tmp_path / "group.json"
        _run("import", "--bootstrap-server", cluster.bootstrap, "--group", "pods", "-o", file)
        _run("plan", file, "--max-moves", "10", "-o", tmp_path / "plan")
        for profile in profiles:
            live.leave(profile.client)
        lists = json.loads((tmp_path / "plan/static-assignment.json").read_text())["members"]
        read = {
            member: _read(cluster.bootstrap, member, topics) for member, topics in lists.items()
        }
    planned = json.loads((tmp_path / "plan/plan.json").read_text())
    owner = {tp: member.id for member in view.members.values() for tp in member.assigned}
    assert planned["makespan"] == {"value": 30, "bound": 30}
    assert {member: len(seen) for member, seen in read.items()} == planned["planned"]["loads"]
    assert sum(read.values(), Counter()) == Counter(partitions)
    moved = [tp for member, seen in read.items() for tp in seen if owner[tp] != member]
    assert len(moved) == planned["movement"] == 10


def test_java_consumers_read_exactly_the_partitions_of_the_static_assignment():
    found = plan(NAMED_GROUPS["E"].group)
    lists = static_assignment(found)["members"]
    counts = {topic.name: topic.partitions for topic in found.group.topics}
    partitions = {(topic, number) for topic, count in counts.items() for number in range(count)}
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(counts)
        admin.produce(dict.fromkeys(partitions, 1))
        read = {member: _read_with_java(cluster.bootstrap, lists[member]) for member in lists}
    assert read == {
        member: {(topic, number) for topic, numbers in topics.items() for number in numbers}
        for member, topics in lists.items()
    }
    assert set().union(*read.values()) == partitions


def _read_with_java(bootstrap, topics):
    """Return the partitions of which a Java consumer reads records after ``assign``."""
    bytes_of = JClass("org.apache.kafka.common.serialization.ByteArrayDeserializer")
    settings = {"bootstrap.servers": bootstrap, "group.id": "plan", "auto.offset.reset": "earliest"}
    consumer = JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(
        java_map(settings), bytes_of(), bytes_of()
    )
    chosen = JClass("java.util.ArrayList")()
    partition = JClass("org.apache.kafka.common.TopicPartition")
    for topic, numbers in topics.items():
        for number in numbers:
            chosen.add(partition(topic, number))
    seen = set()
    try:
        consumer.assign(chosen)
        deadline = time.monotonic() + 60
        while len(seen) < chosen.size() and time.monotonic() < deadline:
            for record in consumer.poll(JClass("java.time.Duration").ofMillis(200)):
                seen.add((str(record.topic()), int(record.partition())))
    finally:
        consumer.close()
    return seen


def _read(bootstrap: str, member: str, topics: dict[str, list[int]]) -> Counter[tuple[str, int]]:
    """Read all messages of a static assignment."""
    partitions = [
        TopicPartition(topic, number, 0) for topic, numbers in topics.items() for number in numbers
    ]
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "plan",
        "client.id": member,
        "enable.auto.commit": False,
        "enable.partition.eof": False,
    }
    seen: Counter[tuple[str, int]] = Counter()
    with closing(Consumer(settings)) as consumer:
        consumer.assign(partitions)
        while len(seen) < len(partitions):
            messages = consumer.consume(num_messages=len(partitions), timeout=20)
            assert messages, (
                f"{member} received nothing from {len(partitions) - len(seen)} partitions"
            )
            for message in messages:
                assert message.error() is None, message.error()
                seen[message.topic(), message.partition()] += 1
    return seen
