"""Cases of the exhaustive search: all small groups, and copies with permuted names."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

from kassay.experiments.counterexamples.canonical_form import renamed
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import Partitions, TopicPartition


def namings(group: Group) -> Iterator[Group]:
    """Yield a group, then copies with permuted member names, topic names and partition numbers.

    The group is small and has no contested claims, weights and racks. Equal copies
    are yielded once.

    Examples
    --------
    >>> from kassay.experiments.study.families.exhaustive_groups import exhaustive_groups
    >>> [sum(1 for _ in namings(g)) for g in exhaustive_groups(members=2, partitions=1)]
    [1, 2]
    """
    yield group
    seen = {_key(group)}
    for members in permutations(range(len(group.members))):
        for topics in permutations(group.topics):
            for candidate in _numberings(renamed(group, members=members, topics=topics)):
                key = _key(candidate)
                if key not in seen:
                    seen.add(key)
                    yield candidate


def _numberings(group: Group) -> Iterator[Group]:
    """Yield a copy of a group for every permutation of the partition numbers within topics."""
    owners: dict[TopicPartition, int] = {
        tp: index for index, member in enumerate(group.members) for tp in member.owned
    }
    owner_orders = [
        sorted(
            set(
                permutations(
                    owners.get(TopicPartition(topic.name, number), -1)
                    for number in range(topic.partitions)
                )
            )
        )
        for topic in group.topics
    ]
    for columns in product(*owner_orders):
        owned: list[list[tuple[str, int]]] = [[] for _ in group.members]
        for topic, column in zip(group.topics, columns, strict=True):
            for number, owner in enumerate(column):
                if owner >= 0:
                    owned[owner].append((topic.name, number))
        members = tuple(
            replace(member, owned=Partitions.of(pairs))
            for member, pairs in zip(group.members, owned, strict=True)
        )
        yield replace(group, members=members)


def _key(group: Group) -> object:
    return (
        tuple((topic.name, topic.partitions) for topic in group.topics),
        tuple(
            (member.id, tuple(sorted(member.subscription)), tuple(sorted(member.owned)))
            for member in group.members
        ),
    )
