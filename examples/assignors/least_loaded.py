"""An assignor to put on trial: each partition to the least loaded member that may have it.

Topics that few members consume are dealt first. It remembers nothing, so it moves a lot.
As a function: ``--assignor-python examples/assignors/least_loaded.py:assign``; as a command,
which needs nothing of kassay: ``--assignor-cmd 'python examples/assignors/least_loaded.py'``.
"""

import json
import sys
from collections.abc import Mapping, Sequence


def deal(
    topics: Mapping[str, int], subscriptions: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[str, int]]]:
    """Deal out the partitions of topics, by name and count, to members with subscriptions."""
    hands: dict[str, list[tuple[str, int]]] = {member: [] for member in subscriptions}
    takers = {
        topic: sorted(member for member, wanted in subscriptions.items() if topic in wanted)
        for topic in topics
    }
    for topic in sorted(topics, key=lambda name: (len(takers[name]), name)):
        for partition in range(topics[topic] if takers[topic] else 0):
            taker = min(takers[topic], key=lambda member: len(hands[member]))
            hands[taker].append((topic, partition))
    return hands


def assign(group):
    """Assign a `reference.Group`."""
    return deal(
        {topic.name: topic.partitions for topic in group.topics},
        {member.id: member.subscription for member in group.members},
    )


def answer(document):
    """Answer a group document, where a topic is a count or an object with one."""
    return deal(
        {
            name: value if isinstance(value, int) else value["partitions"]
            for name, value in document["topics"].items()
        },
        {member["id"]: member["topics"] for member in document["members"]},
    )


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)  # noqa: T201
