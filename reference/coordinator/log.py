"""The log that outlives a coordinator: one partition of ``__consumer_offsets``."""

from collections.abc import Iterator
from typing import Protocol

from kassay.reference.java.strings import string_hash

PARTITIONS = 50
"""``offsets.topic.num.partitions`` by default."""


class LogRecord(Protocol):
    """What can be written: a key, and a value or None to delete the key."""

    @property
    def key(self) -> bytes:
        """Bytes of the key."""

    @property
    def value(self) -> bytes | None:
        """Bytes of the value; None for a tombstone."""


def partition_of(group: str, partitions: int = PARTITIONS) -> int:
    """Return the partition of ``__consumer_offsets`` that a group lives in.

    Examples
    --------
    >>> partition_of("my-group"), partition_of("group-01")
    (12, 45)
    """
    hashed = string_hash(group)
    # Math.abs of the smallest int is negative; Kafka takes 0 for it.
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions


class Log:
    """A compacted log: of each key, the newest record.

    Records are kept as they are and become bytes when they are read again, as by the
    coordinator that takes over.

    Parameters
    ----------
    history
        Whether to keep every record ever written, as tests and reports want.
    """

    __slots__ = ("_history", "_records", "writes")

    def __init__(self, *, history: bool = False) -> None:
        self._records: dict[object, LogRecord] = {}
        self._history: list[LogRecord] | None = [] if history else None
        self.writes = 0

    def append(self, identity: object, record: LogRecord) -> None:
        """Write a record; ``identity`` stands for its key, which is costlier to compare."""
        self.writes += 1
        self._records.pop(identity, None)
        self._records[identity] = record
        if self._history is not None:
            self._history.append(record)

    @property
    def history(self) -> tuple[LogRecord, ...]:
        """Every record written, oldest first; empty unless asked for."""
        return tuple(self._history or ())

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what a reader finds, oldest first: keys and values in bytes."""
        for record in self._records.values():
            value = record.value
            if value is not None:
                yield record.key, value
