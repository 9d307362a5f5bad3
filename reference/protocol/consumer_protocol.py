"""What consumers put into the opaque fields of the classic protocol.

The coordinator compares and stores these; only the leader reads them. Formats:
ConsumerProtocolSubscription and ConsumerProtocolAssignment version 3, and the user data
of Kafka's sticky assignors.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol import primitive_types as wire

VERSION = 3


class StickyUserData(NamedTuple):
    """User data of a sticky assignor: what the member was last given, and in which generation.

    ``partitions`` is None for the cooperative one, whose subscription has them.
    """

    partitions: Partitions | None
    generation: int


class ConsumerSubscription(NamedTuple):
    """What a consumer tells the leader when it joins.

    Parameters
    ----------
    topics
        Topics it consumes, sorted by name as Java's consumer sends them.
    owned
        Partitions that it goes on consuming while it joins; none under eager rebalancing.
    generation
        Generation of ``owned``.
    rack
        ``client.rack``.
    memory
        User data of a sticky assignor.
    """

    topics: tuple[str, ...]
    owned: Partitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None
    memory: StickyUserData | None = None

    def encode(self) -> bytes:
        """Write it as the coordinator gets it.

        Examples
        --------
        >>> sent = ConsumerSubscription(
        ...     ("orders",), owned=Partitions.of([("orders", 2)]), generation=7
        ... )
        >>> ConsumerSubscription.decode(sent.encode()) == sent
        True
        """
        return b"".join(
            (
                wire.integer(VERSION, "h"),
                wire.array(map(wire.text, self.topics)),
                wire.blob(None if self.memory is None else encode_sticky_user_data(self.memory)),
                _encode_partitions(self.owned),
                wire.integer(self.generation, "i"),
                wire.text(self.rack),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> "ConsumerSubscription":
        """Read what `encode` writes, of version 3 or a later one."""
        reader = _versioned(data)
        topics = tuple(reader.array(reader.text))
        user_data = reader.blob()
        return cls(
            topics,
            owned=_decode_partitions(reader),
            generation=reader.integer("i"),
            rack=reader.optional_text(),
            memory=None if user_data is None else decode_sticky_user_data(user_data),
        )


def encode_assignment(assigned: Partitions) -> bytes:
    """Write a member's assignment; no bytes at all if it has none.

    Examples
    --------
    >>> decode_assignment(encode_assignment(Partitions.of([("t", 3), ("t", 1)])))
    Partitions([t-3, t-1])
    """
    if not len(assigned):
        return b""
    return wire.integer(VERSION, "h") + _encode_partitions(assigned) + wire.blob(None)


def decode_assignment(data: bytes) -> Partitions:
    """Read what `encode_assignment` writes."""
    return _decode_partitions(_versioned(data)) if data else NO_PARTITIONS


def _versioned(data: bytes) -> wire.Reader:
    reader = wire.Reader(data)
    version = reader.integer("h")
    if version < VERSION:
        raise wire.CorruptRecordError(f"consumer protocol version {version} is not read here")
    return reader


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, topics and numbers in the order they come."""
    table: dict[str, list[int]] = {}
    for topic, number in partitions:
        table.setdefault(topic, []).append(number)
    return table


def _encode_partitions(partitions: Partitions) -> bytes:
    return wire.array(
        wire.text(topic) + wire.array(wire.integer(number, "i") for number in numbers)
        for topic, numbers in by_topic(partitions).items()
    )


def _decode_partitions(reader: wire.Reader) -> Partitions:
    def pairs() -> Iterator[tuple[str, int]]:
        for topic, numbers in reader.array(
            lambda: (reader.text(), reader.array(lambda: reader.integer("i")))
        ):
            for number in numbers:
                yield topic, number

    return Partitions.of(pairs())


def encode_sticky_user_data(memory: StickyUserData) -> bytes:
    """Write user data of version 1, as a sticky assignor sends them when its consumer joins.

    Examples
    --------
    >>> data = encode_sticky_user_data(StickyUserData(Partitions.of([("t", 3)]), 7))
    >>> data.hex(" ", -4)
    '00000001 00017400 00000100 00000300 000007'
    >>> decode_sticky_user_data(data)
    StickyUserData(partitions=Partitions([t-3]), generation=7)
    """
    if memory.partitions is None:
        return wire.integer(memory.generation, "i")
    return _encode_partitions(memory.partitions) + wire.integer(memory.generation, "i")


def decode_sticky_user_data(data: bytes) -> StickyUserData:
    """Read what `encode_sticky_user_data` writes."""
    reader = wire.Reader(data)
    if reader.rest == 4:
        return StickyUserData(None, reader.integer("i"))
    return StickyUserData(_decode_partitions(reader), reader.integer("i"))
