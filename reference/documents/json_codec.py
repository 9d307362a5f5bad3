"""JSON documents of groups and assignments, and fingerprints of groups.

``group.schema.json`` in this folder describes the same documents for other programs.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kassay.reference.documents.json_values import (
    LocatedDocument,
    as_array,
    as_integers,
    as_object,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    parse_json,
    read_json_documents,
)
from kassay.reference.documents.kind_documents import wrong_kind_error
from kassay.reference.documents.text_files import read_json_object
from kassay.reference.documents.topic_and_member_documents import (
    member_document,
    member_packer,
    parse_member,
    parse_partitions,
    parse_topic,
    partition_pairs,
    topic_document,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_STATUS, Group, GroupStatus, Member
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.topic_partitions import Partitions

_STATUS_KEYS = ("state", "protocol", "assignor")
_WEIGHT_KEYS = ("weight_source", "weight_unit", "available_weights")
_KEYS = ("id", "topics", "members", *_STATUS_KEYS, *_WEIGHT_KEYS, "notes")


def parse_group(document: object, *, where: str = "group") -> Group:
    """Build a group from its JSON document.

    ``where`` is the name of the document, the prefix of every error.

    Raises
    ------
    InputError
        If the document violates the format; the message names the field and the value.

    Examples
    --------
    >>> parse_group({"topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}).id
    >>> parse_group({"topics": {"t": 2}})
    Traceback (most recent call last):
    kassay...InputError: group: missing key 'members'
    """
    table = as_object(document, where)
    if "kind" in table:
        raise wrong_kind_error(as_text(table["kind"], f"{where}: kind"), where)
    check_keys(table, _KEYS, where, required=("topics", "members"))
    topics = as_object(table["topics"], f"{where}: topics")
    members = as_array(table["members"], f"{where}: members")
    source = as_optional_text(table.get("weight_source"), f"{where}: weight_source")
    available = as_texts(table.get("available_weights", ()), f"{where}: available_weights")
    try:
        return Group(
            topics=tuple(
                parse_topic(name, value, f"{where}: topics[{name!r}]")
                for name, value in topics.items()
            ),
            members=tuple(
                parse_member(value, f"{where}: members[{index}]")
                for index, value in enumerate(members)
            ),
            id=as_optional_text(table.get("id"), f"{where}: id"),
            notes=as_texts(table.get("notes", []), f"{where}: notes"),
            status=_parse_status(table, where),
            weight_source=None if source is None else WeightSource.parse(source),
            weight_unit=as_optional_text(table.get("weight_unit"), f"{where}: weight_unit"),
            available_weights=tuple(map(WeightSource.parse, available)),
        )
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def group_document(group: Group) -> dict[str, object]:
    """Return the JSON document of a group. Default values are omitted."""
    document: dict[str, object] = {} if group.id is None else {"id": group.id}
    document["topics"] = {topic.name: topic_document(topic) for topic in group.topics}
    document["members"] = [member_document(member) for member in group.members]
    for key in _STATUS_KEYS:
        if (value := getattr(group.status, key)) is not None:
            document[key] = str(value)
    if group.weight_source is not None:
        document["weight_source"] = str(group.weight_source)
    if group.weight_unit is not None:
        document["weight_unit"] = group.weight_unit
    if group.available_weights:
        document["available_weights"] = list(map(str, group.available_weights))
    if group.notes:
        document["notes"] = list(group.notes)
    return document


def _parse_status(table: Mapping[str, object], where: str) -> GroupStatus:
    values: dict[str, Any] = {
        key: as_optional_text(table[key], f"{where}: {key}") for key in _STATUS_KEYS if key in table
    }
    return GroupStatus(**values) if values else NO_STATUS


def load_group(path: str | Path) -> Group:
    """Read a file that contains exactly one group document.

    Raise InputError if the file contains none or several, or if the document is invalid.
    """
    groups = load_groups(path)
    if len(groups) != 1:
        raise InputError(f"{path}: expected one group document, got {len(groups)}")
    return groups[0]


def load_groups(path: str | Path) -> list[Group]:
    """Read all group documents of a file: one JSON document, or JSON Lines.

    The first invalid document raises InputError with file and line.
    """
    groups = []
    with Path(path).open(encoding="utf-8") as stream:
        for _, group in read_groups(stream, name=str(path)):
            if isinstance(group, InputError):
                raise group
            groups.append(group)
    return groups


def read_groups(
    stream: Iterable[str], *, name: str
) -> Iterator[tuple[str | None, Group | InputError]]:
    """Yield the id and the group, or the id and an error, of each document in a JSON file.

    ``stream`` yields the lines. ``name`` is the name of the file in errors.
    """
    for located in read_json_documents(stream, name=name, convert=member_packer()):
        yield document_id(located), _group_or_error(located)


def document_id(located: LocatedDocument) -> str | None:
    """Return the id of a group document, or None if the document has no valid id."""
    group_id = located.value.get("id") if isinstance(located.value, Mapping) else None
    return group_id if isinstance(group_id, str) else None


def assignment_document(assignment: Assignment) -> dict[str, list[tuple[str, int]]]:
    """Return the JSON document of an assignment: (topic, partition) pairs per member."""
    return {member: partition_pairs(partitions) for member, partitions in assignment.items()}


def parse_assignment(document: object, *, where: str = "assignment") -> Assignment:
    """Build an assignment from JSON such as ``{"c0": [["t", 0]]}``.

    The document may also contain this object under the key ``assignment``, as the output of
    ``kassay assign`` and ``kassay solve`` does.
    """
    table = as_object(document, where)
    if "assignment" in table:
        where = f"{where}: assignment"
        table = as_object(table["assignment"], where)
    return Assignment(
        {member: parse_partitions(value, f"{where}[{member!r}]") for member, value in table.items()}
    )


def load_assignment(path: str | Path) -> Assignment:
    """Read an assignment document from a JSON file."""
    text = Path(path).read_text(encoding="utf-8")
    return parse_assignment(parse_json(text, where=str(path)), where=str(path))


def load_weights(path: Path) -> dict[str, tuple[int, ...]]:
    """Read a JSON file with the partition weights of topics.

    The form is ``{"topic": [weight of partition 0, ...]}``.
    """
    weights: dict[str, tuple[int, ...]] = {}
    for topic, numbers in read_json_object(path).items():
        where = f"{path}: {topic}"
        weights[topic] = as_integers(numbers, where)
        if min(weights[topic], default=0) < 0:
            raise InputError(f"{where}: weights must be at least 0, got {min(weights[topic])}")
    return weights


def _group_or_error(located: LocatedDocument) -> Group | InputError:
    if located.error is not None:
        return located.error
    if isinstance(located.value, Mapping) and set(located.value) == {"id", "error"}:
        # The line of a group that kassay import could not read.
        return InputError(f"{located.where}: not imported: {located.value['error']}")
    try:
        return parse_group(located.value, where=located.where)
    except InputError as error:
        return error


def group_fingerprint(group: Group) -> str:
    """Return the fingerprint of a group: ``sha256:`` and 64 hexadecimal digits.

    The fingerprint depends on the topics with their partitions, weights and racks, and on the
    members with their subscription, owned partitions, generation, rack, capacity, host and speed.
    It does not depend on the id, the notes, or the order of topics, members and owned partitions.

    Examples
    --------
    >>> from kassay.reference.model.group import Topic
    >>> first, second = Topic(name="t", partitions=2), Topic(name="u", partitions=1)
    >>> group = Group(topics=(first, second), members=(), id="g")
    >>> group_fingerprint(group) == group_fingerprint(Group(topics=(second, first), members=()))
    True
    >>> group_fingerprint(group) == group_fingerprint(Group(topics=(first,), members=()))
    False
    """
    digest = hashlib.sha256()
    for topic in sorted(group.topics, key=lambda topic: topic.name):
        digest.update(_line("topic", topic.name, topic.partitions, topic.weights, topic.racks))
    lines: dict[tuple[str, ...], bytes] = {}  # many members have the same subscription
    for member in sorted(group.members, key=lambda member: member.id):
        subscription = member.subscription
        if subscription not in lines:
            lines[subscription] = _line("subscription", *sorted(subscription))
        for part in _member_parts(member, lines[subscription]):
            digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def _member_parts(member: Member, subscription: bytes) -> Iterator[bytes]:
    yield _line("member", member.id, member.generation, member.rack, member.capacity)
    if member.client.host is not None or member.speed != 1:
        yield _line("runs", member.client.host, member.speed)
    yield subscription
    yield from _owned_parts(member.owned)


def _owned_parts(owned: Partitions) -> Iterator[bytes]:
    """Yield the bytes to hash for owned partitions: topic names, then sorted partitions."""
    names = sorted(owned.distinct_topics())
    place = {name: index for index, name in enumerate(names)}
    rank = np.array([place.get(name, 0) for name in owned.topics] or [0], dtype=np.int64)
    keys = np.sort((rank[owned.codes] << 32) + owned.numbers)
    keys = keys[np.diff(keys, prepend=keys[:1] - 1) > 0]
    yield _line("owned", len(keys), *names)
    yield keys.astype("<i8").tobytes()


def _line(*fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"
