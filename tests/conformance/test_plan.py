"""Execution of plans on a real broker."""

import json
from collections import Counter
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from kassay.experiments.cli import main
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup

pytestmark = pytest.mark.kafka


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
