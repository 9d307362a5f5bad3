"""Ports of the assignors of other kinds of groups than consumer groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kassay.reference.assignors.connect import assign_eagerly, assign_incrementally
from kassay.reference.assignors.share import assign_share_group
from kassay.reference.assignors.streams import assign_application
from kassay.reference.documents.kind_documents import Kind, KindDocument


@dataclass(frozen=True, slots=True)
class KindPort:
    """A port, the kind of its documents, and the function that returns its answer."""

    kind: Kind
    assign: Callable[[KindDocument], Mapping[str, object]]


KIND_PORTS = {
    "share": KindPort(Kind.SHARE, assign_share_group),
    "connect-incremental": KindPort(Kind.CONNECT, assign_incrementally),
    "connect-eager": KindPort(Kind.CONNECT, assign_eagerly),
    "streams-high-availability": KindPort(Kind.STREAMS, assign_application),
}
"""The ports by name."""
