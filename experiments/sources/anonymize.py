"""Anonymize groups: replace names of topics, members and hosts by numbered names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kassay.experiments.sources.recognise_library import LIBRARIES
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.java.hash_codes import utf16_key
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.group_annotations import Client
from kassay.reference.model.topic_partitions import Partitions

PUBLIC_NAMES = LIBRARIES | frozenset(ASSIGNORS)
"""Names of client libraries and assignors that stay."""

NewNames = Mapping[str, Mapping[str, str]]
"""New name by old name, for each kind of name (topic, member, host, ...).

The new names of a kind have the same order as the old ones (``String.compareTo``), so that
assignors that sort names return the same assignment. The order of Java's hash codes and of
topic ids changes.
"""


def anonymize(groups: Sequence[Group]) -> tuple[list[Group], NewNames]:
    """Replace all names in groups by numbered names, and remove topic ids and notes.

    Numbers (partitions, weights, generations, capacities) stay.

    Examples
    --------
    >>> member = Member(id="payments-1", subscription=("cards",), client=Client(host="10.0.0.7"))
    >>> group = Group(topics=(Topic(name="cards", partitions=2),), members=(member,), id="bank")
    >>> [anonymous], names = anonymize([group])
    >>> anonymous.id, anonymous.members[0].id, anonymous.members[0].client.host
    ('group-1', 'member-1', 'host-1')
    >>> names["topic"]
    {'cards': 'topic-1'}
    """
    names = {kind: _numbered(kind, found) for kind, found in _collect(groups).items()}
    return [_rename_group(group, names) for group in groups], names


def _collect(groups: Iterable[Group]) -> dict[str, set[str]]:
    kinds = ("group", "topic", "member", "instance", "rack", "client", "host", "library")
    found: dict[str, set[str | None]] = {kind: set() for kind in (*kinds, "assignor")}
    for group in groups:
        found["group"].add(group.id)
        found["assignor"].add(group.status.assignor)
        for topic in group.topics:
            found["topic"].add(topic.name)
            found["rack"].update(rack for racks in topic.racks or () for rack in racks)
        for member in group.members:
            found["topic"].update(member.subscription)
            found["topic"].update(topic for topic, _ in (*member.owned, *(member.target or ())))
            found["topic"].update(topic for topic, _ in member.streams)
            found["member"].add(member.id)
            found["instance"].add(member.instance_id)
            found["rack"].add(member.rack)
            found["client"].add(member.client.id)
            found["host"].add(member.client.host)
            found["library"].add(member.client.library)
    return {kind: {name for name in names if name is not None} for kind, names in found.items()}


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    ordered = sorted(names, key=utf16_key)
    width = len(str(len(ordered)))
    table = {name: f"{kind}-{number:0{width}}" for number, name in enumerate(ordered, 1)}
    if kind in ("assignor", "library"):
        return {name: name if name in PUBLIC_NAMES else new for name, new in table.items()}
    return table


def _rename_group(group: Group, names: NewNames) -> Group:
    assignor = _new(names, "assignor", group.status.assignor)
    return replace(
        group,
        id=_new(names, "group", group.id),
        topics=tuple(_rename_topic(topic, names) for topic in group.topics),
        members=tuple(_rename_member(member, names) for member in group.members),
        notes=(),
        status=replace(group.status, assignor=assignor),
    )


def _rename_topic(topic: Topic, names: NewNames) -> Topic:
    racks = topic.racks
    if racks is not None:
        racks = tuple(tuple(_new(names, "rack", rack) for rack in row) for row in racks)
    return replace(topic, name=names["topic"][topic.name], racks=racks, id=None)


def _rename_member(member: Member, names: NewNames) -> Member:
    topics = names["topic"]
    client = member.client
    return replace(
        member,
        id=names["member"][member.id],
        subscription=tuple(topics[topic] for topic in member.subscription),
        owned=_rename_partitions(member.owned, topics),
        target=None if member.target is None else _rename_partitions(member.target, topics),
        streams=tuple((topics[topic], count) for topic, count in member.streams),
        instance_id=_new(names, "instance", member.instance_id),
        rack=_new(names, "rack", member.rack),
        client=Client(
            id=_new(names, "client", client.id),
            host=_new(names, "host", client.host),
            library=_new(names, "library", client.library),
        ),
    )


def _rename_partitions(partitions: Partitions, topics: Mapping[str, str]) -> Partitions:
    return Partitions.of((topics[topic], number) for topic, number in partitions)


def _new(names: NewNames, kind: str, name: str | None) -> str | None:
    return None if name is None else names[kind][name]
