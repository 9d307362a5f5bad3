"""Random walk over groups that can find smaller counterexamples than shrinking alone."""

from collections.abc import Callable
from random import Random

from kassay.experiments.counterexamples.mutable_group import NO_MEMBER, MutableGroup
from kassay.experiments.counterexamples.shrinking import Predicate
from kassay.reference.model.group import Group

_MUTATIONS_PER_STEP = (1, 1, 1, 2, 2, 3, 4)


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
