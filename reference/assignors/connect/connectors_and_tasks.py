"""Connectors and tasks of a Connect cluster, in the order of Kafka's collections."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from kassay.reference.java.hash_codes import utf16_key

Task = tuple[str, int]
"""Connector and number of a task."""


@dataclass(slots=True)
class ConnectorsAndTasks:
    """Two sets with the order of insertion, as the keys of dictionaries."""

    connectors: dict[str, None] = field(default_factory=dict)
    tasks: dict[Task, None] = field(default_factory=dict)

    @classmethod
    def of(cls, connectors: Iterable[str], tasks: Iterable[Task]) -> Self:
        """Return the distinct connectors and tasks in the given order."""
        return cls(dict.fromkeys(connectors), dict.fromkeys(tasks))

    @classmethod
    def configured(cls, connectors: Mapping[str, int]) -> Self:
        """Return sorted connectors and their tasks, from numbers of tasks per connector."""
        names = sorted(connectors, key=utf16_key)
        return cls.of(
            names, ((name, number) for name in names for number in range(connectors[name]))
        )

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __len__(self) -> int:
        return len(self.connectors) + len(self.tasks)

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(dict(self.connectors), dict(self.tasks))

    def add(self, other: "ConnectorsAndTasks") -> None:
        """Append the entries that are missing."""
        self.connectors.update(other.connectors)
        self.tasks.update(other.tasks)

    def remove(self, other: "ConnectorsAndTasks") -> None:
        """Remove the entries of another set."""
        for connector in other.connectors:
            self.connectors.pop(connector, None)
        for task in other.tasks:
            self.tasks.pop(task, None)

    def without(self, *others: "ConnectorsAndTasks") -> Self:
        """Return the entries that no other set contains, in the same order."""
        left = self.copy()
        for other in others:
            left.remove(other)
        return left

    def common(self, other: "ConnectorsAndTasks") -> Self:
        """Return the entries that another set contains too."""
        return self.without(self.without(other))

    def sorted(self) -> Self:
        """Return the entries in the order of names and numbers."""
        return self.of(sorted(self.connectors, key=utf16_key), sorted(self.tasks, key=task_key))

    def document(self) -> dict[str, list[str]]:
        """Return the JSON value of an answer."""
        entries = self.sorted()
        return {
            "connectors": list(entries.connectors),
            "tasks": [f"{connector}-{number}" for connector, number in entries.tasks],
        }


def task_key(task: Task) -> tuple[bytes, int]:
    """Return a sort key that orders tasks like ``ConnectorTaskId.compareTo``."""
    return utf16_key(task[0]), task[1]
