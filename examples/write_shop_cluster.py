"""Write ``examples/shop-cluster``: captures of an invented cluster of an online shop.

``python -m examples.write_shop_cluster [DIRECTORY]`` writes the output that Kafka's
command-line tools would print for six groups with 40 members on 18 pods. The assignors of the ports
assign the partitions. The lag follows from the traffic and from the throughput of a member.
"""

import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kassay import Assignment, Group, Member, Topic
from kassay.reference.assignors import assign
from tests.experiments.sources import layouts
from tests.experiments.sources.layouts import MemberLine, OffsetLine, StateLine

SHOP_CLUSTER = Path(__file__).with_name("shop-cluster")
TOPICS = {
    "orders.created": 32,
    "orders.paid": 32,
    "orders.shipped": 20,
    "orders.returned": 10,
    "catalog.items": 30,
    "catalog.prices": 30,
    "catalog.stock": 18,
    "web.clicks": 64,
    "web.sessions": 32,
    "billing.invoices": 20,
    "billing.payments": 10,
    "audit.events": 2,
}
BROKERS = 6
REPLICAS = 3
SECONDS = 3600
"""Time in seconds in which members with too much traffic fall behind."""
MEAN_RATE = 40
"""Mean number of records per second and partition."""


@dataclass(frozen=True)
class Deployment:
    """A group, the pods of its members and the throughput of each member.

    The addresses of the pods are in the subnet 10.42.{subnet}.0.
    """

    group: str
    assignor: str
    topics: tuple[str, ...]
    pods: int
    threads: int
    subnet: int
    capacity: int
    epoch: int | None = None

    def members(self, random: Random) -> dict[str, tuple[str, str]]:
        """Return host and client id of each member id."""
        members = {}
        for pod in range(self.pods):
            for thread in range(self.threads):
                client = f"{self.group}-{pod}-{thread}"
                id = uuid.UUID(int=random.getrandbits(128), version=4)
                # The broker creates the member ids of the consumer protocol without client id.
                member = f"{client}-{id}" if self.epoch is None else str(id)
                members[member] = (f"/10.42.{self.subnet}.{11 + 7 * pod}", client)
        return members


def _topics(area: str) -> tuple[str, ...]:
    return tuple(topic for topic in TOPICS if topic.startswith(area))


DEPLOYMENTS = (
    Deployment("orders", "range", _topics("orders."), 4, 3, 1, 350),
    Deployment("catalog", "cooperative-sticky", _topics("catalog."), 4, 2, 2, 700),
    Deployment("clicks", "uniform", _topics("web."), 4, 2, 3, 800, epoch=41),
    Deployment("invoicing", "range", _topics("billing."), 3, 2, 4, 220),
    Deployment("fraud", "sticky", ("orders.paid", "web.sessions"), 3, 1, 5, 1500),
    Deployment("audit", "roundrobin", _topics("audit."), 3, 1, 4, 400),
)


def write_captures(directory: Path) -> None:
    """Write the four captures of the cluster."""
    random = Random(2026)  # noqa: S311
    rates = {
        (topic, number): MEAN_RATE * random.uniform(0.8, 1.2)
        for topic, count in TOPICS.items()
        for number in range(count)
    }
    texts = {"offsets": "", "members": "", "state": ""}
    for deployment in DEPLOYMENTS:
        for name, text in _captures(deployment, rates, random).items():
            texts[name] += text
    texts["topics"] = _topic_descriptions(random)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / f"{name}.txt").write_text(text)


def _captures(
    deployment: Deployment, rates: dict[tuple[str, int], float], random: Random
) -> dict[str, str]:
    clients = deployment.members(random)
    assignment = _assignment(deployment, tuple(clients))
    offsets, members = [], []
    for member, (host, client) in clients.items():
        owned = assignment[member]
        traffic = sum(rates[partition] for partition in owned)
        unread = max(0.0, 1 - deployment.capacity / traffic) if owned else 0.0
        for topic, number in owned:
            lag = int(rates[topic, number] * unread * SECONDS) + random.randrange(40)
            end = random.randrange(10**7, 10**8)
            offsets.append(
                OffsetLine(deployment.group, topic, number, end - lag, end, member, host, client)
            )
        lists = {topic: [] for topic, _ in owned}
        for topic, number in owned:
            lists[topic].append(number)
        shown = tuple((topic, tuple(sorted(numbers))) for topic, numbers in sorted(lists.items()))
        epoch = "-" if deployment.epoch is None else deployment.epoch
        target = () if deployment.epoch is None else shown
        members.append(
            MemberLine(deployment.group, member, None, host, client, shown, epoch, target)
        )
    random.shuffle(members)
    state = StateLine(
        deployment.group, "10.42.0.3:9092", 3, deployment.assignor, "Stable", len(members), None
    )
    return {
        "offsets": layouts.offsets_adaptive(offsets),
        "members": layouts.members_verbose_4(members, upgraded=False),
        "state": layouts.state(state, verbose=False),
    }


def _assignment(deployment: Deployment, members: tuple[str, ...]) -> Assignment:
    topics = tuple(Topic(name=name, partitions=TOPICS[name]) for name in deployment.topics)
    joined = tuple(Member(id=member, subscription=deployment.topics) for member in members)
    return assign(Group(topics=topics, members=joined), deployment.assignor)


def _topic_descriptions(random: Random) -> str:
    """Return the output of ``kafka-topics.sh --describe``."""
    text = ""
    for topic, count in TOPICS.items():
        text += f"Topic: {topic}\tPartitionCount: {count}\tReplicationFactor: {REPLICAS}\tConfigs: "
        text += "min.insync.replicas=2\n"
        first = random.randrange(BROKERS)
        for number in range(count):
            brokers = ",".join(str((first + number + i) % BROKERS + 1) for i in range(REPLICAS))
            text += f"\tTopic: {topic}\tPartition: {number}\tLeader: {brokers[0]}\t"
            text += f"Replicas: {brokers}\tIsr: {brokers}\n"
    return text


if __name__ == "__main__":
    write_captures(Path(sys.argv[1]) if sys.argv[1:] else SHOP_CLUSTER)
