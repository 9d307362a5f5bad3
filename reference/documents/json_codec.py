"""JSON documents of groups and assignments, and fingerprints of groups.

``group.schema.json`` in this folder describes the same documents for other programs. A group may
have a million partitions, so types are checked per column. Entries are inspected one by one only
if one of them is invalid.
"""

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kassay.reference.documents.files import (
    LocatedDocument,
    Parser,
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    as_texts,
    document_id,
    has_only,
    items_of,
    open_text,
    optional,
    parse_fields,
    read_json_documents,
    read_json_object,
    table_of,
    unexpected,
    value_of,
    word_of,
)
from kassay.reference.documents.kind_documents import wrong_kind_error
from kassay.reference.model import group as group_model
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition


def _capacity(value: object, where: str) -> int | tuple[int, ...]:
    return (as_integers if isinstance(value, list) else as_integer)(value, where)


_SCALAR_FIELDS: dict[str, Parser[Any]] = {
    "generation": as_integer,
    "instance_id": as_optional_text,
    "rack": as_optional_text,
    "capacity": optional(_capacity),
    "speed": as_integer,
    "protocol_version": as_integer,
    # In the member's subscription. Null means no generation.
    "sub_generation": lambda value, where: (
        group_model.NO_GENERATION if value is None else as_integer(value, where)
    ),
    "user_data": as_optional_text,
}
_CLIENT_KEYS = {"client_id": "id", "host": "host", "library": "library"}
"""Fields of `Client`, by optional key of a member."""


def parse_member(value: object, where: str) -> group_model.Member:
    """Build a member from its JSON object. Raise InputError if a value is not valid."""
    fields = parse_fields(value, where, {"id": as_text, "topics": as_texts}, _MEMBER_FIELDS)
    client = {_CLIENT_KEYS[key]: fields.pop(key) for key in _CLIENT_KEYS if key in fields}
    # Members without these keys share one object.
    fields["client"] = group_model.Client(**client) if client else group_model.NO_CLIENT
    fields["subscription"] = fields.pop("topics")
    fields["streams"] = fields.get("streams", {}).items()
    try:
        return group_model.Member(**fields)
    except InputError as error:
        prefix = f"member {fields['id']!r}: "
        raise InputError(str(error).replace(prefix, f"{where}: ", 1)) from None


def member_document(member: group_model.Member) -> dict[str, object]:
    """Return the JSON object of a member. Default values are omitted."""
    default = group_model.Member(id=member.id, subscription=())
    scalars = {key: getattr(member, key) for key in _SCALAR_FIELDS}
    optional_values = {
        "owned": tuple(map(list, member.owned)),
        **{key: value for key, value in scalars.items() if value != getattr(default, key)},
        "streams": dict(member.streams),
        # An empty target assignment is not missing.
        "target": None if member.target is None else list(map(list, member.target)),
        **{key: getattr(member.client, field) for key, field in _CLIENT_KEYS.items()},
        "assumed": member.assumed,
    }
    return {"id": member.id, "topics": list(member.subscription)} | _given(optional_values)


def member_packer() -> Callable[[dict[str, object]], None]:
    """Return a function that stores the lists in a member's JSON object compactly.

    Owned partitions become columns, and equal subscriptions one shared tuple, while the rest
    of the document is parsed: a group of a million partitions then takes a third of the
    memory. Lists with an invalid entry stay unchanged; `parse_member` reports them.
    """
    shared: dict[tuple[object, ...], tuple[object, ...]] = {}

    def pack(table: dict[str, object]) -> None:
        topics, owned = table.get("topics"), table.get("owned")
        if isinstance(topics, list) and has_only(str, topics):
            subscription = tuple(topics)
            table["topics"] = shared.setdefault(subscription, subscription)
        if isinstance(owned, list):
            table["owned"] = pack_partitions(owned) or owned

    return pack


def parse_partitions(value: object, where: str) -> Partitions:
    """Read partitions from ``[["t", 0], ...]`` or the short form ``{"t": [0, ...]}``."""
    if isinstance(value, Partitions):
        return value
    if isinstance(value, Mapping):
        names: list[str] = []
        numbers: list[int] = []
        for topic, entry in value.items():
            of_topic = as_integers(entry, f"{where}[{topic!r}]")
            _check_range(of_topic, f"{where}[{topic!r}]")
            names.extend([topic] * len(of_topic))
            numbers.extend(of_topic)
        return Partitions.from_columns(names, numbers) if names else NO_PARTITIONS
    entries = value_of((list, tuple), "a list of [topic, partition] or an object")(value, where)
    if not entries:
        return NO_PARTITIONS
    return pack_partitions(entries) or _parse_entries(entries, where)


