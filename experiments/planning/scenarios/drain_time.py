"""Time in which the members of a group read its current lag."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.metrics import participants
from kassay.reference.model.topic_partitions import TopicPartition

PartitionValues = Mapping[TopicPartition, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Lag and message rates of a group.

    Parameters
    ----------
    lag
        Messages to read, per partition.
    produced
        Messages per second that are appended to each partition.
    consumed
        Messages per second that a member of speed 1 reads at most.
    """

    lag: PartitionValues
    produced: PartitionValues
    consumed: Fraction

    def drain_seconds(self, group: Group, assignment: Assignment) -> Fraction | None:
        """Return the seconds until each member has read its lag, or None if a member never does.

        Each member reads its own partitions at its maximum rate, while messages are appended.

        Examples
        --------
        >>> from kassay.reference.model.group import Member, Topic
        >>> members = (Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",)))
        >>> group = Group(topics=(Topic(name="t", partitions=2),), members=members)
        >>> backlog = spread_backlog(group, lag=600, produced=Fraction(10), consumed=Fraction(8))
        >>> backlog.drain_seconds(group, Assignment({"a": [("t", 0), ("t", 1)]}))
        >>> backlog.drain_seconds(group, Assignment({"a": [("t", 0)], "b": [("t", 1)]}))
        Fraction(100, 1)
        """
        members = group.member_table()
        longest = Fraction(0)
        for member in participants(group):
            partitions = assignment.get(member, ())
            lag = sum((self.lag[tp] for tp in partitions), Fraction(0))
            produced = sum((self.produced[tp] for tp in partitions), Fraction(0))
            spare = self.consumed * members[member].speed - produced
            if spare < 0 or (lag and not spare):
                return None
            if lag:
                longest = max(longest, lag / spare)
        return longest


def spread_backlog(
    group: Group,
    *,
    lag: int | PartitionValues,
    produced: Fraction,
    consumed: Fraction,
) -> Backlog:
    """Divide the total lag and the total rate of a group among its consumed partitions.

    A total lag is divided equally. The rate is divided in proportion to the weights if they are
    measured rates, otherwise equally.
    """
    subscribers = group.subscribers()
    weights = {
        TopicPartition(topic.name, number): topic.weight(number)
        if group.weight_source is WeightSource.RATE
        else 1
        for topic in group.topics
        if subscribers[topic.name]
        for number in range(topic.partitions)
    }
    total = sum(weights.values()) or 1
    equal = Fraction(1, max(1, len(weights)))
    return Backlog(
        lag=dict.fromkeys(weights, lag * equal) if isinstance(lag, int) else lag,
        produced={tp: produced * weight / total for tp, weight in weights.items()},
        consumed=consumed,
    )


def lag_of(group: Group) -> dict[TopicPartition, Fraction]:
    """Return the lag of each partition in a group with lag as weight."""
    return {
        TopicPartition(topic.name, number): Fraction(topic.weight(number))
        for topic in group.topics
        for number in range(topic.partitions)
    }
