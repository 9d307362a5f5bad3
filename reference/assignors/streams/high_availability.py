"""Port of ``HighAvailabilityTaskAssignor``, the default task assignor of Kafka Streams.

Upstream: org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor,
kafka-streams 4.2 to 4.3, without the rack-aware strategies.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple
from uuid import UUID

from kassay.reference.assignors.streams import standby_tasks
from kassay.reference.assignors.streams.client_state import ClientState, ConstrainedPrioritySet
from kassay.reference.assignors.streams.task_movement import Movements
from kassay.reference.documents.kind_documents import KindDocument, TaskId, parse_task
from kassay.reference.java.hash_codes import uuid_key
from kassay.reference.model.assignor_result import UpstreamError
from kassay.reference.model.errors import InputError
from kassay.reference.protocol.streams_messages import RUNNING

_TaskSet = Callable[[ClientState], set[TaskId]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentConfigs:
    """Settings of the assignor, with Kafka's names and defaults. Lags are numbers of records."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: Sequence[str] = ()


PlaceTasks = Callable[[Sequence[ClientState], Sequence[TaskId], AssignmentConfigs], None]


class Targets(NamedTuple):
    """The first two steps: they place stateful tasks without regard to their state."""

    place_active: PlaceTasks
    place_standbys: PlaceTasks


def assign_document(document: KindDocument, *, targets: Targets | None = None) -> dict[str, object]:
    """Return the answer for a checked document of a Streams application.

    ``targets`` replaces upstream's first two steps, `UPSTREAM_TARGETS`.

    Raises
    ------
    InputError
        If the document has a rack-aware strategy.
    UpstreamError
        If the Java class throws an exception.
    """
    content: Any = document.content
    config: Any = content.get("config", {})
    strategy = config.get("rack_aware_assignment_strategy", "none")
    if strategy != "none":
        raise InputError(
            f"config.rack_aware_assignment_strategy: the port supports 'none', got {strategy!r}; "
            "use kafka-streams:high-availability, which runs Kafka's class"
        )
    names = AssignmentConfigs.__slots__
    configs = AssignmentConfigs(**{n: config[n] for n in names if config.get(n) is not None})
    ends: dict[TaskId, int] = {}
    stateless: list[TaskId] = []
    for name, fields in content["subtopologies"].items():
        offsets = fields.get("end_offsets", [0] * fields["partitions"])
        tasks = [TaskId(int(name), number) for number in range(fields["partitions"])]
        if fields["stateful"]:
            ends.update(zip(tasks, offsets, strict=True))
        else:
            stateless += tasks
    clients = [_client_state(process, ends) for process in content["processes"]]
    clients.sort(key=lambda client: uuid_key(client.id))
    followup = _assign(
        clients,
        sorted(ends),
        sorted(stateless),
        configs,
        targets or UPSTREAM_TARGETS,
    )
    processes = {
        str(UUID(int=client.id)): {
            "active": [str(task) for task in sorted(client.active)],
            "standby": [str(task) for task in sorted(client.standby)],
        }
        for client in clients
    }
    return {"followup_rebalance": followup, "processes": processes}


def _client_state(process: Any, ends: dict[TaskId, int]) -> ClientState:
    active = [parse_task(text) for text in process.get("active", ())]
    lags = {task: RUNNING if task in active else end for task, end in ends.items()}
    for text, lag in process.get("lags", {}).items():
        if parse_task(text) in ends:
            lags[parse_task(text)] = lag
    tags = process.get("tags", {})
    return ClientState(UUID(process["id"]).int, process["threads"], lags, tags)


def _assign(
    clients: Sequence[ClientState],
    stateful: Sequence[TaskId],
    stateless: Sequence[TaskId],
    configs: AssignmentConfigs,
    targets: Targets,
) -> bool:
    """Assign sorted tasks to processes that are sorted by id.

    Returns whether a follow-up rebalance is needed, because a task waits for its state.
    """
    if not clients and (stateful or stateless):
        raise UpstreamError(
            "NoSuchElementException" if stateful else "NullPointerException", "null"
        )
    targets.place_active(clients, stateful, configs)
    targets.place_standbys(clients, stateful, configs)
    movements = Movements(clients, configs.acceptable_recovery_lag, configs.max_warmup_replicas)
    needed = movements.assign_active_task_movements()
    needed += movements.assign_standby_task_movements()
    _assign_stateless_active_tasks(clients, stateless)
    return needed > 0


def _assign_active_stateful_tasks(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], _: AssignmentConfigs
) -> None:
    # The state of the processes has no influence on this target, see `Movements`.
    for task, client in zip(stateful, cycle(clients), strict=False):
        client.active.add(task)
    _balance_tasks_over_threads(clients, lambda client: client.active, lambda *_: True)


def _assign_standby_replica_tasks(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], configs: AssignmentConfigs
) -> None:
    standbys, tags = configs.num_standby_replicas, configs.rack_aware_assignment_tags
    if standbys == 0:
        return
    if tags:
        standby_tasks.assign_to_different_tags(clients, stateful, standbys, tags)
    else:
        standby_tasks.assign_to_least_loaded(clients, stateful, standbys)
    _balance_tasks_over_threads(
        clients,
        lambda client: client.standby,
        standby_tasks.is_allowed_movement if tags else lambda *_: True,
    )


UPSTREAM_TARGETS = Targets(_assign_active_stateful_tasks, _assign_standby_replica_tasks)


def _balance_tasks_over_threads(
    clients: Sequence[ClientState],
    tasks_of: _TaskSet,
    is_allowed: Callable[[ClientState, ClientState], bool],
) -> None:
    """Move tasks between pairs of processes while this makes their loads more even."""
    has_moved = True
    while has_moved:
        has_moved = False
        for source in clients:
            for destination in clients:
                if source is destination:
                    continue
                for task in sorted(tasks_of(source)):
                    if not _should_move_a_task(source, destination):
                        break
                    if not destination.has_assigned(task) and is_allowed(source, destination):
                        tasks_of(source).remove(task)
                        tasks_of(destination).add(task)
                        has_moved = True


def _should_move_a_task(source: ClientState, destination: ClientState) -> bool:
    skew = source.assigned_load - destination.assigned_load
    if skew <= 0:
        return False
    proposed = (source.assigned_count - 1.0) / source.capacity - (
        destination.assigned_count + 1.0
    ) / destination.capacity
    return 0 <= proposed < skew


def _assign_stateless_active_tasks(
    clients: Sequence[ClientState], stateless: Iterable[TaskId]
) -> None:
    by_load = ConstrainedPrioritySet(lambda *_: True, lambda client: client.active_load)
    by_load.offer_all(clients)
    for task in stateless:
        client = by_load.poll(task)
        if client is not None:
            client.active.add(task)
            by_load.offer_all([client])
