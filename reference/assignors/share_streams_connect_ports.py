"""Ports of the assignors of families other than consumer groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kassay.reference.assignors.connect import simulated_cluster
from kassay.reference.assignors.share import simple
from kassay.reference.assignors.streams import high_availability
from kassay.reference.documents.family_documents import FamilyDocument, Kind


@dataclass(frozen=True, slots=True)
class FamilyPort:
    """A port, the kind of its documents, and the function that returns its answer."""

    kind: Kind
    assign: Callable[[FamilyDocument], Mapping[str, object]]


FAMILY_PORTS = {
    "share": FamilyPort(Kind.SHARE, simple.assign_document),
    "connect-incremental": FamilyPort(Kind.CONNECT, simulated_cluster.assign_incrementally),
    "connect-eager": FamilyPort(Kind.CONNECT, simulated_cluster.assign_eagerly),
    "streams-high-availability": FamilyPort(Kind.STREAMS, high_availability.assign_document),
}
"""The ports by name."""
