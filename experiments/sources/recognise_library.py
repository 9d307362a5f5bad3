"""Recognise the client library that a member uses."""

import re

from kassay.experiments.implementations.client_libraries import NAMES_IN_PROTOCOL
from kassay.reference.documents.files import read_data_file
from kassay.reference.protocol.message_decoder import Fields, has_version_prefix

_PATTERNS = [
    (name, re.compile(form)) for name, form in read_data_file(__package__, "libraries.txt")
]
LIBRARIES = frozenset(name for name, _ in _PATTERNS)
# Assignors that only one library has.
_ASSIGNORS = {name: library for library, name in NAMES_IN_PROTOCOL.items()}
_NULL = b"\xff\xff\xff\xff"
_UUID_SUFFIX = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def recognise_library(
    client_id: str | None, *, member_id: str | None = None, assignor: str | None = None
) -> str | None:
    """Recognise a client library by client id, member id or assignor, or return None.

    A member id of the classic protocol consists of the client id and a UUID. It is used if the
    source does not show the client id. If an application sets ``client.id``, its library is
    recognised only by an assignor that no other library has.
    """
    if client_id is None and member_id is not None:
        client_id = client_id_of(member_id)
    found = (name for name, form in _PATTERNS if form.fullmatch(client_id or ""))
    return next(found, _ASSIGNORS.get(assignor or ""))


def client_id_of(member_id: str) -> str | None:
    """Return the client id at the start of a classic member id, or None."""
    found = _UUID_SUFFIX.search(member_id)
    return member_id[: found.start()] if found else None


def library_of_subscription(fields: Fields, data: bytes) -> str | None:
    """Recognise a client library by the subscription that it encodes, or return None.

    ``fields`` contains the decoded fields, ``data`` the encoded bytes. kafka-go ends version 1
    after the user data, librdkafka sends the empty rack, and kafka-python writes a version
    before the sticky user data.
    """
    version, user_data = fields["version"], fields["user_data"]
    if version == 1 and user_data is None and data.endswith(_NULL):
        return "kafka-go"
    if fields["rack"] == "" and user_data is not None:
        return "librdkafka"
    if version == 0 and user_data and has_version_prefix(user_data):
        return "kafka-python"
    return None
