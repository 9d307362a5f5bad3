"""JSON documents of groups and assignments.

``group.schema.json`` in this folder describes the same documents for other programs.
"""

import base64
import binascii
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    format_value,
    has_only,
)
from kassay.reference.documents.json_text import LocatedDocument, parse_json, read_json_documents
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import MAX_PARTITIONS, NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions

_GROUP_KEYS = ("id", "topics", "members", "notes")
_TOPIC_KEYS = ("partitions", "weights", "racks", "id")
_MEMBER_KEYS = (
    "id",
    "topics",
    "owned",
    "generation",
    "instance_id",
    "rack",
    "capacity",
    "protocol_version",
    "sub_generation",
    "user_data",
    "streams",
)


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
    check_keys(table, _GROUP_KEYS, where, required=("topics", "members"))
    topics = as_object(table["topics"], f"{where}: topics")
    members = as_array(table["members"], f"{where}: members")
    try:
        return Group(
            topics=tuple(
                _topic(name, value, f"{where}: topics[{name!r}]") for name, value in topics.items()
            ),
            members=tuple(
                _member(value, f"{where}: members[{index}]") for index, value in enumerate(members)
            ),
            id=as_optional_text(table.get("id"), f"{where}: id"),
            notes=as_texts(table.get("notes", []), f"{where}: notes"),
        )
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def group_document(group: Group) -> dict[str, object]:
    """Return the JSON document of a group, without keys that have their default.

    Examples
    --------
    >>> group_document(parse_group({"topics": {"t": 1}, "members": []}))
    {'topics': {'t': 1}, 'members': []}
    """
    document: dict[str, object] = {} if group.id is None else {"id": group.id}
    document["topics"] = {topic.name: _topic_value(topic) for topic in group.topics}
    document["members"] = [_member_value(member) for member in group.members]
    if group.notes:
        document["notes"] = list(group.notes)
    return document


def load_group(path: str | Path) -> Group:
    """Read a file with one group document.

    Raises
    ------
    InputError
        If the file has no document, several documents, or an invalid one.
    """
    with Path(path).open(encoding="utf-8") as stream:
        groups = list(read_groups(stream, name=str(path)))
    if len(groups) != 1:
        raise InputError(f"{path}: expected one group document, got {len(groups)}")
    _, group = groups[0]
    if isinstance(group, InputError):
        raise group
    return group


def load_groups(path: str | Path) -> list[Group]:
    """Read all group documents of a file: one JSON document, or JSON Lines.

    Raises
    ------
    InputError
        At the first invalid document, with file and line.
    """
    with Path(path).open(encoding="utf-8") as stream:
        groups = [group for _, group in read_groups(stream, name=str(path))]
    error = next((group for group in groups if isinstance(group, InputError)), None)
    if error is not None:
        raise error
    return [group for group in groups if isinstance(group, Group)]


def read_groups(stream: TextIO, *, name: str) -> Iterator[tuple[str | None, Group | InputError]]:
    """Yield id and group, or id and error, per document of a JSON or JSON Lines file.

    ``name`` is the name of the file in errors.
    """
    for located in read_json_documents(stream, name=name):
        yield document_id(located), _group_or_error(located)


def document_id(located: LocatedDocument) -> str | None:
    """Return the id of a document, None if it has none or is invalid."""
    if isinstance(located.value, Mapping):
        group_id = located.value.get("id")
        return group_id if isinstance(group_id, str) else None
    return None


def assignment_document(assignment: Assignment) -> dict[str, list[tuple[str, int]]]:
    """Return the JSON document of an assignment: (topic, partition) pairs per member.

    Examples
    --------
    >>> assignment_document(Assignment({"a": [("t", 0)]}))
    {'a': [('t', 0)]}
    """
    return {member: _pairs(partitions) for member, partitions in assignment.items()}


def parse_assignment(document: object, *, where: str = "assignment") -> Assignment:
    """Build an assignment from ``{"c0": [["t", 0]]}`` or from a document with that key.

    If the document has the key ``"assignment"``, as in the output of ``kassay assign`` and
    ``kassay solve``, the value of this key is read.

    Raises
    ------
    InputError
        If the document violates the format.
    """
    table = as_object(document, where)
    if "assignment" in table:
        where = f"{where}: assignment"
        table = as_object(table["assignment"], where)
    return Assignment(
        {member: _partitions(value, f"{where}[{member!r}]") for member, value in table.items()}
    )


def load_assignment(path: str | Path) -> Assignment:
    """Read an assignment from a JSON file.

    Raises
    ------
    InputError
        If the file is not an assignment document.
    """
    text = Path(path).read_text(encoding="utf-8")
    return parse_assignment(parse_json(text, where=str(path)), where=str(path))


def _group_or_error(located: LocatedDocument) -> Group | InputError:
    if located.error is not None:
        return located.error
    try:
        return parse_group(located.value, where=located.where)
    except InputError as error:
        return error


def _topic(name: str, value: object, where: str) -> Topic:
    if isinstance(value, int):
        value = {"partitions": value}
    table = as_object(value, where, expected="a partition count or an object")
    check_keys(table, _TOPIC_KEYS, where, required=("partitions",))
    weights = table.get("weights")
    try:
        return Topic(
            name=name,
            partitions=as_integer(table["partitions"], f"{where}.partitions"),
            weights=None if weights is None else as_integers(weights, f"{where}.weights"),
            racks=_racks(table.get("racks"), f"{where}.racks"),
            id=_topic_id(table.get("id"), f"{where}.id"),
        )
    except InputError as error:
        raise InputError(str(error).replace(f"topic {name!r}: ", f"{where}: ", 1)) from None


