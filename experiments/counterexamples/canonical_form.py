"""Which groups are one kind: those that differ by names and order alone.

Assignors do go by names and order, so a group and its kin may fare differently. The kind is
for counting; the groups that a hunt shows keep names under which they fall short.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import permutations, product
from math import factorial, prod

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

_MOST_ORDERS = 5_040

# Everything about a topic, members given by their rank or by their place in an order.
_Described = tuple[object, ...]


def canonical_form(group: Group) -> str:
    """Describe a group but for the names and the order of members, topics and partitions.

    Two groups with the same description are the same up to names. The reverse holds
    too, but for groups of many members that are very much alike, which have too many orders
    to try them all.

    Parameters
    ----------
    group
        The group. Its generations count by their order alone.

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
    return min(_text(_described(group, order)) for order in _orders(group))


def short_name(kind: str) -> str:
    """Name a kind in 12 characters."""
    return sha256(kind.encode()).hexdigest()[:12]


def with_canonical_names(group: Group, still: Callable[[Group], bool]) -> Group:
    """Give members and topics plain names, and owners one generation, if that may be.

    Parameters
    ----------
    group
        The group.
    still
        What must hold of the result. The group itself is returned where it holds of no
        tidier one.
    """
    owners = [member for member in group.members if len(member.owned)]
    if len({member.generation for member in owners}) == 1:
        members = tuple(
            replace(member, generation=1 if len(member.owned) else -1) for member in group.members
        )
        plain = replace(group, members=members)
        group = plain if plain == group or still(plain) else group
    by_size = sorted(group.topics, key=lambda topic: (-topic.partitions, topic.name))
    by_name = sorted(group.topics, key=lambda topic: topic.name)
    for order in (min(_orders(group), key=lambda o: _text(_described(group, o))), None):
        for topics in (by_size, by_name):
            candidate = renamed(group, members=order or _by_id(group), topics=topics)
            if still(candidate):
                return candidate
    return group


def renamed(group: Group, *, members: Sequence[int], topics: Sequence[Topic]) -> Group:
    """Call members c0, c1, ... and topics t0, t1, ... in the orders given, and put them so."""
    names = {topic.name: f"t{index}" for index, topic in enumerate(topics)}
    return Group(
        topics=tuple(replace(topic, name=names[topic.name], id=None) for topic in topics),
        members=tuple(
            _renamed_member(group.members[index], f"c{place}", names)
            for place, index in enumerate(members)
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


def _by_id(group: Group) -> tuple[int, ...]:
    return tuple(sorted(range(len(group.members)), key=lambda index: group.members[index].id))


def _orders(group: Group) -> Iterator[tuple[int, ...]]:
    """Orders of the members that respect their ranks; one of them if there are too many."""
    classes: dict[int, list[int]] = defaultdict(list)
    for index, rank in enumerate(_refined(group)):
        classes[rank].append(index)
    runs = [classes[rank] for rank in sorted(classes)]
    if prod(factorial(len(run)) for run in runs) > _MOST_ORDERS:
        yield tuple(index for run in runs for index in run)
        return
    for chosen in product(*(permutations(run) for run in runs)):
        yield tuple(index for run in chosen for index in run)


def _refined(group: Group) -> list[int]:
    """Rank members by what can be said of them without names, until no more can be told."""
    ranks = [0] * len(group.members)
    while True:
        described = _topics(group, ranks)
        texts = [
            _text((rank, _details(group, index), sorted(_seen(described, group, index), key=_text)))
            for index, rank in enumerate(ranks)
        ]
        table = {text: number for number, text in enumerate(sorted(set(texts)))}
        finer = [table[text] for text in texts]
        if len(set(finer)) == len(set(ranks)):
            return finer
        ranks = finer


def _seen(described: dict[str, _Described], group: Group, index: int) -> list[_Described]:
    member = group.members[index]
    owned = [tp.topic for tp in member.owned]
    names = dict.fromkeys([*member.subscription, *owned])
    return [(described[name], name in member.subscription, owned.count(name)) for name in names]


def _described(group: Group, order: tuple[int, ...]) -> _Described:
    place = [0] * len(order)
    for position, index in enumerate(order):
        place[index] = position
    return (
        [_details(group, index) for index in order],
        sorted(_topics(group, place).values(), key=_text),
    )


def _topics(group: Group, marks: Sequence[int]) -> dict[str, _Described]:
    """Describe every topic that is somehow mentioned, members by their marks."""
    claims: dict[TopicPartition, list[int]] = defaultdict(list)
    consumers: dict[str, list[int]] = defaultdict(list)
    for index, member in enumerate(group.members):
        for tp in member.owned:
            claims[tp].append(marks[index])
        for name in member.subscription:
            consumers[name].append(marks[index])
    table = group.topic_table()
    names = dict.fromkeys([*table, *consumers, *(tp.topic for tp in claims)])
    numbers: dict[str, set[int]] = defaultdict(set)
    for tp in claims:
        numbers[tp.topic].add(tp.partition)
    described: dict[str, _Described] = {}
    for name in names:
        topic = table.get(name)
        known = range(topic.partitions if topic else 0)
        partitions = [
            (
                number in known,
                sorted(claims.get(TopicPartition(name, number), ())),
                topic.weights[number] if topic and topic.weights and number in known else None,
                topic.racks[number] if topic and topic.racks and number in known else None,
            )
            for number in sorted({*known, *numbers[name]})
        ]
        described[name] = (
            topic is not None,
            sorted(consumers[name]),
            sorted(partitions, key=_text),
        )
    return described


def _details(group: Group, index: int) -> _Described:
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


def _text(described: object) -> str:
    return json.dumps(described, separators=(",", ":"))
