"""Identify the assignor that a group uses, and the program that runs it."""

from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.implementations.client_libraries import (
    driver_command,
    is_installed,
    libraries,
    parse_library_assignor,
    parse_library_version,
)
from kassay.reference.assignors import ASSIGNORS, RebalanceProtocol, kafka_name
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Protocol

_JAVA = "java"
_BROKER_ASSIGNORS = frozenset(
    name for name, port in ASSIGNORS.items() if port.protocol is RebalanceProtocol.CONSUMER
)
_CLASSIC = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
OFFERED = {
    _JAVA: frozenset(ASSIGNORS),
    "librdkafka": {"range", "roundrobin", "cooperative-sticky"} | _BROKER_ASSIGNORS,
    "sarama": _CLASSIC,
    "franz-go": _CLASSIC,
    "kafka-go": {"range", "roundrobin"},
    "kafkajs": frozenset[str](),
    "kafka-python": _CLASSIC,
    "aiokafka": {"range", "roundrobin", "sticky"},
    "kafka-streams": frozenset[str](),
}
"""Names of the ported assignors that each client library offers."""
_WITHOUT_STATIC_MEMBERS = frozenset({"kafka-go", "kafkajs"})
"""Client libraries without ``group.instance.id``."""
DEFAULT_LIST = ("range", "cooperative-sticky")
"""Default of ``partition.assignment.strategy`` of the Java client."""


class Implementation(StrEnum):
    """Kind of program that runs the assignor of a group, such as the broker."""

    BROKER = "broker"
    JAVA = "java"
    OTHER = "other"  # at least one member has another client library
    UNKNOWN = "unknown"  # the client library of at least one member is not known


_EXACT = (Implementation.BROKER, Implementation.JAVA)
"""Implementations with the same results as kassay's ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedAssignor:
    """Assignor that a group uses, and the program that runs it.

    ``name`` is a name for ``kassay.assign``, or None if the source shows no assignor.
    ``libraries`` are the recognised client libraries of the members. ``client`` is the library,
    with its version, that ran its own assignors on the group.
    """

    name: str | None
    implementation: Implementation
    libraries: tuple[str, ...]
    client: str | None = None

    @property
    def port(self) -> str | None:
        """Return the name of the port of this assignor, or None."""
        return self.name if self.name in ASSIGNORS else None

    @property
    def is_ported(self) -> bool:
        """Return whether kassay has an exact port of the group's assignor."""
        return self.port is not None and self.implementation in _EXACT

    def offers(self, assignor: str) -> bool:
        """Return whether all known client libraries of the members contain an assignor."""
        return all(assignor in OFFERED.get(one, (assignor,)) for one in self.libraries)

    @property
    def has_static_members(self) -> bool:
        """Return whether all known client libraries of the members support static members."""
        return _WITHOUT_STATIC_MEMBERS.isdisjoint(self.libraries)

    def record(self) -> dict[str, object]:
        """Convert the assignor to JSON."""
        return {
            "name": self.name,
            "implementation": str(self.implementation),
            "libraries": list(self.libraries),
            "is_ported": self.is_ported,
            "description": str(self),
        }

    def __str__(self) -> str:
        """Describe the assignor, and state whether its results can differ from the port's."""
        if self.name is None:
            text = "The source does not show the assignor that the group runs."
            is_known = self.implementation in _EXACT
            return text if is_known else f"{text} {self._results('each assignor')}"
        if self.implementation is Implementation.BROKER:
            own = kafka_name(self.name)
            alias = "" if own == self.name else f" (kassay's name: {self.name})"
            return f"The broker assigns the partitions, with {own}{alias}."
        origin = "; its client library is not known"
        if self.implementation is Implementation.JAVA:
            origin = " of the Java client"
        elif self.implementation is Implementation.OTHER:
            names = ", ".join(self.libraries)
            origin = f" of {names}"
            if len(self.libraries) > 1:
                origin = f"; its members have several client libraries: {names}"
        text = f"The group runs {self.name}{origin}."
        if self.port is None:
            return f"{text} kassay has no port of this assignor."
        return text if self.is_ported else f"{text} {self._results(self.name)}"

    def _results(self, name: str) -> str:
        if self.client is not None:
            library = self.client.partition("@")[0]
            return (
                f"The results of names with {library} in this output are those of {self.client}; "
                "all other results are those of the Java client and the broker."
            )
        is_one = self.implementation is Implementation.OTHER and len(self.libraries) == 1
        other = self.libraries[0] if is_one else "another library"
        return (
            f"The results of {name} in this output are those of the Java client; {other} can "
            "assign other partitions."
        )


def lists_default_assignors(own: IdentifiedAssignor, name: str | None) -> bool:
    """Return whether the members may have the Java client's default list of assignors.

    The list is range and cooperative-sticky. The change to cooperative-sticky then takes one
    rolling restart.
    """
    return name == DEFAULT_LIST[0] and set(own.libraries) <= {_JAVA}


def runs_in_client(name: str) -> bool:
    """Return whether an assignor runs in a client, not in the broker."""
    return name not in _BROKER_ASSIGNORS


def installed_client(group: Group) -> str | None:
    """Return the client library that all members use, or None if it is not installed."""
    own = identify_assignor(group)
    client = own.libraries[0] if len(own.libraries) == 1 else ""
    if own.implementation is not Implementation.OTHER or client not in libraries():
        return None
    library, version = parse_library_version(client)
    has_assignors = bool(library.assignors_of(version))
    return client if has_assignors and is_installed(library, version) else None


def client_assignors(client: str) -> tuple[str, ...]:
    """Return the assignors of an installed client library.

    Raise InputError if it is unknown, not installed, or has no assignor for consumer groups.
    """
    library, version = parse_library_version(client)
    if not library.assignors_of(version):
        raise InputError(
            f"{library.name} {version} has no assignor of consumer groups; choose another library"
        )
    names = tuple(f"{library.name}@{version}:{name}" for name in library.assignors_of(version))
    driver_command(parse_library_assignor(names[0]))
    return names


def identify_assignor(group: Group, *, client: str | None = None) -> IdentifiedAssignor:
    """Identify the assignor that a group uses, and the program that runs it.

    In the classic protocol, the client library of the leader computes the assignment.
    ``client`` is the library whose own assignors were run on the group, with its version.
    """
    name = group.status.registered_assignor
    found = {member.client.library for member in group.members}
    recognised = tuple(sorted(library for library in found if library is not None))
    if group.status.protocol is Protocol.CONSUMER or name in _BROKER_ASSIGNORS:
        implementation = Implementation.BROKER
    elif set(recognised) - {_JAVA}:
        implementation = Implementation.OTHER
    elif found == {_JAVA}:
        implementation = Implementation.JAVA
    else:
        implementation = Implementation.UNKNOWN
    return IdentifiedAssignor(
        name=name, implementation=implementation, libraries=recognised, client=client
    )
