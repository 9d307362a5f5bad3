"""Read and write the topics and members of group documents, and their lists of partitions.

A group may have a million partitions, so types are checked per column. Entries are inspected
one by one only if one of them is invalid.
"""

import base64
import binascii
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kassay.reference.documents.json_values import (
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
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import MAX_PARTITIONS, NO_GENERATION, Member, Topic
from kassay.reference.model.group_annotations import NO_CLIENT, Assumed, Client
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions


def _sub_generation(value: object, where: str) -> int:
    """Read the generation in a member's subscription. Null means no generation."""
    return NO_GENERATION if value is None else as_integer(value, where)


_SCALARS: dict[str, Callable[[object, str], Any]] = {
    "generation": as_integer,
    "instance_id": as_optional_text,
    "rack": as_optional_text,
    "capacity": as_optional_integer,
    "speed": as_integer,
    "protocol_version": as_integer,
    "sub_generation": _sub_generation,
    "user_data": as_optional_text,
}
"""Parsers of the optional keys with one value."""
_CLIENT_KEYS = {"client_id": "id", "host": "host", "library": "library"}
"""Field of `Client` per optional key."""
_KEYS = ("id", "topics", "owned", *_SCALARS, "streams", "target", *_CLIENT_KEYS, "assumed")


def parse_member(value: object, where: str) -> Member:
    """Build a member from its JSON object."""
    table = as_object(value, where)
    check_keys(table, _KEYS, where, required=("id", "topics"))
    member_id = as_text(table["id"], f"{where}.id")
    streams = as_object(table.get("streams", {}), f"{where}.streams")
    try:
        return Member(
            id=member_id,
            subscription=as_texts(table["topics"], f"{where}.topics"),
            owned=parse_partitions(table.get("owned", ()), f"{where}.owned"),
            streams=tuple(
                (topic, as_integer(count, f"{where}.streams[{topic!r}]"))
                for topic, count in streams.items()
            ),
            target=None
            if table.get("target") is None
            else parse_partitions(table["target"], f"{where}.target"),
            client=_parse_client(table, where),
            assumed=_parse_assumed(table, where),
            **{
                key: parse(table[key], f"{where}.{key}")
                for key, parse in _SCALARS.items()
                if key in table
            },
        )
    except InputError as error:
        prefix = f"member {member_id!r}: "
        raise InputError(str(error).replace(prefix, f"{where}: ", 1)) from None


def _parse_client(table: Mapping[str, object], where: str) -> Client:
    """Read the client of a member: client id, host and library.

    Members without these keys share one object.
    """
    if _CLIENT_KEYS.keys().isdisjoint(table):
        return NO_CLIENT
    return Client(
        **{
            field: as_optional_text(table.get(key), f"{where}.{key}")
            for key, field in _CLIENT_KEYS.items()
        }
    )


def _parse_assumed(table: Mapping[str, object], where: str) -> tuple[Assumed, ...]:
    if "assumed" not in table:
        return ()
    return tuple(map(Assumed.parse, as_texts(table["assumed"], f"{where}.assumed")))


def member_document(member: Member) -> dict[str, object]:
    """Return the JSON object of a member. Default values are omitted."""
    document: dict[str, object] = {"id": member.id, "topics": list(member.subscription)}
    if member.owned:
        document["owned"] = [list(pair) for pair in partition_pairs(member.owned)]
    default = Member(id=member.id, subscription=())
    for key in _SCALARS:
        if (value := getattr(member, key)) != getattr(default, key):
            document[key] = value
    if member.streams:
        document["streams"] = dict(member.streams)
    if member.target is not None:
        document["target"] = [list(pair) for pair in partition_pairs(member.target)]
    for key, field in _CLIENT_KEYS.items():
        if (value := getattr(member.client, field)) is not None:
            document[key] = value
    if member.assumed:
        document["assumed"] = list(map(str, member.assumed))
    return document


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
    entries = as_array(value, where, expected="a list of [topic, partition] or an object")
    if not entries:
        return NO_PARTITIONS
    return pack_partitions(entries) or _parse_entries(entries, where)


def pack_partitions(entries: Sequence[Any]) -> Partitions | None:
    """Convert [topic, number] pairs to `Partitions`, which are stored in columns.

    Return None if the list is empty or contains an invalid pair.
    """
    if not has_only(list, entries) or set(map(len, entries)) != {2}:
        return None
    topics, numbers = zip(*entries, strict=True)
    if not has_only(str, topics) or not has_only(int, numbers) or not _in_range(numbers):
        return None
    return Partitions.from_columns(topics, numbers)


def partition_pairs(partitions: Partitions) -> list[tuple[str, int]]:
    """Return the partitions as (topic, number) pairs for a JSON array."""
    topics = map(partitions.topics.__getitem__, partitions.codes.tolist())
    return list(zip(topics, partitions.numbers.tolist(), strict=True))


def _parse_entries(entries: Sequence[Any], where: str) -> Partitions:
    """Read [topic, number] pairs one by one. Raise InputError for an invalid pair."""
    for index, entry in enumerate(entries):
        match entry:
            case [str(), number]:
                as_integer(number, f"{where}[{index}]")
            case _:
                raise InputError(
                    f"{where}[{index}]: expected [topic, partition number], "
                    f"got {format_value(entry)}"
                )
    _check_range([number for _, number in entries], where)
    return Partitions.of(entries)


def _in_range(numbers: Sequence[int]) -> bool:
    return not numbers or 0 <= min(numbers) <= max(numbers) <= MAX_PARTITIONS


def _check_range(numbers: Sequence[int], where: str) -> None:
    if not _in_range(numbers):
        index, bad = next((i, n) for i, n in enumerate(numbers) if not 0 <= n <= MAX_PARTITIONS)
        raise InputError(
            f"{where}[{index}]: partition number must be from 0 to {MAX_PARTITIONS}, got {bad!r}"
        )


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