def _racks(value: object, where: str) -> tuple[tuple[str | None, ...], ...] | None:
    if value is None:
        return None
    return tuple(
        tuple(
            as_optional_text(rack, f"{where}[{index}]")
            for rack in as_array(racks, f"{where}[{index}]")
        )
        for index, racks in enumerate(as_array(value, where))
    )


def _topic_id(value: object, where: str) -> uuid.UUID | None:
    """Parse a topic id: a UUID, or its 22 characters in base64 as Kafka's tools print it."""
    if value is None:
        return None
    text = as_text(value, where)
    try:
        if len(text) == 22:
            return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
        return uuid.UUID(text)
    except (ValueError, binascii.Error):
        raise InputError(f"{where}: not a topic id: {text!r}") from None


def _member(value: object, where: str) -> Member:
    table = as_object(value, where)
    check_keys(table, _MEMBER_KEYS, where, required=("id", "topics"))
    member_id = as_text(table["id"], f"{where}.id")
    streams = as_object(table.get("streams", {}), f"{where}.streams")
    try:
        return Member(
            id=member_id,
            subscription=as_texts(table["topics"], f"{where}.topics"),
            owned=_partitions(table.get("owned", []), f"{where}.owned"),
            generation=as_integer(table.get("generation", NO_GENERATION), f"{where}.generation"),
            instance_id=as_optional_text(table.get("instance_id"), f"{where}.instance_id"),
            rack=as_optional_text(table.get("rack"), f"{where}.rack"),
            capacity=as_optional_integer(table.get("capacity"), f"{where}.capacity"),
            protocol_version=as_integer(
                table.get("protocol_version", 3), f"{where}.protocol_version"
            ),
            sub_generation=_sub_generation(table, f"{where}.sub_generation"),
            user_data=as_optional_text(table.get("user_data"), f"{where}.user_data"),
            streams=tuple(
                (topic, as_integer(count, f"{where}.streams[{topic!r}]"))
                for topic, count in streams.items()
            ),
        )
    except InputError as error:
        prefix = f"member {member_id!r}: "
        raise InputError(str(error).replace(prefix, f"{where}: ", 1)) from None


def _sub_generation(table: Mapping[str, object], where: str) -> int | None:
    """Read ``sub_generation``; null means a subscription without a generation."""
    if "sub_generation" not in table:
        return None
    generation = as_optional_integer(table["sub_generation"], where)
    return NO_GENERATION if generation is None else generation


def _partitions(value: object, where: str) -> Partitions:
    """Read pairs ``[["t", 0], ...]`` or the short form ``{"t": [0, ...]}``, in order."""
    topics: Sequence[str]
    numbers: Sequence[int]
    if isinstance(value, Mapping):
        topics, numbers = [], []
        for topic, entry in value.items():
            of_topic = as_integers(entry, f"{where}[{topic!r}]")
            _check_range(of_topic, f"{where}[{topic!r}]")
            topics.extend([topic] * len(of_topic))
            numbers.extend(of_topic)
    else:
        entries = as_array(value, where, expected="a list of [topic, partition] or an object")
        topics, numbers = _columns(entries, where)
        _check_range(numbers, where)
    return Partitions.from_columns(topics, numbers) if topics else NO_PARTITIONS


def _columns(entries: Sequence[Any], where: str) -> tuple[Sequence[str], Sequence[int]]:
    """Split [topic, number] pairs into two columns.

    Types are checked per column, because a group may have a million pairs. The entries are
    inspected one by one only to find an invalid one.
    """
    if has_only(list, entries) and set(map(len, entries)) == {2}:
        topics, numbers = zip(*entries, strict=True)
        if has_only(str, topics) and has_only(int, numbers):
            return topics, numbers
    for index, entry in enumerate(entries):
        match entry:
            case [str(), number]:
                as_integer(number, f"{where}[{index}]")
            case _:
                raise InputError(
                    f"{where}[{index}]: expected [topic, partition number], "
                    f"got {format_value(entry)}"
                )
    return [topic for topic, _ in entries], [number for _, number in entries]


def _check_range(numbers: Sequence[int], where: str) -> None:
    if numbers and not 0 <= min(numbers) <= max(numbers) <= MAX_PARTITIONS:
        index, bad = next((i, n) for i, n in enumerate(numbers) if not 0 <= n <= MAX_PARTITIONS)
        raise InputError(
            f"{where}[{index}]: partition number must be from 0 to {MAX_PARTITIONS}, got {bad!r}"
        )


def _pairs(partitions: Partitions) -> list[tuple[str, int]]:
    """Return (topic, number) pairs, which are JSON arrays; plain tuples are fast to build."""
    topics = map(partitions.topics.__getitem__, partitions.codes.tolist())
    return list(zip(topics, partitions.numbers.tolist(), strict=True))


def _topic_value(topic: Topic) -> object:
    if topic.weights is None and topic.racks is None and topic.id is None:
        return topic.partitions
    value: dict[str, object] = {"partitions": topic.partitions}
    if topic.weights is not None:
        value["weights"] = list(topic.weights)
    if topic.racks is not None:
        value["racks"] = [list(racks) for racks in topic.racks]
    if topic.id is not None:
        value["id"] = str(topic.id)
    return value


def _member_value(member: Member) -> dict[str, object]:
    value: dict[str, object] = {"id": member.id, "topics": list(member.subscription)}
    if len(member.owned):
        value["owned"] = [list(pair) for pair in _pairs(member.owned)]
    default = Member(id=member.id, subscription=())
    for key in _MEMBER_KEYS:
        if key in ("id", "topics", "owned", "streams"):
            continue
        field = getattr(member, key)
        if field != getattr(default, key):
            value[key] = field
    if member.streams:
        value["streams"] = dict(member.streams)
    return value
