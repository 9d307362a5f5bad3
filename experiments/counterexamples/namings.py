"""Names of a group: the canonical form without names, and all copies with permuted names.

Results of assignors depend on names and order, so that two groups of the same kind can have
different results. The canonical form is for counting kinds.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import permutations, product
from math import factorial, prod

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_MAX_ORDERS = 5_040

# Description without names; members appear by their rank or position.
_Description = tuple[object, ...]


def canonical_form(group: Group) -> str:
    """Describe a group independently of the names and order of its members and topics.

    Groups with equal descriptions are equal up to names. The reverse is true except for groups
    with too many equal members to try all of their orders. Generations are compared by order only.

    Examples
    --------
    >>> def two(first, second):
    ...     return Group(
    ...         topics=(Topic(name="t", partitions=2),),
    ...         members=(
    ...             Member(id="a", subscription=("t",), owned=[("t", n) for n in first]),
    ...             Member(id="b", subscription=("t",), owned=[("t", n) for n in second]),
    ...         ),
    ...     )
    >>> canonical_form(two([0], [])) == canonical_form(two([], [1]))
    True
    >>> canonical_form(two([0], [])) == canonical_form(two([0], [1]))
    False
    """
    return min(_to_text(_describe_group(group, order)) for order in _orders(group))


def short_name(canonical_form: str) -> str:
    """Return a hash of 12 characters that identifies a canonical form."""
    return sha256(canonical_form.encode()).hexdigest()[:12]


def renamed(group: Group, *, members: Sequence[int], topics: Sequence[Topic]) -> Group:
    """Rename the members to c0, c1, ... and the topics to t0, t1, ... in the given orders."""
    names = {topic.name: f"t{index}" for index, topic in enumerate(topics)}
    return Group(
        topics=tuple(replace(topic, name=names[topic.name], id=None) for topic in topics),
        members=tuple(
            _renamed_member(group.members[index], f"c{position}", names)
            for position, index in enumerate(members)
        ),
    )


def _renamed_member(member: Member, name: str, names: dict[str, str]) -> Member:
    return replace(
        member,
        id=name,
        subscription=tuple(sorted(names.get(topic, topic) for topic in member.subscription)),
        owned=Partitions.of(
            sorted((names.get(tp.topic, tp.topic), tp.partition) for tp in member.owned)
        ),
        streams=tuple(sorted((names.get(topic, topic), n) for topic, n in member.streams)),
    )


def _orders(group: Group) -> Iterator[tuple[int, ...]]:
    """Yield all orders of the members that are sorted by `_member_ranks`.

    Yield only one order if there are more than 5,040.
    """
    by_rank: dict[int, list[int]] = defaultdict(list)
    for index, rank in enumerate(_member_ranks(group)):
        by_rank[rank].append(index)
    classes = [by_rank[rank] for rank in sorted(by_rank)]
    if prod(factorial(len(members)) for members in classes) > _MAX_ORDERS:
        yield tuple(index for members in classes for index in members)
        return
    for chosen in product(*(permutations(members) for members in classes)):
        yield tuple(index for members in chosen for index in members)


def _member_ranks(group: Group) -> list[int]:
    """Rank the members of a group by their roles in the group, independently of names.

    The ranks are refined until they no longer change.
    """
    ranks = [0] * len(group.members)
    while True:
        topics = _describe_topics(group, ranks)
        texts = [
            _to_text(
                (
                    rank,
                    _describe_member(group, index),
                    sorted(_describe_references(group, index, topics), key=_to_text),
                )
            )
            for index, rank in enumerate(ranks)
        ]
        rank_of_text = {text: number for number, text in enumerate(sorted(set(texts)))}
        refined = [rank_of_text[text] for text in texts]
        if len(set(refined)) == len(set(ranks)):
            return refined
        ranks = refined


def _describe_group(group: Group, order: tuple[int, ...]) -> _Description:
    position = [0] * len(order)
    for place, index in enumerate(order):
        position[index] = place
    return (
        [_describe_member(group, index) for index in order],
        sorted(_describe_topics(group, position).values(), key=_to_text),
    )


def _describe_references(
    group: Group, index: int, topics: dict[str, _Description]
) -> list[_Description]:
    """Describe the topics that a member subscribes to or owns partitions of."""
    member = group.members[index]
    owned = [tp.topic for tp in member.owned]
    names = dict.fromkeys([*member.subscription, *owned])
    return [(topics[name], name in member.subscription, owned.count(name)) for name in names]


def _describe_topics(group: Group, marks: Sequence[int]) -> dict[str, _Description]:
    """Describe each topic by the members that subscribe to it or claim its partitions.

    ``marks`` are the ranks or positions that replace the names of the members.
    """
    claims: dict[TopicPartition, list[int]] = defaultdict(list)
    subscribers: dict[str, list[int]] = defaultdict(list)
    for index, member in enumerate(group.members):
        for tp in member.owned:
            claims[tp].append(marks[index])
        for name in member.subscription:
            subscribers[name].append(marks[index])
    table = group.topic_table()
    claimed_numbers: dict[str, set[int]] = defaultdict(set)
    for tp in claims:
        claimed_numbers[tp.topic].add(tp.partition)
    descriptions: dict[str, _Description] = {}
    for name in dict.fromkeys([*table, *subscribers, *claimed_numbers]):
        topic = table.get(name)
        existing = range(topic.partitions if topic else 0)
        partitions = [
            (
                number in existing,
                sorted(claims.get(TopicPartition(name, number), ())),
                topic.weights[number] if topic and topic.weights and number in existing else None,
                topic.racks[number] if topic and topic.racks and number in existing else None,
            )
            for number in sorted({*existing, *claimed_numbers[name]})
        ]
        descriptions[name] = (
            topic is not None,
            sorted(subscribers[name]),
            sorted(partitions, key=_to_text),
        )
    return descriptions


def _describe_member(group: Group, index: int) -> _Description:
    member = group.members[index]
    generations = sorted({m.generation for m in group.members if len(m.owned)})
    return (
        generations.index(member.generation) if len(member.owned) else None,
        member.instance_id is not None,
        member.rack,
        member.capacity,
        member.protocol_version,
        member.sub_generation,
        member.user_data,
        sorted(number for _, number in member.streams),
    )


def _to_text(description: object) -> str:
    return json.dumps(description, separators=(",", ":"))


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
