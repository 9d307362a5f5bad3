"""JSON documents of groups and assignments.

``group.schema.json`` in this folder describes the same documents for other programs.
"""

import base64
import binascii
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kassay.reference.documents.family_documents import family_error
from kassay.reference.documents.json_values import (
    LocatedDocument,
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    parse_json,
    read_json_documents,
)
from kassay.reference.documents.member_documents import (
    member_document,
    member_packer,
    parse_member,
    parse_partitions,
    partition_pairs,
)
from kassay.reference.documents.text_files import read_json_object
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.group_annotations import NO_STATUS, GroupStatus, WeightSource

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
        raise family_error(as_text(table["kind"], f"{where}: kind"), where)
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


def parse_topic(name: str, value: object, where: str) -> Topic:
    """Build a topic from its JSON value: a partition count or an object."""
    if isinstance(value, int):
        value = {"partitions": value}
    table = as_object(value, where, expected="a partition count or an object")
    check_keys(table, ("partitions", "weights", "racks", "id"), where, required=("partitions",))
    weights = table.get("weights")
    try:
        return Topic(
            name=name,
            partitions=as_integer(table["partitions"], f"{where}.partitions"),
            weights=None if weights is None else as_integers(weights, f"{where}.weights"),
            racks=_racks(table.get("racks"), f"{where}.racks"),
            id=parse_topic_id(table.get("id"), f"{where}.id"),
        )
    except InputError as error:
        raise InputError(str(error).replace(f"topic {name!r}: ", f"{where}: ", 1)) from None


def topic_document(topic: Topic) -> object:
    """Return the JSON value of a topic: an object, or the partition count alone."""
    document: dict[str, object] = {"partitions": topic.partitions}
    if topic.weights is not None:
        document["weights"] = list(topic.weights)
    if topic.racks is not None:
        document["racks"] = [list(racks) for racks in topic.racks]
    if topic.id is not None:
        document["id"] = str(topic.id)
    return document if len(document) > 1 else topic.partitions


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


def parse_topic_id(value: object, where: str) -> uuid.UUID | None:
    """Parse a topic id: a UUID or, as Kafka's tools print it, 22 characters in base64."""
    if value is None:
        return None
    text = as_text(value, where)
    try:
        if len(text) == 22:
            return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
        return uuid.UUID(text)
    except (ValueError, binascii.Error):
        raise InputError(
            f"{where}: not a topic id: {text!r}, expected a UUID or 22 characters in base64"
        ) from None
