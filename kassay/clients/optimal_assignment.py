"""Optimal assignment of the members that a leader knows: minimum imbalance, then fewest moves."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve

TopicAssignments = list[tuple[str, list[int]]]
"""Numbers of the assigned partitions per topic, sorted."""

Weights = Mapping[str, Sequence[int | Sequence[int]]]
"""Weights of the partitions per topic: one integer each, or one per window."""

_LOG = logging.getLogger(__name__)


class ClientCluster(Protocol):
    """Metadata of the topics, as the leader knows them."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partition numbers of a topic, or None for an unknown topic."""


class Subscription(Protocol):
    """Decoded subscription of a member: topics, owned partitions and their generation."""

    @property
    def subscription(self) -> Iterable[str]:
        """Subscribed topics."""

    @property
    def partitions(self) -> Iterable[tuple[str, int]]:
        """Owned partitions."""

    @property
    def generation(self) -> int:
        """Generation of the owned partitions, -1 if unknown."""


def optimal_assignment(
    cluster: ClientCluster,
    subscriptions: Mapping[str, Subscription],
    *,
    seconds: float,
    weights: Weights | None = None,
) -> dict[str, TopicAssignments] | None:
    """Return the proven optimum, or None if it is not proven within the time limit.

    With weights, return the best assignment found within the time limit.

    None also means that the subscriptions are not a valid group, or that the numbers of the
    partitions of a topic have gaps. A message of the module's logger states the reason.

    Parameters
    ----------
    subscriptions
        Subscriptions by member id.
    seconds
        Time limit in seconds.
    weights
        Weights of the partitions per topic: one integer each, or one per window.
    """
    try:
        group = _group(cluster, subscriptions, weights or {})
        solution = solve(group, limits=SearchLimits(time=seconds))
    except KassayError as error:
        _LOG.warning("no optimal assignment: %s", error)
        return None
    if not (weights or solution.is_optimal) or solution.assignment is None:
        _LOG.warning("no optimal assignment within %g seconds", seconds)
        return None
    result: dict[str, TopicAssignments] = {}
    for member, pairs in solution.assignment.items():
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(pairs):
            by_topic.setdefault(topic, []).append(int(partition))
        result[member] = list(by_topic.items())
    return result


def _group(
    cluster: ClientCluster, subscriptions: Mapping[str, Subscription], weights: Weights
) -> Group:
    topics: dict[str, int] = {}
    for member in subscriptions.values():
        for topic in member.subscription:
            numbers = cluster.partitions_for_topic(topic)
            if numbers:
                topics[topic] = max(numbers) + 1
                if len(numbers) != topics[topic]:
                    raise KassayError(f"partitions of {topic!r} have gaps: {sorted(numbers)}")
    return Group(
        topics=tuple(_topic(name, topics[name], weights) for name in sorted(topics)),
        members=tuple(_member(id, subscriptions[id]) for id in sorted(subscriptions)),
    )


def _topic(name: str, partitions: int, weights: Weights) -> Topic:
    if not weights:
        return Topic(name, partitions)
    rows = [[each] if isinstance(each, int) else each for each in weights.get(name, ())]
    return Topic(name, partitions, profiles=tuple(map(tuple, rows)))


def _member(id: str, received: Subscription) -> Member:
    return Member(
        id=id,
        subscription=tuple(dict.fromkeys(received.subscription)),
        owned=Partitions.of(received.partitions),
        generation=max(received.generation, NO_GENERATION),
    )
