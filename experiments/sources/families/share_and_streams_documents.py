"""Build documents of share groups and Streams groups from tables or descriptions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kassay.experiments.sources.families.group_tool_tables import FamilyMemberRow
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents.family_documents import (
    ASSUMED,
    FamilyDocument,
    Kind,
    parse_family_document,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_remarks import AssumedSubscriptions

_SUBSCRIPTIONS_NOTE = {
    AssumedSubscriptions.ASSIGNED: (
        f"{ASSUMED}each member subscribes only to the topics of its partitions"
    ),
    AssumedSubscriptions.EQUAL: f"{ASSUMED}each member subscribes to every topic of the group",
}
_COUNTS_NOTE = f"{ASSUMED}the highest partition of each topic is assigned"
_TASKS_NOTE = f"{ASSUMED}the highest task of each subtopology is assigned"
_STATE_NOTE = f"{ASSUMED}every subtopology has state"
_ROLES = ("active", "standby", "warmup")


def document_of_rows(
    group: str, rows: Sequence[FamilyMemberRow], options: ImportOptions
) -> FamilyDocument:
    """Build the document of a group from the rows of its members table.

    A share group gets the partition counts and subscriptions of the options, if there are any.
    """
    if rows[0].process is None:
        return _share_group_of_rows(group, rows, options)
    counts = _highest(row.assigned[role] for row in rows for role in _ROLES)
    standby = _most_copies(row.assigned["standby"] for row in rows)
    return _checked(
        {
            "kind": str(Kind.STREAMS_GROUP),
            "id": group,
            "notes": [_STATE_NOTE, _TASKS_NOTE, _standby_note(standby)],
            "num_standby_replicas": standby,
            "subtopologies": {
                name: {"partitions": count, "stateful": True}
                for name, count in sorted(counts.items())
            },
            "members": [
                {"id": row.member, "process": row.process, **_roles(row.assigned)} for row in rows
            ],
        }
    )


def share_group_document(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> FamilyDocument:
    """Build the document of a share group from a response to ShareGroupDescribe."""
    members = [
        {
            "id": member["member_id"],
            "topics": sorted(member["subscribed_topic_names"]),
            "owned": [
                [topic["topic_name"], number]
                for topic in member["assignment"]["topic_partitions"]
                for number in topic["partitions"]
            ],
            **({} if member["rack_id"] is None else {"rack": member["rack_id"]}),
        }
        for member in described["members"]
    ]
    names = {topic for member in members for topic in member["topics"]}
    names |= {topic for member in members for topic, _ in member["owned"]}
    return _checked(
        {
            "kind": str(Kind.SHARE),
            "id": described["group_id"],
            "topics": _known_counts(described, names, partition_counts),
            "members": members,
        }
    )


def topics_of_streams_group(described: Mapping[str, Any]) -> set[str]:
    """Return the source topics of the subtopologies in a response to StreamsGroupDescribe."""
    return {topic for one in _topology(described) for topic in _sources(one)}


def streams_group_document(
    described: Mapping[str, Any], partition_counts: Mapping[str, int]
) -> FamilyDocument:
    """Build the document of a Streams group from a response to StreamsGroupDescribe.

    A subtopology has as many tasks as its largest source topic has partitions.
    """
    members = [_streams_member(member) for member in described["members"]]
    standby = _most_copies(member["standby"] for member in members)
    counts = _known_counts(described, topics_of_streams_group(described), partition_counts)
    return _checked(
        {
            "kind": str(Kind.STREAMS_GROUP),
            "id": described["group_id"],
            "notes": [_standby_note(standby)],
            "num_standby_replicas": standby,
            "subtopologies": {
                one["subtopology_id"]: {
                    "partitions": max((counts[topic] for topic in _sources(one)), default=0),
                    "stateful": bool(one["state_changelog_topics"]),
                }
                for one in _topology(described)
            },
            "members": members,
        }
    )


def _known_counts(
    described: Mapping[str, Any], topics: set[str], partition_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the number of partitions of each topic, if the cluster describes all of them."""
    for name in sorted(topics - partition_counts.keys()):
        raise InputError(
            f"group {described['group_id']!r}: the cluster does not describe topic {name!r}"
        )
    return {name: partition_counts[name] for name in sorted(topics)}


