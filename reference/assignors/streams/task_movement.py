"""Port of ``TaskMovement``: tasks run where their state is, until the target has caught up.

Upstream: org.apache.kafka.streams.processor.internals.assignment.TaskMovement,
kafka-streams 4.2 to 4.3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kassay.reference.assignors.streams.client_state import ClientState, ConstrainedPrioritySet
from kassay.reference.documents.kind_documents import TaskId
from kassay.reference.java.hash_codes import uuid_key
from kassay.reference.java.priority_queue import poll_order
from kassay.reference.protocol.streams_messages import RUNNING

_UNBOUNDED = 2**63 - 1


@dataclass(slots=True)
class Movements:
    """Processes with their lags, and the warm-up replicas that are left.

    Parameters
    ----------
    clients
        The processes, sorted by id.
    acceptable_lag
        ``acceptable.recovery.lag``: a process with at most this lag counts as caught up.
    """

    clients: Sequence[ClientState]
    acceptable_lag: int
    remaining_warmups: int
    _warmups: set[tuple[int, TaskId]] = field(default_factory=set)

    def assign_active_task_movements(self) -> int:
        """Move active tasks to processes that are more caught up; return their number."""
        by_load = self._caught_up_by_load()
        needed = self._needed(lambda client: sorted(client.active))
        for task, destination in needed:
            source = by_load.poll(task, lambda client, task=task: task in client.standby)  # type: ignore[misc]
            if source is None:
                source = by_load.poll(task)
            if source is None:
                source = self._by_lag(task)[0]
            destination.active.remove(task)
            if task in source.standby:
                source.standby.remove(task)
                destination.standby.add(task)
            elif self._take_warmup():
                destination.standby.add(task)
                self._warmups.add((destination.id, task))
            source.active.add(task)
            by_load.offer_all([source, destination])
        return len(needed)

    def assign_standby_task_movements(self) -> int:
        """Add standby tasks on processes that are more caught up; return their number."""
        by_load = self._caught_up_by_load()
        moved = 0
        for task, destination in self._needed(self._movable_standbys):
            source = by_load.poll(task, lambda client, task=task: not client.has_assigned(task))  # type: ignore[misc]
            if source is None:
                source = self._most_caught_up_without(task, destination)
            if source is None:
                continue
            source.standby.add(task)
            if not self._take_warmup():
                destination.standby.remove(task)
            by_load.offer_all([source, destination])
            moved += 1
        return moved

    def _movable_standbys(self, client: ClientState) -> list[TaskId]:
        return [task for task in sorted(client.standby) if (client.id, task) not in self._warmups]

    def _needed(
        self, tasks: Callable[[ClientState], Iterable[TaskId]]
    ) -> list[tuple[TaskId, ClientState]]:
        """Return tasks on processes that are not caught up, fewest caught-up processes first."""
        found = [
            (self._number_caught_up(task), task, client)
            for client in self.clients
            for task in tasks(client)
            if not self._is_caught_up(client, task)
            and min(other.lags[task] for other in self.clients) < client.lags[task]
        ]
        # Two standbys of one task have equal priorities.
        ordered = poll_order(found, key=lambda movement: movement[:2])
        return [(task, client) for _, task, client in ordered]

    def _number_caught_up(self, task: TaskId) -> int:
        return sum(self._is_caught_up(client, task) for client in self.clients)

    def _is_caught_up(self, client: ClientState, task: TaskId) -> bool:
        return is_caught_up(client, task, self.acceptable_lag)

    def _caught_up_by_load(self) -> ConstrainedPrioritySet:
        by_load = ConstrainedPrioritySet(self._is_caught_up, lambda client: client.assigned_load)
        by_load.offer_all(self.clients)
        return by_load

    def _by_lag(self, task: TaskId) -> list[ClientState]:
        return sorted(self.clients, key=lambda client: (client.lags[task], uuid_key(client.id)))

    def _most_caught_up_without(self, task: TaskId, destination: ClientState) -> ClientState | None:
        for client in self._by_lag(task):
            if client is destination:
                return None
            if not client.has_assigned(task):
                return client
        return None

    def _take_warmup(self) -> bool:
        self.remaining_warmups -= 1
        return self.remaining_warmups >= 0


def is_caught_up(client: ClientState, task: TaskId, acceptable_lag: int) -> bool:
    """Return whether a process runs the task, or has an acceptable lag."""
    lag = client.lags[task]
    return lag == RUNNING or acceptable_lag == _UNBOUNDED or 0 <= lag <= acceptable_lag
