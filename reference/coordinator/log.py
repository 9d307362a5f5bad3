"""Compacted log of a coordinator: one partition of ``__consumer_offsets``."""

from collections.abc import Iterator
from typing import Protocol


class LogRecord(Protocol):
    """Log record: a key, and a value or None for a tombstone."""

    @property
    def key(self) -> bytes:
        """Return the encoded key of the record."""

    @property
    def value(self) -> bytes | None:
        """Return the encoded value of the record, or None for a tombstone."""


class Log:
    """Compacted log, which keeps the newest record per key and encodes records when they are read.

    With ``history`` it also keeps every record that was written.
    """

    __slots__ = ("_history", "_records", "writes")

    def __init__(self, *, history: bool = False) -> None:
        self._records: dict[object, LogRecord] = {}
        self._history: list[LogRecord] | None = [] if history else None
        self.writes = 0

    def append(self, identity: object, record: LogRecord) -> None:
        """Append a record to the log.

        ``identity`` identifies the key of the record and is faster to compare.
        """
        self.writes += 1
        self._records.pop(identity, None)
        self._records[identity] = record
        if self._history is not None:
            self._history.append(record)

    @property
    def history(self) -> tuple[LogRecord, ...]:
        """Return all written records, oldest first.

        The list is empty if the log keeps no history.
        """
        return tuple(self._history or ())

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield encoded keys and values of the current records, oldest first."""
        for record in self._records.values():
            value = record.value
            if value is not None:
                yield record.key, value
