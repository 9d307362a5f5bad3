"""Names of a group: its kind without names, and all copies with permuted names.

Results of assignors depend on names and order, so that two groups of the same kind can have
different results.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import permutations, product
from typing import Any

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition


def group_kind(group: Group) -> str:
    """Return a hash of 12 digits that does not depend on the names and order of a group.

    It combines Weisfeiler-Lehman hashes of the graph of members, topics and partitions, one hash
    per marked member: without marks, some groups of 3 members and 4 partitions that differ have
    equal hashes. Generations are compared by order only.

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
    >>> group_kind(two([0], [])) == group_kind(two([], [1]))
    True
    >>> group_kind(two([0], [])) == group_kind(two([0], [1]))
    False
    """
    import networkx as nx  # noqa: PLC0415 - only a hunt needs it

    graph: nx.Graph[Any] = nx.Graph()
    for topic in group.topics:
        graph.add_node(topic.name, label="topic")
        for number in range(topic.partitions):
            weight = topic.weights[number] if topic.weights else None
            racks = topic.racks[number] if topic.racks else None
            partition = TopicPartition(topic.name, number)
            graph.add_node(partition, label=repr((weight, racks)))
            graph.add_edge(topic.name, partition)
    for index, member in enumerate(group.members):
        graph.add_node(index, label=repr(_member_label(group, member)))
        # Subscriptions and claims can refer to topics and partitions that do not exist.
        graph.add_edges_from((index, name) for name in member.subscription)
        for tp in member.owned:
            graph.add_edges_from(((index, tp), (tp, tp.topic)))
    labels = dict(graph.nodes(data="label", default="missing"))
    hashes = []
    for index in range(len(group.members)):
        nx.set_node_attributes(graph, labels | {index: f"{labels[index]} marked"}, "label")
        # Two steps lead from a member to the members with common topics.
        steps = 2 * len(group.members)
        hashes.append(nx.weisfeiler_lehman_graph_hash(graph, node_attr="label", iterations=steps))
    return sha256("".join(sorted(hashes)).encode()).hexdigest()[:12]


def _member_label(group: Group, member: Member) -> tuple[object, ...]:
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


def namings(group: Group) -> Iterator[Group]:
    """Yield a group, then copies with permuted member names, topic names and partition numbers.

    The group is small and has no contested claims, weights and racks. Equal copies
    are yielded once.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import exhaustive_groups
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