def _topology(described: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = (described["topology"] or {}).get("subtopologies")
    if not found:
        raise InputError(f"group {described['group_id']!r}: the group has no topology yet")
    return list(found)


def _sources(subtopology: Mapping[str, Any]) -> list[str]:
    repartition = (topic["name"] for topic in subtopology["repartition_source_topics"])
    return [*subtopology["source_topics"], *repartition]


def _streams_member(member: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": member["member_id"], "process": member["process_id"]}
    for key, name in (("instance_id", "instance_id"), ("rack_id", "rack")):
        if member[key] is not None:
            found[name] = member[key]
    tags = {one["key"]: one["value"] for one in member["client_tags"]}
    if tags:
        found["tags"] = tags
    for role in _ROLES:
        found[role] = {
            tasks["subtopology_id"]: sorted(tasks["partitions"])
            for tasks in member["assignment"][f"{role}_tasks"]
        }
    for key, name in (("task_offsets", "offsets"), ("task_end_offsets", "end_offsets")):
        offsets: dict[str, dict[str, int]] = {}
        for one in member[key]:
            offsets.setdefault(one["subtopology_id"], {})[str(one["partition"])] = one["offset"]
        if offsets:
            found[name] = offsets
    return found


def _share_group_of_rows(
    group: str, rows: Sequence[FamilyMemberRow], options: ImportOptions
) -> FamilyDocument:
    seen = _highest(row.assigned["active"] for row in rows)
    known = options.partition_counts or {}
    counts = {name: known.get(name, count) for name, count in seen.items()}
    given = (options.subscriptions or {}).get(group)
    reading = options.assumed_subscriptions or AssumedSubscriptions.ASSIGNED
    notes = [] if given is not None else [_SUBSCRIPTIONS_NOTE[reading]]
    if counts.keys() - known.keys():
        notes.append(_COUNTS_NOTE)
    members: list[dict[str, Any]] = []
    for row in rows:
        owned = row.assigned["active"]
        topics = sorted(counts if reading is AssumedSubscriptions.EQUAL else owned)
        if given is not None:
            if row.member not in given:
                raise InputError(
                    f"group {group!r}: the file of subscriptions lacks member {row.member!r}"
                )
            topics = list(given[row.member])
        pairs = [[name, number] for name, numbers in owned.items() for number in numbers]
        members.append({"id": row.member, "topics": topics, "owned": pairs})
    for name in sorted({topic for member in members for topic in member["topics"]} - counts.keys()):
        if name not in known:
            raise InputError(
                f"group {group!r}: the number of partitions of topic {name!r} is not known; add "
                "it with --metadata"
            )
        counts[name] = known[name]
    content = {"kind": str(Kind.SHARE), "id": group, "notes": notes, "topics": counts}
    return _checked({**content, "members": members})


def _roles(assigned: Mapping[str, Mapping[str, list[int]]]) -> dict[str, Any]:
    return {role: dict(assigned[role]) for role in _ROLES}


def _highest(lists: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, int]:
    """Return the highest number plus 1 of each name."""
    counts: dict[str, int] = {}
    for one in lists:
        for name, numbers in one.items():
            counts[name] = max(counts.get(name, 0), *(number + 1 for number in numbers), 0)
    return counts


def _most_copies(lists: Iterable[Mapping[str, Sequence[int]]]) -> int:
    """Return the largest number of members that have the same task."""
    copies: dict[tuple[str, int], int] = {}
    for one in lists:
        for name, numbers in one.items():
            for number in numbers:
                copies[name, number] = copies.get((name, number), 0) + 1
    return max(copies.values(), default=0)


def _standby_note(copies: int) -> str:
    return f"{ASSUMED}num.standby.replicas is {copies}, the most standby tasks of a task"


def _checked(content: Mapping[str, Any]) -> FamilyDocument:
    """Return the document, after a check by the rules for documents of its kind."""
    return parse_family_document(content, kind=None, where=f"group {content['id']!r}")
