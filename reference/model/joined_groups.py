"""Join groups that share hosts to one group, and split the joined group again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED, Group, Member

SEPARATOR = "/"
"""Separator of the group id and the name in a joined group; topics cannot contain it."""


def join_groups(groups: Sequence[Group]) -> Group:
    """Join groups to one group. Each group keeps its own members and topics.

    The name of each topic, member and instance gets the id of its group as a prefix. Hosts,
    racks, speeds and capacities stay.

    Raise InputError without groups, for missing or equal ids, or different sources of weights.
    """
    ids = [group.id or "" for group in groups]
    if not groups or "" in ids:
        raise InputError(
            f"to balance groups together, give at least one group, each with an id; got ids {ids}"
        )
    repeated = next((id for id in ids if ids.count(id) > 1), None)
    if repeated is not None:
        raise InputError(f"groups to balance together need different ids, got {repeated!r} twice")
    sources = {(group.weight_source, group.weight_unit) for group in groups}
    weighted = {any(topic.weights is not None for topic in group.topics) for group in groups}
    if len(sources) > 1 or len(weighted) > 1:
        raise InputError(
            "the groups to balance together have weights from different sources or in different "
            "units: give all groups weights from the same source (--weights)"
        )
    source, unit = sources.pop()
    return Group(
        id="+".join(ids),
        topics=tuple(
            replace(topic, name=_with_prefix(group.id, topic.name), id=None)
            for group in groups
            for topic in group.topics
        ),
        members=tuple(
            _joined_member(group.id, member) for group in groups for member in group.members
        ),
        weight_source=source,
        weight_unit=unit,
        notes=tuple(
            dict.fromkeys(note for one in groups for note in one.notes if note.startswith(ASSUMED))
        ),
    )


def split_group(group: Group) -> list[Group]:
    """Split a joined group into its groups. Return any other group unchanged."""
    ids = list(dict.fromkeys(_prefix(member.id) for member in group.members))
    if len(ids) < 2 or "" in ids or any(_prefix(topic.name) not in ids for topic in group.topics):
        return [group]
    for member in group.members:
        used = {*member.subscription, *member.owned.distinct_topics()}
        if any(_prefix(topic) != _prefix(member.id) for topic in used):
            return [group]
    return [
        replace(
            group,
            id=id,
            topics=tuple(
                replace(topic, name=_without_prefix(topic.name))
                for topic in group.topics
                if _prefix(topic.name) == id
            ),
            members=tuple(
                _rename_member(replace(member, target=None), _without_prefix)
                for member in group.members
                if _prefix(member.id) == id
            ),
        )
        for id in ids
    ]


def join_assignments(parts: Mapping[str, Assignment]) -> Assignment:
    """Join the assignments of several groups to one assignment of the joined group."""
    return Assignment(
        {
            _with_prefix(id, member): partitions.rename_topics(partial(_with_prefix, id))
            for id, assignment in parts.items()
            for member, partitions in assignment.items()
        }
    )


def _with_prefix(group: str | None, name: str) -> str:
    return f"{group}{SEPARATOR}{name}"


def _prefix(name: str) -> str:
    return name.partition(SEPARATOR)[0] if SEPARATOR in name else ""


def _without_prefix(name: str) -> str:
    return name.partition(SEPARATOR)[2]


def _joined_member(group: str | None, member: Member) -> Member:
    instance = member.instance_id
    return replace(
        _rename_member(member, partial(_with_prefix, group)),
        instance_id=None if instance is None else _with_prefix(group, instance),
    )


def _rename_member(member: Member, rename: Callable[[str], str]) -> Member:
    return replace(
        member,
        id=rename(member.id),
        subscription=tuple(map(rename, member.subscription)),
        owned=member.owned.rename_topics(rename),
        target=None if member.target is None else member.target.rename_topics(rename),
        streams=tuple((rename(topic), count) for topic, count in member.streams),
    )
