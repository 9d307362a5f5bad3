"""A plan is carried out on a real broker, and gives the loads that it promised."""

import json
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from kassay.experiments.cli import main
from kassay.experiments.planning import plan
from kassay.experiments.planning.plan_files import sticky_seed
from kassay.experiments.study.families.named_groups import NAMED_GROUPS
from tests.conformance.admin import administrator
from tests.conformance.broker import running_cluster
from tests.conformance.upstream import upstream_assign

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CAPTURE = "examples/captures/analytics-sticky"
SUBSCRIPTIONS = "examples/captures/subscriptions.json"


def test_consumers_that_take_the_planned_lists_carry_the_promised_loads(tmp_path, capsys):
    main_arguments = ["plan", CAPTURE, "--subscriptions", SUBSCRIPTIONS, "-o", str(tmp_path)]
    with pytest.raises(SystemExit) as leaving:
        main(main_arguments)
    assert not leaving.value.code, capsys.readouterr().err
    promised = json.loads((tmp_path / "plan.json").read_text())
    lists = json.loads((tmp_path / "static-assignment.json").read_text())["members"]
    assert promised["current"]["loads"] != promised["planned"]["loads"]
    subscribed = {topic for topics in lists.values() for topic in topics}
    counts = {
        topic: 1 + max(max(numbers.get(topic, [-1])) for numbers in lists.values())
        for topic in subscribed
    }
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(heap_mib=384))
        admin = stack.enter_context(administrator(cluster.bootstrap))
        admin.create_topics(counts)
        places = [(topic, number) for topic, count in counts.items() for number in range(count)]
        admin.produce(dict.fromkeys(places, 1))
        read = {
            member: _read(cluster.bootstrap, member, topics) for member, topics in lists.items()
        }
    assert {member: sum(seen.values()) for member, seen in read.items()} == promised["planned"][
        "loads"
    ]
    assert sum(read.values(), Counter()) == Counter(places)


@pytest.mark.parametrize("name", "DE")
def test_the_real_sticky_assignor_keeps_what_the_seed_tells_it(name):
    group = NAMED_GROUPS[name].group
    found = plan(group)
    seed = sticky_seed(found)["members"]
    # They know nothing but the seed.
    blank = replace(
        group, members=tuple(replace(m, owned=(), generation=-1) for m in group.members)
    )
    told = upstream_assign(blank, "sticky", user_data=seed)
    assert told.kind == "assigned"
    promised = {member: set(found.assignment[member]) for member in seed}
    assert {member: set(map(tuple, given)) for member, given in told.lists.items()} == promised
    untold = upstream_assign(blank, "sticky")
    assert {member: set(map(tuple, given)) for member, given in untold.lists.items()} != promised


def _read(bootstrap: str, member: str, topics: dict[str, list[int]]) -> Counter[tuple[str, int]]:
    """Read all messages of a static list, as a consumer that assigns itself does."""
    places = [
        TopicPartition(topic, number, 0) for topic, numbers in topics.items() for number in numbers
    ]
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "carried-out",
        "client.id": member,
        "enable.auto.commit": False,
        "enable.partition.eof": False,
    }
    seen: Counter[tuple[str, int]] = Counter()
    with closing(Consumer(settings)) as consumer:
        consumer.assign(places)
        while len(seen) < len(places):
            messages = consumer.consume(num_messages=len(places), timeout=20)
            assert messages, f"{member} waits in vain for {len(places) - len(seen)} partitions"
            for message in messages:
                assert message.error() is None, message.error()
                seen[message.topic(), message.partition()] += 1
    return seen