def pack_partitions(entries: Sequence[Any]) -> Partitions | None:
    """Convert [topic, number] pairs to columns. Return None for an invalid list."""
    if not has_only(list, entries) or set(map(len, entries)) != {2}:
        return None
    topics, numbers = zip(*entries, strict=True)
    if not has_only(str, topics) or not has_only(int, numbers) or not _in_range(numbers):
        return None
    return Partitions.from_columns(topics, numbers)


def _parse_entries(entries: Sequence[Any], where: str) -> Partitions:
    for index, entry in enumerate(entries):
        match entry:
            case [str(), number]:
                as_integer(number, f"{where}[{index}]")
            case _:
                raise unexpected(entry, f"{where}[{index}]", "[topic, partition number]")
    _check_range([number for _, number in entries], where)
    return Partitions.of(entries)


def _in_range(numbers: Sequence[int]) -> bool:
    return not numbers or 0 <= min(numbers) <= max(numbers) <= group_model.MAX_PARTITIONS


def _check_range(numbers: Sequence[int], where: str) -> None:
    if not _in_range(numbers):
        index, bad = next(
            (i, n) for i, n in enumerate(numbers) if not 0 <= n <= group_model.MAX_PARTITIONS
        )
        raise InputError(
            f"{where}[{index}]: partition number must be from 0 to "
            f"{group_model.MAX_PARTITIONS}, got {bad!r}"
        )


def parse_topic(name: str, value: object, where: str) -> group_model.Topic:
    """Build a topic from a partition count or a JSON object. Raise InputError if not valid."""
    if isinstance(value, int):
        value = {"partitions": value}
    table = value_of(Mapping, "a partition count or an object")(value, where)
    fields = parse_fields(table, where, {"partitions": as_integer}, _TOPIC_FIELDS)
    if any(isinstance(weight, tuple) for weight in fields.get("weights") or ()):
        fields["profiles"] = fields.pop("weights")
    try:
        return group_model.Topic(name, **fields)
    except InputError as error:
        raise InputError(str(error).replace(f"topic {name!r}: ", f"{where}: ", 1)) from None


def topic_document(topic: group_model.Topic) -> object:
    """Return the JSON object of a topic, or its partition count if it has no other values."""
    document: dict[str, object] = {"partitions": topic.partitions}
    if topic.weights is not None:
        rows = topic.profiles
        document["weights"] = list(topic.weights) if rows is None else [*map(list, rows)]
    if topic.racks is not None:
        document["racks"] = [list(racks) for racks in topic.racks]
    if topic.id is not None:
        document["id"] = str(topic.id)
    return document if len(document) > 1 else topic.partitions


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


_MEMBER_FIELDS: dict[str, Parser[Any]] = {
    **_SCALAR_FIELDS,
    **dict.fromkeys(_CLIENT_KEYS, as_optional_text),
    "owned": parse_partitions,
    "target": optional(parse_partitions),
    "streams": table_of(as_integer),
    "assumed": items_of(word_of(group_model.Assumed)),
}


def _weights(value: object, where: str) -> tuple[Any, ...]:
    entries = as_array(value, where)
    has_lists = any(isinstance(entry, list) for entry in entries)
    return (items_of(as_integers) if has_lists else as_integers)(entries, where)


_TOPIC_FIELDS: dict[str, Parser[Any]] = {
    "weights": optional(_weights),
    "racks": optional(items_of(items_of(as_optional_text))),
    "id": parse_topic_id,
}
_STATUS_KEYS = ("state", "protocol", "assignor")
_WINDOWS: dict[str, Parser[Any]] = {
    "names": as_texts,
    "seconds": as_optional_integer,
    "capacities": optional(as_integers),
}
_GROUP_FIELDS: dict[str, Parser[Any]] = {
    "windows": lambda value, where: group_model.Windows(**parse_fields(value, where, {}, _WINDOWS)),
    **dict.fromkeys(("id", *_STATUS_KEYS, "weight_source", "weight_unit"), as_optional_text),
    "available_weights": items_of(word_of(group_model.WeightSource)),
    "notes": as_texts,
}


