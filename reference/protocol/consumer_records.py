"""The records of a KIP-848 group in ``__consumer_offsets``, types 3 and 5 to 8.

All values are of version 0 with compact fields; keys are not compact. Partitions go by
topic id.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from kassay.reference.coordinator.consumer.reconciliation import ConsumerMember
from kassay.reference.protocol import primitive_types as wire

GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT = 3, 5, 6, 7, 8

TopicNumbers = tuple[tuple[UUID, tuple[int, ...]], ...]
"""Partition numbers by topic id."""


class ConsumerRecord(NamedTuple):
    """One record; ``body`` is None for a tombstone.

    Parameters
    ----------
    kind
        Type of the record, which its key begins with.
    group
        Group id.
    member
        Member id; empty for the records of the group as a whole.
    body
        The value without its version.
    """

    kind: int
    group: str
    member: str
    body: bytes | None

    @property
    def key(self) -> bytes:
        """Key of the record."""
        of_member = wire.text(self.member) if self.kind in (MEMBER, TARGET, CURRENT) else b""
        return wire.integer(self.kind, "h") + wire.text(self.group) + of_member

    @property
    def value(self) -> bytes | None:
        """Value of the record; None for a tombstone."""
        return None if self.body is None else wire.integer(0, "h") + self.body


class UnorderedRecord:
    """A record that is made when it is read; most are overwritten before.

    Parameters
    ----------
    make
        Makes the record; what it is made of must not change.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], ConsumerRecord]) -> None:
        self._make = make

    @property
    def key(self) -> bytes:
        """Key of the record."""
        return self._make().key

    @property
    def value(self) -> bytes | None:
        """Value of the record; None for a tombstone."""
        return self._make().value


def group_epoch(group: str, epoch: int, metadata_hash: int) -> ConsumerRecord:
    """Record the epoch of a group, and a hash of the topics that it was made for."""
    hashed = wire.tags([(0, wire.integer(metadata_hash, "q"))])
    return ConsumerRecord(GROUP, group, "", wire.integer(epoch, "i") + hashed)


def target_epoch(group: str, epoch: int, moment: int) -> ConsumerRecord:
    """Record the epoch of a target assignment, and when it was made."""
    made = wire.tags([(0, wire.integer(moment, "q"))])
    return ConsumerRecord(TARGET_EPOCH, group, "", wire.integer(epoch, "i") + made)


def member_metadata(group: str, member: ConsumerMember) -> ConsumerRecord:
    """Record who a member is and what it subscribes to."""
    body = b"".join(
        (
            wire.text(member.instance_id, compact=True),
            wire.text(member.rack, compact=True),
            wire.text(member.client, compact=True),
            wire.text(f"/{member.client}", compact=True),
            wire.array((wire.text(t, compact=True) for t in member.subscription), compact=True),
            wire.text("", compact=True),
            wire.integer(member.rebalance_timeout, "i"),
            wire.text(None, compact=True),
            wire.tags(),
        )
    )
    return ConsumerRecord(MEMBER, group, member.id, body)


def target_assignment(group: str, member_id: str, partitions: TopicNumbers) -> ConsumerRecord:
    """Record what a member shall have."""
    return ConsumerRecord(TARGET, group, member_id, _numbers(partitions) + wire.tags())


def current_assignment(
    group: str, member: ConsumerMember, assigned: TopicNumbers, revoking: TopicNumbers
) -> ConsumerRecord:
    """Record what a member has, and where it stands."""
    body = b"".join(
        (
            wire.integer(member.epoch, "i"),
            wire.integer(member.previous_epoch, "i"),
            wire.integer(int(member.state), "b"),
            _numbers(assigned),
            _numbers(revoking),
            wire.tags(),
        )
    )
    return ConsumerRecord(CURRENT, group, member.id, body)


def tombstones(group: str, member_id: str) -> Iterable[ConsumerRecord]:
    """Delete all that is kept of a member."""
    return (ConsumerRecord(kind, group, member_id, None) for kind in (CURRENT, TARGET, MEMBER))


def read_key(key: bytes) -> tuple[int, str, str]:
    """Read type, group and member of a key.

    Examples
    --------
    >>> read_key(group_epoch("g", 3, 0).key)
    (3, 'g', '')
    """
    reader = wire.Reader(key)
    kind, group = reader.integer("h"), reader.text()
    return kind, group, reader.text() if kind in (MEMBER, TARGET, CURRENT) else ""


def read_value(value: bytes) -> wire.Reader:
    """Return a reader that stands behind the version of a value."""
    reader = wire.Reader(value)
    version = reader.integer("h")
    if version:
        raise wire.CorruptRecordError(f"value version {version} is not read here")
    return reader


def read_numbers(reader: wire.Reader) -> TopicNumbers:
    """Read partition numbers by topic id."""

    def topic() -> tuple[UUID, tuple[int, ...]]:
        entry = reader.uuid(), tuple(reader.array(lambda: reader.integer("i"), compact=True))
        reader.tags()
        return entry

    return tuple(reader.array(topic, compact=True))


def _numbers(partitions: TopicNumbers) -> bytes:
    return wire.array(
        (
            topic.bytes
            + wire.array((wire.integer(number, "i") for number in numbers), compact=True)
            + wire.tags()
            for topic, numbers in partitions
        ),
        compact=True,
    )
