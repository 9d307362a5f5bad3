"""Anonymize groups: replace the names of topics, members and hosts by numbered names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kassay.experiments.sources.recognise_library import LIBRARIES
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.java_collections import utf16_key
from kassay.reference.model.group import ASSUMED, Client, Group, Member, Topic

PUBLIC_NAMES = LIBRARIES | frozenset(ASSIGNORS)
"""Names of client libraries and assignors that anonymization keeps."""

_KINDS = ["group", "topic", "member", "instance", "rack", "client", "host", "library", "assignor"]
_Rename = Callable[[str, str], str]
"""Function that returns the new name. Its arguments are the kind and the old name."""
NewNames = Mapping[str, Mapping[str, str]]
"""New name by old name, for each kind of name (topic, member, host, ...).

The new names of a kind have the same order as the old ones (``String.compareTo``), so that
assignors that sort names return the same assignment. The order of Java's hash codes and of
topic ids changes.
"""


def anonymize(groups: Sequence[Group]) -> tuple[list[Group], NewNames]:
    """Replace all names in groups by numbered names such as ``topic-1``.

    Numbers (partitions, weights, generations, capacities) do not change.
    """
    found: dict[str, set[str]] = {kind: set() for kind in _KINDS}

    def collect(kind: str, name: str) -> str:
        found[kind].add(name)
        return name

    for group in groups:
        rename_group(group, collect)
    names = {kind: _numbered(kind, old_names) for kind, old_names in found.items()}
    return [rename_group(group, lambda kind, name: names[kind][name]) for group in groups], names


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    ordered = sorted(names, key=utf16_key)
    width = len(str(len(ordered)))
    table = {name: f"{kind}-{number:0{width}}" for number, name in enumerate(ordered, 1)}
    if kind in ("assignor", "library"):
        return {name: name if name in PUBLIC_NAMES else new for name, new in table.items()}
    return table


def rename_group(group: Group, rename: _Rename) -> Group:
    """Replace all names in a group, and remove topic ids and units."""
    return replace(
        group,
        id=_optional(rename, "group", group.id),
        topics=tuple(_rename_topic(topic, rename) for topic in group.topics),
        members=tuple(_rename_member(member, rename) for member in group.members),
        notes=tuple(note for note in group.notes if note.startswith(ASSUMED)),
        weight_unit=None,
        status=replace(group.status, assignor=_optional(rename, "assignor", group.status.assignor)),
    )


def _rename_topic(topic: Topic, rename: _Rename) -> Topic:
    racks = topic.racks
    if racks is not None:
        racks = tuple(tuple(_optional(rename, "rack", rack) for rack in row) for row in racks)
    return replace(topic, name=rename("topic", topic.name), racks=racks, id=None)


def _rename_member(member: Member, rename: _Rename) -> Member:
    rename_topic, client = partial(rename, "topic"), member.client
    return replace(
        member,
        id=rename("member", member.id),
        subscription=tuple(map(rename_topic, member.subscription)),
        owned=member.owned.rename_topics(rename_topic),
        target=None if member.target is None else member.target.rename_topics(rename_topic),
        streams=tuple((rename_topic(topic), count) for topic, count in member.streams),
        instance_id=_optional(rename, "instance", member.instance_id),
        rack=_optional(rename, "rack", member.rack),
        client=Client(
            id=_optional(rename, "client", client.id),
            host=_optional(rename, "host", client.host),
            library=_optional(rename, "library", client.library),
        ),
    )


def _optional(rename: _Rename, kind: str, name: str | None) -> str | None:
    return None if name is None else rename(kind, name)
