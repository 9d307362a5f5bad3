"""Read and write the topics of group documents."""

import base64
import binascii
import uuid

from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_optional_text,
    as_text,
    check_keys,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Topic


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
