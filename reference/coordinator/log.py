"""Compacted log of a coordinator: one partition of ``__consumer_offsets``."""

from collections.abc import Iterator
from typing import Protocol


class LogRecord(Protocol):
    """A record with a key, and a value or None as tombstone."""

    @property
    def key(self) -> bytes:
        """Encoded key."""

    @property
    def value(self) -> bytes | None:
        """Encoded value; None for a tombstone."""


class Log:
    """Log that keeps the newest record per key; records are encoded when they are read.

    With ``history`` it also keeps every record that was written.
    """

    __slots__ = ("_history", "_records", "writes")

    def __init__(self, *, history: bool = False) -> None:
        self._records: dict[object, LogRecord] = {}
        self._history: list[LogRecord] | None = [] if history else None
        self.writes = 0

    def append(self, identity: object, record: LogRecord) -> None:
        """Append a record; ``identity`` replaces its key, which is slower to compare."""
        self.writes += 1
        self._records.pop(identity, None)
        self._records[identity] = record
        if self._history is not None:
            self._history.append(record)

    @property
    def history(self) -> tuple[LogRecord, ...]:
        """All records written, oldest first; empty without ``history``."""
        return tuple(self._history or ())

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield encoded keys and values of the current records, oldest first."""
        for record in self._records.values():
            value = record.value
            if value is not None:
                yield record.key, value
