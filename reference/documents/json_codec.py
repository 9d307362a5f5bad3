"""Group and Assignment to and from JSON documents.

``group.schema.json`` beside this file describes the same documents to other programs.
"""

import base64
import binascii
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    format_value,
    no_unknown_keys,
)
from kassay.reference.documents.json_text import Located, parse_json, read_json_documents
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
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

    Parameters
    ----------
    document
        What ``json.loads`` returned.
    where
        Name of the document, the prefix of every error.

    Raises
    ------
    InvalidGroupError
        If the document breaks the format; the message names field and value.

    Examples
    --------
    >>> parse_group({"topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}).id
    >>> parse_group({"topics": {"t": 2}})
    Traceback (most recent call last):
    kassay...InputError: group: missing key 'members'
    """
    table = as_object(document, where)
    no_unknown_keys(table, _GROUP_KEYS, where)
    for key in ("topics", "members"):
        if key not in table:
            raise InputError(f"{where}: missing key {key!r}")
    topics = as_object(table["topics"], f"{where}: topics")
    members = as_array(table["members"], f"{where}: members")
    notes = as_array(table.get("notes", []), f"{where}: notes")
    try:
        return Group(
            topics=tuple(
                _topic(name, value, f"{where}: topics[{name!r}]") for name, value in topics.items()
            ),
            members=tuple(
                _member(value, f"{where}: members[{index}]") for index, value in enumerate(members)
            ),
            id=as_optional_text(table.get("id"), f"{where}: id"),
            notes=tuple(as_text(note, f"{where}: notes[{i}]") for i, note in enumerate(notes)),
        )
    except InputError as error:
        raise _located(error, where) from None


def group_document(group: Group) -> dict[str, object]:
    """Return the JSON document of a group, without the keys that hold defaults.

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
    """Read the one group document of a file.

    Raises
    ------
    InvalidGroupError
        If the file holds none or several documents, or a bad one.
    OSError
        If it cannot be read.
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
    InvalidGroupError
        At the first document that is not a group, with file and line.
    OSError
        If the file cannot be read.
    """
    with Path(path).open(encoding="utf-8") as stream:
        groups = [group for _, group in read_groups(stream, name=str(path))]
    error = next((group for group in groups if isinstance(group, InputError)), None)
    if error is not None:
        raise error
    return [group for group in groups if isinstance(group, Group)]


def read_groups(stream: TextIO, *, name: str) -> Iterator[tuple[str | None, Group | InputError]]:
    """Yield each group of a JSON or JSON Lines file with its id; bad ones as their error.

    Parameters
    ----------
    stream
        Text of the file.
    name
        Its name, for errors.
    """
    for located in read_json_documents(stream, name=name):
        yield document_id(located), _group_or_error(located)


def document_id(located: Located) -> str | None:
    """Return the id that a document states, if it can be made out."""
    if isinstance(located.value, Mapping):
        stated = located.value.get("id")
        return stated if isinstance(stated, str) else None
    return None


def assignment_document(assignment: Assignment) -> dict[str, list[list[str | int]]]:
    """Return an assignment as member to list of [topic, partition] pairs.

    Examples
    --------
    >>> assignment_document(Assignment({"a": [("t", 0)]}))
    {'a': [['t', 0]]}
    """
    return {member: _pairs(partitions) for member, partitions in assignment.items()}


def parse_assignment(document: object, *, where: str = "assignment") -> Assignment:
    """Build an assignment from ``{"c0": [["t", 0]]}``, or from a document that has one.

    A document with the key ``"assignment"`` (as ``kassay assign`` and ``kassay solve``
    write it) is taken for that key's value.

    Raises
    ------
    InvalidGroupError
        If the document breaks the format.
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
    InvalidGroupError
        If the file is not an assignment document.
    OSError
        If it cannot be read.
    """
    text = Path(path).read_text(encoding="utf-8")
    return parse_assignment(parse_json(text, where=str(path)), where=str(path))


def _located(error: InputError, where: str) -> InputError:
    message = str(error)
    return error if message.startswith(where) else InputError(f"{where}: {message}")


def _group_or_error(located: Located) -> Group | InputError:
    if located.error is not None:
        return located.error
    try:
        return parse_group(located.value, where=located.where)
    except InputError as error:
        return error


def _topic(name: str, value: object, where: str) -> Topic:
    if isinstance(value, int):
        value = {"partitions": value}
    table = as_object(value, where, instead="a partition count or an object")
    no_unknown_keys(table, _TOPIC_KEYS, where)
    if "partitions" not in table:
        raise InputError(f"{where}: missing key 'partitions'")
    try:
        return Topic(
            name=name,
            partitions=as_integer(table["partitions"], f"{where}.partitions"),
            weights=_weights(table.get("weights"), f"{where}.weights"),
            racks=_racks(table.get("racks"), f"{where}.racks"),
            id=_topic_id(table.get("id"), f"{where}.id"),
        )
    except InputError as error:
        raise InputError(str(error).replace(f"topic {name!r}: ", f"{where}: ", 1)) from None


def _weights(value: object, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(
        as_integer(weight, f"{where}[{index}]")
        for index, weight in enumerate(as_array(value, where))
    )


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
    """Read a topic id: canonical UUID text, or the 22 characters that Kafka's tools print."""
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
    no_unknown_keys(table, _MEMBER_KEYS, where)
    for key in ("id", "topics"):
        if key not in table:
            raise InputError(f"{where}: missing key {key!r}")
    member_id = as_text(table["id"], f"{where}.id")
    topics = as_array(table["topics"], f"{where}.topics")
    streams = as_object(table.get("streams", {}), f"{where}.streams")
    try:
        return Member(
            id=member_id,
            subscription=tuple(as_text(t, f"{where}.topics[{i}]") for i, t in enumerate(topics)),
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
        stated = f"member {member_id!r}: "
        raise InputError(str(error).replace(stated, f"{where}: ", 1)) from None


def _sub_generation(table: Mapping[str, object], where: str) -> int | None:
    """Read it; an explicit null says that the subscription states none, unlike a missing key."""
    if "sub_generation" not in table:
        return None
    stated = as_optional_integer(table["sub_generation"], where)
    return NO_GENERATION if stated is None else stated


def _partitions(value: object, where: str) -> Partitions:
    """Read pairs ``[["t", 0], ...]`` or the short form ``{"t": [0, ...]}``, in order."""
    if isinstance(value, Mapping):
        pairs = [
            (topic, _partition_number(number, f"{where}[{topic!r}][{index}]"))
            for topic, numbers in value.items()
            for index, number in enumerate(as_array(numbers, f"{where}[{topic!r}]"))
        ]
        return Partitions.of(pairs) if pairs else NO_PARTITIONS
    entries = as_array(value, where, instead="a list of [topic, partition] or an object")
    return Partitions.of([_pair(entry, where, index) for index, entry in enumerate(entries)])


def _pair(entry: object, where: str, index: int) -> tuple[str, int]:
    match entry:
        case [str() as topic, number]:
            return topic, _partition_number(number, f"{where}[{index}]")
        case _:
            raise InputError(
                f"{where}[{index}]: expected [topic, partition number], got {format_value(entry)}"
            )


def _partition_number(value: object, where: str) -> int:
    number = as_integer(value, where)
    if not 0 <= number < 2**31:
        raise InputError(f"{where}: partition number must be from 0 to {2**31 - 1}, got {number!r}")
    return number


def _pairs(partitions: Partitions) -> list[list[str | int]]:
    names = partitions.topics
    columns = zip(partitions.codes.tolist(), partitions.numbers.tolist(), strict=True)
    return [[names[code], number] for code, number in columns]


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
        value["owned"] = _pairs(member.owned)
    plain = Member(id=member.id, subscription=())
    for key in _MEMBER_KEYS:
        if key in ("id", "topics", "owned", "streams"):
            continue
        stated = getattr(member, key)
        if stated != getattr(plain, key):
            value[key] = stated
    if member.streams:
        value["streams"] = dict(member.streams)
    return value
