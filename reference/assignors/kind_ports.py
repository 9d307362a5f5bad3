"""Ports of the assignors of other kinds of groups than consumer groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kassay.reference.assignors.connect import simulated_cluster
from kassay.reference.assignors.share import simple
from kassay.reference.assignors.streams import high_availability
from kassay.reference.documents.kind_documents import Kind, KindDocument


@dataclass(frozen=True, slots=True)
class KindPort:
    """A port, the kind of its documents, and the function that returns its answer."""

    kind: Kind
    assign: Callable[[KindDocument], Mapping[str, object]]


KIND_PORTS = {
    "share": KindPort(Kind.SHARE, simple.assign_document),
    "connect-incremental": KindPort(Kind.CONNECT, simulated_cluster.assign_incrementally),
    "connect-eager": KindPort(Kind.CONNECT, simulated_cluster.assign_eagerly),
    "streams-high-availability": KindPort(Kind.STREAMS, high_availability.assign_document),
}
"""The ports by name."""
