"""Owned partitions that the leader reads if the members of a group use several libraries.

The leader's library assigns. It reads the owned partitions of a member of another library only if
the member sends them, and in a format that the leader decodes. The rules are those of
docs/results/clients.md, which real groups on a broker confirm.
"""

from dataclasses import replace

from kassay.experiments.implementations.library_catalogue import (
    Library,
    LibraryAssignor,
    libraries,
    parse_library_assignor,
    version_key,
)
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Member
from kassay.reference.model.topic_partitions import NO_PARTITIONS

_SENDS_NO_STICKY_CLAIMS = "franz-go"
_SENDS_DATA_OF_ITS_LEADER = "sarama"
_SEND_EMPTY_DATA = ("aiokafka", "kafka-python")
_OTHER_NAMES = {"kafkajs": "RoundRobinAssigner"}
"""Name of the assignor in the JoinGroup request, by library, if it differs from Kafka's name."""


def library_assignor(library: str, assignor: str) -> LibraryAssignor:
    """Return the assignor with which a member of a library joins a group of several libraries.

    Raises
    ------
    InputError
        If the library has no such assignor, or gives it another name than the other libraries.
    """
    parsed = parse_library_assignor(f"{library}:{assignor}")
    parsed.check_kind()
    name = _OTHER_NAMES.get(parsed.library.name)
    if name is not None:
        raise InputError(
            f"{parsed.library.name} names its assignor {name}, "
            "so its members cannot join a group of other libraries"
        )
    return parsed


def java_assignor(assignor: str) -> LibraryAssignor | None:
    """Return the assignor of the newest Java client that a port equals, None for other names."""
    offered = libraries()["kafka-clients"].assignors
    return parse_library_assignor(f"kafka-clients:{assignor}") if assignor in offered else None


def member_as_leader_reads_it(
    member: Member, sender: LibraryAssignor, leader: LibraryAssignor, earlier_leader: Library | None
) -> Member:
    """Return a member with the owned partitions and the generation that the leader reads.

    Parameters
    ----------
    member
        The member with its owned partitions.
    sender
        The assignor of the member.
    leader
        The assignor of the leader.
    earlier_leader
        Library of the leader that assigned the owned partitions; None if it is unknown.

    Raises
    ------
    UpstreamError
        If the leader fails because of this member.
    """
    _check_readable(member, sender, leader)
    if sender.assignor.name == "sticky" and not _is_read(sender, leader, earlier_leader):
        return replace(member, owned=NO_PARTITIONS, generation=NO_GENERATION)
    if not _sends_generation(sender):
        return replace(member, generation=NO_GENERATION)
    return member


def _check_readable(member: Member, sender: LibraryAssignor, leader: LibraryAssignor) -> None:
    is_java = leader.library.name == "kafka-clients" and version_key(leader.version) >= (2, 4)
    if is_java and sender.library.name == "kafka-go":
        detail = f"the subscription of {member.id!r} ends before its owned partitions"
        raise UpstreamError(None, f"SchemaException: {detail}")
    is_sarama = leader.library.name == "sarama" and leader.assignor.name == "sticky"
    has_empty_data = sender.library.name in _SEND_EMPTY_DATA and not len(member.owned)
    if is_sarama and (has_empty_data or _has_version_prefix(sender)):
        raise UpstreamError(None, f"sarama cannot decode the user data of {member.id!r}")


def _is_read(
    sender: LibraryAssignor, leader: LibraryAssignor, earlier_leader: Library | None
) -> bool:
    """Return whether the leader reads the owned partitions in user data of `sticky`."""
    if sender.library.name == _SENDS_NO_STICKY_CLAIMS:
        return False
    if sender.library.name == _SENDS_DATA_OF_ITS_LEADER and earlier_leader is not sender.library:
        return False
    return _has_version_prefix(sender) == _has_version_prefix(leader)


def _has_version_prefix(assignor: LibraryAssignor) -> bool:
    return assignor.library.name == "kafka-python" and version_key(assignor.version) >= (3,)


def _sends_generation(sender: LibraryAssignor) -> bool:
    name = sender.library.name
    is_cooperative = sender.assignor.name == "cooperative-sticky"
    return not (name == "aiokafka" or (name == "kafka-python" and is_cooperative))