def parse_group(document: object, *, where: str = "group") -> group_model.Group:
    """Build a group from its JSON document.

    ``where`` is the name of the document, the prefix of every error.

    Raise InputError with the field and the value if the document violates the format.

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
    required = {"topics": as_object, "members": as_array}
    try:
        fields = parse_fields(table, where, required, _GROUP_FIELDS, separator=": ")
        fields["topics"] = tuple(
            parse_topic(name, value, f"{where}: topics[{name!r}]")
            for name, value in fields["topics"].items()
        )
        fields["members"] = items_of(parse_member)(fields["members"], f"{where}: members")
        status = {key: fields.pop(key) for key in _STATUS_KEYS if key in fields}
        return group_model.Group(
            status=group_model.GroupStatus(**status) if status else group_model.NO_STATUS, **fields
        )
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def group_document(group: group_model.Group) -> dict[str, object]:
    """Return the JSON document of a group. Default values are omitted."""
    document: dict[str, object] = {} if group.id is None else {"id": group.id}
    document["topics"] = {topic.name: topic_document(topic) for topic in group.topics}
    document["members"] = [member_document(member) for member in group.members]
    windows = {key: getattr(group.windows, key) for key in _WINDOWS}
    optional_values = {
        **{key: getattr(group.status, key) for key in _STATUS_KEYS},
        "weight_source": group.weight_source,
        "weight_unit": group.weight_unit,
        "available_weights": group.available_weights,
        "windows": _given(windows),
        "notes": group.notes,
    }
    return document | _given(optional_values)


def _given(values: Mapping[str, Any]) -> dict[str, object]:
    given = {key: value for key, value in values.items() if value not in (None, (), {})}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def load_group(path: str | Path) -> group_model.Group:
    """Read the group of a file with exactly one group document."""
    groups = load_groups(path)
    if len(groups) != 1:
        raise InputError(
            f"{path}: expected one group document, got {len(groups)}; use kassay.load_groups to "
            "read several groups"
        )
    return groups[0]


def load_groups(path: str | Path) -> list[group_model.Group]:
    """Read all groups of a file. Raise InputError for an invalid group document."""
    groups = []
    with open_text(Path(path)) as stream:
        for _, group in read_groups(stream, name=str(path)):
            if isinstance(group, InputError):
                raise group
            groups.append(group)
    return groups


def read_groups(
    stream: Iterable[str], *, name: str
) -> Iterator[tuple[str | None, group_model.Group | InputError]]:
    """Yield the id of each document with its group, or with an InputError if invalid."""
    for located in read_json_documents(stream, name=name, convert=member_packer()):
        yield document_id(located.value), _group_or_error(located)


def assignment_document(assignment: Assignment) -> dict[str, list[TopicPartition]]:
    """Return the JSON document of an assignment: (topic, partition) pairs per member."""
    return {member: partitions.to_list() for member, partitions in assignment.items()}


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
    return parse_assignment(read_json_object(Path(path)), where=str(path))


def load_weights(path: Path) -> dict[str, tuple[Any, ...]]:
    """Read the weights of a JSON file ``{"topic": [weight of partition 0, ...]}``.

    A weight is an integer, or a list with one integer per window.
    """
    weights: dict[str, tuple[Any, ...]] = {}
    for topic, values in read_json_object(path).items():
        where = f"{path}: {topic}"
        weights[topic] = _weights(values, where)
        rows = (value if isinstance(value, tuple) else (value,) for value in weights[topic])
        least = min(chain.from_iterable(rows), default=0)
        if least < 0:
            raise InputError(f"{where}: weights must be at least 0, got {least}")
    return weights


def _group_or_error(located: LocatedDocument) -> group_model.Group | InputError:
    if located.error is not None:
        return located.error
    if isinstance(located.value, Mapping) and set(located.value) == {"id", "error"}:
        # The line of a group that kassay import could not read.
        return InputError(f"{located.where}: not imported: {located.value['error']}")
    try:
        return parse_group(located.value, where=located.where)
    except InputError as error:
        return error


def group_fingerprint(group: group_model.Group) -> str:
    """Return the fingerprint of a group: ``sha256:`` and 64 hexadecimal digits.

    The fingerprint depends on the topics with their partitions, weights and racks, and on the
    members with their subscription, owned partitions, generation, rack, capacity, host and speed.
    It does not depend on the id, the notes, or the order of topics, members and owned partitions.
    """
    digest = hashlib.sha256()
    for topic in sorted(group.topics, key=lambda topic: topic.name):
        weights = topic.profiles or topic.weights
        digest.update(_line("topic", topic.name, topic.partitions, weights, topic.racks))
    if group.windows.capacities:
        digest.update(_line("windows", group.windows.capacities))
    lines: dict[tuple[str, ...], bytes] = {}  # many members have the same subscription
    for member in sorted(group.members, key=lambda member: member.id):
        subscription = member.subscription
        if subscription not in lines:
            lines[subscription] = _line("subscription", *sorted(subscription))
        digest.update(_line("member", member.id, member.generation, member.rack, member.capacity))
        if member.client.host is not None or member.speed != 1:
            digest.update(_line("runs", member.client.host, member.speed))
        digest.update(lines[subscription] + _owned_bytes(member.owned))
    return f"sha256:{digest.hexdigest()}"


def _owned_bytes(owned: Partitions) -> bytes:
    """Return the bytes to hash for owned partitions: topic names, then sorted partitions."""
    names = sorted(owned.distinct_topics())
    place = {name: index for index, name in enumerate(names)}
    rank = np.array([place.get(name, 0) for name in owned.topics] or [0], dtype=np.int64)
    keys = np.sort((rank[owned.codes] << 32) + owned.numbers)
    keys = keys[np.diff(keys, prepend=keys[:1] - 1) > 0]
    return _line("owned", len(keys), *names) + keys.astype("<i8").tobytes()


def _line(*fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"
