"""Execution of plans on a real broker."""

import json
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from kassay.experiments.cli import main
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_files import sticky_seed
from kassay.experiments.study.families.hand_picked_groups import NAMED_GROUPS
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.upstream import upstream_assign

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

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


@pytest.mark.parametrize("name", "DE")
def test_sticky_keeps_the_assignment_of_the_seed(name):
    group = NAMED_GROUPS[name].group
    found = plan(group)
    seed = sticky_seed(found)["members"]
    # The members have no other information than the seed.
    without_ownership = replace(
        group, members=tuple(replace(m, owned=(), generation=-1) for m in group.members)
    )
    with_seed = upstream_assign(without_ownership, "sticky", user_data=seed)
    assert with_seed.kind == "assigned"
    planned = {member: set(found.assignment[member]) for member in seed}
    assert {
        member: set(map(tuple, partitions)) for member, partitions in with_seed.lists.items()
    } == planned
    without_seed = upstream_assign(without_ownership, "sticky")
    assert {
        member: set(map(tuple, partitions)) for member, partitions in without_seed.lists.items()
    } != planned


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
