"""Ports of ``ClientState`` and ``ConstrainedPrioritySet``: processes, their tasks and loads.

Upstream: org.apache.kafka.streams.processor.internals.assignment, kafka-streams 4.2 to 4.3.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kassay.reference.documents.kind_documents import TaskId
from kassay.reference.java.hash_codes import uuid_key


@dataclass(slots=True)
class ClientState:
    """A process: its state of each stateful task, and the tasks that it is assigned.

    Parameters
    ----------
    id
        The 128 bits of the process id.
    capacity
        Number of threads.
    lags
        Lag per stateful task, in records; `RUNNING` for active tasks.
    """

    id: int
    capacity: int
    lags: Mapping[TaskId, int]
    tags: Mapping[str, str]
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)

    def has_assigned(self, task: TaskId) -> bool:
        """Return whether the process has the task, active or standby."""
        return task in self.active or task in self.standby

    @property
    def assigned_count(self) -> int:
        """Number of active and standby tasks."""
        return len(self.active) + len(self.standby)

    @property
    def assigned_load(self) -> float:
        """Number of active and standby tasks per thread."""
        return self.assigned_count / self.capacity

    @property
    def active_load(self) -> float:
        """Number of active tasks per thread."""
        return len(self.active) / self.capacity


class ConstrainedPrioritySet:
    """Processes by load. Ties are broken by process id, as signed UUIDs.

    ``weight`` returns the load. ``constraint`` returns whether a process may take a task.
    """

    def __init__(
        self,
        constraint: Callable[[ClientState, TaskId], bool],
        weight: Callable[[ClientState], float],
    ) -> None:
        self._constraint = constraint
        self._weight = weight
        self._clients: dict[int, ClientState] = {}

    def poll(
        self, task: TaskId, extra: Callable[[ClientState], bool] = lambda _: True
    ) -> ClientState | None:
        """Remove and return the allowed process with the lowest load, or return None."""
        allowed = (c for c in self._clients.values() if self._constraint(c, task) and extra(c))
        client = min(allowed, key=lambda c: (self._weight(c), uuid_key(c.id)), default=None)
        if client is not None:
            del self._clients[client.id]
        return client

    def offer_all(self, clients: Iterable[ClientState]) -> None:
        """Add processes, each at most once."""
        self._clients.update((client.id, client) for client in clients)
