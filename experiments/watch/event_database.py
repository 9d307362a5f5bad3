"""Store the history of watched groups in an SQLite database."""

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from threading import RLock
from typing import Any

from kassay.reference.model.errors import InputError, RunError

_SCHEMA = files(__package__).joinpath("schema.sql")
DOCUMENT = "document"
"""Kind of state with the last document of each stable group."""
GENERATION = "generation"
"""Kind of state with the generation of the last document, if a record has shown it."""
POSITION = "position"
"""Kind of state with the next offset of each partition of ``__consumer_offsets``."""
_SECONDS_PER_DAY = 86_400.0


class Store:
    """SQLite database of a watcher, which is created if it does not exist.

    Events are deleted after ``days`` days. Raise InputError if the file is not a database.
    """

    def __init__(self, path: Path, *, days: float = 30.0) -> None:
        self._path, self._seconds, self._lock = path, days * _SECONDS_PER_DAY, RLock()
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, timeout=10)
            self._connection.executescript(_SCHEMA.read_text("utf-8"))
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot open the database: {error}") from None

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all changes of the ``with`` block, or no change if the block fails."""
        try:
            with self._lock, self._connection:
                yield
        except sqlite3.Error as error:
            raise RunError(f"{self._path}: cannot write the database: {error}") from None

    def key(self) -> str:
        """Return the secret key for the hashes of names."""
        with self.transaction():
            row = ("key", "", "", secrets.token_hex(32))
            self._rows("INSERT OR IGNORE INTO state VALUES (?, ?, ?, ?)", *row)
        [(_, _, key)] = self.values("key")
        return str(key)

    def values(self, kind: str) -> list[tuple[str, str, Any]]:
        """Return the group, label and value of each entry of a kind."""
        query = "SELECT group_id, label, value FROM state WHERE kind = ? ORDER BY group_id, label"
        return self._rows(query, kind)

    def put(self, kind: str, group: str, value: object, *, label: str | int = "") -> None:
        """Store a value, which replaces the previous value of the same kind, group and label."""
        self._rows("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)", kind, group, label, value)

    def remove(self, kind: str) -> None:
        """Remove all values of a kind."""
        self._rows("DELETE FROM state WHERE kind = ?", kind)

    def add_total(self, kind: str, group: str, value: float, *, label: str = "") -> None:
        """Add a value to a stored total, which continues after a restart of the watcher."""
        query = (
            "INSERT INTO state VALUES (?, ?, ?, ?) "
            "ON CONFLICT (kind, group_id, label) DO UPDATE SET value = value + excluded.value"
        )
        self._rows(query, kind, group, label, value)

    def remove_group(self, group: str) -> None:
        """Remove the document and the totals of a deleted group."""
        self._rows("DELETE FROM state WHERE group_id = ?", group)

    def add_event(self, time: float, group: str | None, kind: str, **content: object) -> None:
        """Store an event of a group, or of the cluster if ``group`` is None."""
        query = "INSERT INTO events (time, group_id, kind, content) VALUES (?, ?, ?, ?)"
        self._rows(query, time, group, kind, json.dumps(content))

    def events(self, group: str | None = None, *, limit: int = 200) -> list[dict[str, Any]]:
        """Return the newest events of a group, or of all groups if ``group`` is None."""
        where, given = ("WHERE group_id = ?", (group,)) if group is not None else ("", ())
        query = f"SELECT time, group_id, kind, content FROM events {where} ORDER BY id DESC LIMIT ?"  # noqa: S608 - no outside text
        return [
            {"time": time, "group": id, "kind": kind, **json.loads(content)}
            for time, id, kind, content in self._rows(query, *given, limit)
        ]

    def remove_old(self, now: float) -> None:
        """Remove events that are older than the storage period."""
        with self.transaction():
            self._rows("DELETE FROM events WHERE time < ?", now - self._seconds)

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()
