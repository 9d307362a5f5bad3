"""Random walk over groups that can find smaller counterexamples than shrinking alone."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from kassay.experiments.counterexamples.shrinking import Predicate
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import ownership
from kassay.reference.model.topic_partitions import Partitions

NO_MEMBER = -1
_MUTATIONS_PER_STEP = (1, 1, 1, 2, 2, 3, 4)


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


def random_walk(group: Group, fails: Predicate, *, steps: int, seed: str) -> Group:
    """Apply random mutations that keep ``fails`` true and do not increase the group's size.

    Shrinking ends when no single removal is possible. The walk combines several mutations per
    step, also of owners, names and subscriptions, and accepts a group of equal size. The walk uses
    subscriptions and owners only; if ``fails`` needs other data, the walk returns the group.
    """
    rng = Random(seed)  # noqa: S311
    current = MutableGroup.of(group)
    current.remove_unused()
    if not current.owners or not fails(current.group()):
        return group
    for _ in range(steps):
        candidate = current.copy()
        for _ in range(rng.choice(_MUTATIONS_PER_STEP)):
            mutate(candidate, rng)
            candidate.remove_unused()
        if candidate.owners and candidate.size <= current.size and fails(candidate.group()):
            current = candidate
    return current.group()


def mutate(group: MutableGroup, rng: Random) -> None:
    """Apply one random mutation to a group, for example remove a partition or swap two members."""
    if len(group.subscriptions) > 1 and group.owners:
        (mutation,) = rng.choices(_MUTATIONS, weights=_WEIGHTS)
        mutation(group, rng)


def _remove_member(group: MutableGroup, rng: Random) -> None:
    group.remove_member(rng.randrange(len(group.subscriptions)), with_owned=rng.random() < 0.5)


def _remove_topic(group: MutableGroup, rng: Random) -> None:
    group.remove_topic(_random_topic(group, rng))


def _remove_partition(group: MutableGroup, rng: Random) -> None:
    column = group.owners[_random_topic(group, rng)]
    if column:
        column.pop(rng.randrange(len(column)))


def _remove_subscription(group: MutableGroup, rng: Random) -> None:
    member = rng.randrange(len(group.subscriptions))
    if len(group.subscriptions[member]) > 1:
        group.remove_subscription(member, rng.choice(sorted(group.subscriptions[member])))


def _add_subscription(group: MutableGroup, rng: Random) -> None:
    rng.choice(group.subscriptions).add(_random_topic(group, rng))


def _add_partition(group: MutableGroup, rng: Random) -> None:
    topic = _random_topic(group, rng)
    column = group.owners[topic]
    owner = rng.choice([*group.subscribers(topic), NO_MEMBER])
    column.insert(rng.randint(0, len(column)), owner)


def _transfer_partition(group: MutableGroup, rng: Random) -> None:
    """Move a partition from one random topic to another.

    The owner keeps the partition if the owner subscribes to the new topic.
    """
    source, target = _random_topic(group, rng), _random_topic(group, rng)
    if len(group.owners[source]) > 1:
        owner = group.owners[source].pop(rng.randrange(len(group.owners[source])))
        column = group.owners[target]
        kept = owner if owner in group.subscribers(target) else NO_MEMBER
        column.insert(rng.randint(0, len(column)), kept)


def _change_owner(group: MutableGroup, rng: Random) -> None:
    topic = _random_topic(group, rng)
    column = group.owners[topic]
    if column:
        owner = rng.choice([*group.subscribers(topic), NO_MEMBER])
        column[rng.randrange(len(column))] = owner


def _renumber_partitions(group: MutableGroup, rng: Random) -> None:
    rng.shuffle(group.owners[_random_topic(group, rng)])


def _swap_members(group: MutableGroup, rng: Random) -> None:
    one, two = (rng.randrange(len(group.subscriptions)) for _ in range(2))
    subscriptions = group.subscriptions
    subscriptions[one], subscriptions[two] = subscriptions[two], subscriptions[one]
    other = {one: two, two: one}
    group.owners = [[other.get(owner, owner) for owner in column] for column in group.owners]


def _swap_topics(group: MutableGroup, rng: Random) -> None:
    one, two = _random_topic(group, rng), _random_topic(group, rng)
    group.owners[one], group.owners[two] = group.owners[two], group.owners[one]
    other = {one: two, two: one}
    group.subscriptions = [
        {other.get(topic, topic) for topic in topics} for topics in group.subscriptions
    ]


def _random_topic(group: MutableGroup, rng: Random) -> int:
    return rng.randrange(len(group.owners))


_WEIGHT_OF_MUTATION: dict[Callable[[MutableGroup, Random], None], int] = {
    _remove_partition: 28,
    _change_owner: 15,
    _remove_member: 12,
    _transfer_partition: 8,
    _remove_subscription: 8,
    _swap_members: 6,
    _renumber_partitions: 6,
    _swap_topics: 5,
    _remove_topic: 4,
    _add_subscription: 4,
    _add_partition: 4,
}
_MUTATIONS, _WEIGHTS = tuple(_WEIGHT_OF_MUTATION), tuple(_WEIGHT_OF_MUTATION.values())
