"""Read and write the members of group documents."""

from collections.abc import Callable, Mapping
from typing import Any

from kassay.reference.documents.document_fields import (
    as_integer,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    has_only,
)
from kassay.reference.documents.partition_lists import (
    pack_partitions,
    parse_partitions,
    partition_pairs,
)
from kassay.reference.model.client import NO_CLIENT, Client
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Member


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
_KEYS = ("id", "topics", "owned", *_SCALARS, "streams", "target", *_CLIENT_KEYS)


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
