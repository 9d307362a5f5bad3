"""Example of a user-defined assignor: each partition to the least loaded subscriber.

Topics with few subscribers come first. Owned partitions are ignored. Use it as a function,
``--assignor python:examples/assignors/least_loaded.py:assign``, or as a command that needs
nothing of kassay, ``--assignor 'cmd:python examples/assignors/least_loaded.py'``.
"""

import json
import sys
from collections.abc import Mapping, Sequence


def assign_least_loaded(
    topics: Mapping[str, int], subscriptions: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[str, int]]]:
    """Assign the partitions of topics, given as counts, to members with subscriptions."""
    assignment: dict[str, list[tuple[str, int]]] = {member: [] for member in subscriptions}
    subscribers = {
        topic: sorted(member for member, names in subscriptions.items() if topic in names)
        for topic in topics
    }
    for topic in sorted(topics, key=lambda name: (len(subscribers[name]), name)):
        for partition in range(topics[topic] if subscribers[topic] else 0):
            least_loaded = min(subscribers[topic], key=lambda member: len(assignment[member]))
            assignment[least_loaded].append((topic, partition))
    return assignment


def assign(group):
    """Assign the partitions of a `kassay.Group`."""
    return assign_least_loaded(
        {topic.name: topic.partitions for topic in group.topics},
        {member.id: member.subscription for member in group.members},
    )


def assign_document(document):
    """Assign the partitions of a group document."""
    return assign_least_loaded(
        {
            name: value if isinstance(value, int) else value["partitions"]
            for name, value in document["topics"].items()
        },
        {member["id"]: member["topics"] for member in document["members"]},
    )


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(assign_document(json.loads(line))), flush=True)  # noqa: T201
