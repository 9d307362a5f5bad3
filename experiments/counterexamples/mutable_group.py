"""A group as something to scribble on: who consumes what, and who owns which partition."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import ownership
from kassay.reference.model.topic_partitions import Partitions

NO_MEMBER = -1


@dataclass(slots=True)
class MutableGroup:
    """A group without anything but subscriptions and owners, to be changed in place.

    Parameters
    ----------
    wanted
        For each member the topics that it consumes.
    owners
        For each topic the owner of each partition, or `NO_MEMBER`.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> draft = MutableGroup.of(NAMED_GROUPS["B"].group)
    >>> draft.wanted, draft.owners
    ([{0}, {0, 1, 2}, {0, 1, 2}], [[1], [2], [2]])
    >>> [member.owned.to_list() for member in draft.group().members][1]
    [TopicPartition(topic='t00', partition=0)]
    """

    wanted: list[set[int]]
    owners: list[list[int]]

    @classmethod
    def of(cls, group: Group) -> "MutableGroup":
        """Copy a group; members and topics in the order of their names."""
        members = sorted(range(len(group.members)), key=lambda index: group.members[index].id)
        topics = sorted(topic.name for topic in group.topics)
        place = {index: rank for rank, index in enumerate(members)}
        rank_of = {name: rank for rank, name in enumerate(topics)}
        held = ownership(group).owners
        return cls(
            wanted=[
                {rank_of[name] for name in group.members[index].subscription if name in rank_of}
                for index in members
            ],
            owners=[
                [place.get(owner, NO_MEMBER) for owner in held[name].tolist()] for name in topics
            ],
        )

    def copy(self) -> "MutableGroup":
        """Copy it, to be changed on its own."""
        return MutableGroup(
            [set(want) for want in self.wanted], [list(column) for column in self.owners]
        )

    @property
    def size(self) -> tuple[int, int]:
        """Members and partitions."""
        return len(self.wanted), sum(map(len, self.owners))

    def group(self) -> Group:
        """Return it as a group, with names that sort as the drafts' numbers do."""
        owned: list[list[tuple[str, int]]] = [[] for _ in self.wanted]
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
                    subscription=tuple(f"t{topic:02}" for topic in sorted(want)),
                    owned=Partitions.of(owned[index]),
                    generation=1 if owned[index] else -1,
                )
                for index, want in enumerate(self.wanted)
            ),
        )

    def consumers(self, topic: int) -> list[int]:
        """Members that consume a topic."""
        return [index for index, want in enumerate(self.wanted) if topic in want]

    def drop_member(self, member: int, *, with_owned: bool) -> None:
        """Leave a member out, with all that it owns or so that nobody owns it."""
        self.wanted.pop(member)
        for topic, column in enumerate(self.owners):
            kept = [owner for owner in column if not (with_owned and owner == member)]
            self.owners[topic] = [
                NO_MEMBER if owner == member else owner - (owner > member) for owner in kept
            ]

    def drop_topic(self, topic: int) -> None:
        """Leave a topic out; members that consumed nothing else go with it in `tidy`."""
        self.owners.pop(topic)
        self.wanted = [
            {other - (other > topic) for other in want if other != topic} for want in self.wanted
        ]

    def drop_wanted(self, member: int, topic: int) -> None:
        """End a subscription; what the member owned of the topic has no owner then."""
        self.wanted[member].discard(topic)
        column = self.owners[topic]
        self.owners[topic] = [NO_MEMBER if owner == member else owner for owner in column]

    def tidy(self) -> None:
        """Leave out topics that are empty or that nobody consumes, and idle members."""
        for topic in reversed(range(len(self.owners))):
            if not self.owners[topic] or not self.consumers(topic):
                self.drop_topic(topic)
        for member in reversed(range(len(self.wanted))):
            if not self.wanted[member]:
                self.drop_member(member, with_owned=False)


def change(draft: MutableGroup, rng: Random) -> None:
    """Make one change drawn at random: most take something away, the others keep the size."""
    if len(draft.wanted) > 1 and draft.owners:
        (chosen,) = rng.choices(_CHANGES, weights=_WEIGHTS)
        chosen(draft, rng)


def _topic(draft: MutableGroup, rng: Random) -> int:
    return rng.randrange(len(draft.owners))


def _lose_member(draft: MutableGroup, rng: Random) -> None:
    draft.drop_member(rng.randrange(len(draft.wanted)), with_owned=rng.random() < 0.5)


def _lose_topic(draft: MutableGroup, rng: Random) -> None:
    draft.drop_topic(_topic(draft, rng))


def _lose_partition(draft: MutableGroup, rng: Random) -> None:
    column = draft.owners[_topic(draft, rng)]
    if column:
        column.pop(rng.randrange(len(column)))


def _lose_subscription(draft: MutableGroup, rng: Random) -> None:
    member = rng.randrange(len(draft.wanted))
    if len(draft.wanted[member]) > 1:
        draft.drop_wanted(member, rng.choice(sorted(draft.wanted[member])))


def _win_subscription(draft: MutableGroup, rng: Random) -> None:
    rng.choice(draft.wanted).add(_topic(draft, rng))


def _win_partition(draft: MutableGroup, rng: Random) -> None:
    topic = _topic(draft, rng)
    column = draft.owners[topic]
    owner = rng.choice([*draft.consumers(topic), NO_MEMBER])
    column.insert(rng.randint(0, len(column)), owner)


def _shift_partition(draft: MutableGroup, rng: Random) -> None:
    """Take a partition from one topic and give it to another, with its owner if that may be."""
    giver, taker = _topic(draft, rng), _topic(draft, rng)
    if len(draft.owners[giver]) > 1:
        owner = draft.owners[giver].pop(rng.randrange(len(draft.owners[giver])))
        column = draft.owners[taker]
        kept = owner if owner in draft.consumers(taker) else NO_MEMBER
        column.insert(rng.randint(0, len(column)), kept)


def _change_owner(draft: MutableGroup, rng: Random) -> None:
    topic = _topic(draft, rng)
    column = draft.owners[topic]
    if column:
        owner = rng.choice([*draft.consumers(topic), NO_MEMBER])
        column[rng.randrange(len(column))] = owner


def _renumber(draft: MutableGroup, rng: Random) -> None:
    rng.shuffle(draft.owners[_topic(draft, rng)])


def _swap_members(draft: MutableGroup, rng: Random) -> None:
    one, two = (rng.randrange(len(draft.wanted)) for _ in range(2))
    draft.wanted[one], draft.wanted[two] = draft.wanted[two], draft.wanted[one]
    other = {one: two, two: one}
    draft.owners = [[other.get(owner, owner) for owner in column] for column in draft.owners]


def _swap_topics(draft: MutableGroup, rng: Random) -> None:
    one, two = _topic(draft, rng), _topic(draft, rng)
    draft.owners[one], draft.owners[two] = draft.owners[two], draft.owners[one]
    other = {one: two, two: one}
    draft.wanted = [{other.get(topic, topic) for topic in want} for want in draft.wanted]


_Change = Callable[[MutableGroup, Random], None]
_MIX: dict[_Change, int] = {
    _lose_partition: 28,
    _change_owner: 15,
    _lose_member: 12,
    _shift_partition: 8,
    _lose_subscription: 8,
    _swap_members: 6,
    _renumber: 6,
    _swap_topics: 5,
    _lose_topic: 4,
    _win_subscription: 4,
    _win_partition: 4,
}
_CHANGES, _WEIGHTS = tuple(_MIX), tuple(_MIX.values())
