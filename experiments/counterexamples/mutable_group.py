"""Group in mutable form for the random walk, with subscriptions and owners as lists."""

from dataclasses import dataclass

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import ownership
from kassay.reference.model.topic_partitions import Partitions

NO_MEMBER = -1


@dataclass(slots=True)
class MutableGroup:
    """Subscriptions and partition owners of a group, which the random walk changes in place."""

    subscriptions: list[set[int]]  # topics per member
    owners: list[list[int]]  # per topic the owner of each partition, or NO_MEMBER

    @classmethod
    def of(cls, group: Group) -> "MutableGroup":
        """Create a mutable copy of a group, with members and topics sorted by name."""
        order = sorted(range(len(group.members)), key=lambda index: group.members[index].id)
        member_rank = {index: rank for rank, index in enumerate(order)}
        topics = sorted(topic.name for topic in group.topics)
        topic_rank = {name: rank for rank, name in enumerate(topics)}
        owners = ownership(group).owners
        return cls(
            subscriptions=[
                {topic_rank[t] for t in group.members[index].subscription if t in topic_rank}
                for index in order
            ],
            owners=[
                [member_rank.get(owner, NO_MEMBER) for owner in owners[name].tolist()]
                for name in topics
            ],
        )

    def copy(self) -> "MutableGroup":
        """Return an independent copy of the mutable group."""
        return MutableGroup(list(map(set, self.subscriptions)), list(map(list, self.owners)))

    @property
    def size(self) -> tuple[int, int]:
        """Return the number of members and the number of partitions."""
        return len(self.subscriptions), sum(map(len, self.owners))

    def group(self) -> Group:
        """Convert the mutable group to a `Group` with generated names.

        The names sort like the indexes of members and topics.
        """
        owned: list[list[tuple[str, int]]] = [[] for _ in self.subscriptions]
        for topic, column in enumerate(self.owners):
            for number, owner in enumerate(column):
                if owner != NO_MEMBER:
                    owned[owner].append((f"t{topic:02}", number))
        return Group(
            topics=tuple(
                Topic(name=f"t{topic:02}", partitions=len(column))
                for topic, column in enumerate(self.owners)
            ),
            members=tuple(
                Member(
                    id=f"c{index:02}",
                    subscription=tuple(f"t{topic:02}" for topic in sorted(topics)),
                    owned=Partitions.of(owned[index]),
                    generation=1 if owned[index] else -1,
                )
                for index, topics in enumerate(self.subscriptions)
            ),
        )

    def subscribers(self, topic: int) -> list[int]:
        """Return the indexes of the members that subscribe to a topic."""
        return [index for index, topics in enumerate(self.subscriptions) if topic in topics]

    def remove_member(self, member: int, *, with_owned: bool) -> None:
        """Remove a member, and remove the member's partitions or make them unowned.

        The partitions are removed if ``with_owned`` is True.
        """
        self.subscriptions.pop(member)
        for topic, column in enumerate(self.owners):
            kept = [owner for owner in column if not (with_owned and owner == member)]
            self.owners[topic] = [
                NO_MEMBER if owner == member else owner - (owner > member) for owner in kept
            ]

    def remove_topic(self, topic: int) -> None:
        """Remove a topic and the subscriptions to it."""
        self.owners.pop(topic)
        self.subscriptions = [
            {other - (other > topic) for other in topics if other != topic}
            for topics in self.subscriptions
        ]

    def remove_subscription(self, member: int, topic: int) -> None:
        """Remove a subscription, and make the member's partitions of the topic unowned."""
        self.subscriptions[member].discard(topic)
        column = self.owners[topic]
        self.owners[topic] = [NO_MEMBER if owner == member else owner for owner in column]

    def remove_unused(self) -> None:
        """Remove topics without partitions or subscribers, and members without subscriptions."""
        for topic in reversed(range(len(self.owners))):
            if not self.owners[topic] or not self.subscribers(topic):
                self.remove_topic(topic)
        for member in reversed(range(len(self.subscriptions))):
            if not self.subscriptions[member]:
                self.remove_member(member, with_owned=False)
