"""Ports of Kafka Streams' default task assignor and of the assignor ``spread``.

Upstream: HighAvailabilityTaskAssignor, TaskMovement, DefaultStandbyTaskAssignor,
ClientTagAwareStandbyTaskAssignor, ClientState and ConstrainedPrioritySet of
org.apache.kafka.streams.processor.internals.assignment, kafka-streams 4.2 to 4.3, without the
rack-aware strategies. ``spread``, in no release: BalancedTaskAssignor of
org.apache.kafka.coordinator.group.streams.assignor, commit 07a283ac of apache/kafka.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, NamedTuple
from uuid import UUID

from kassay.reference.documents.kind_documents import KindDocument, TaskId, parse_task
from kassay.reference.java_collections import HashMap, poll_order, signed, utf16_key, uuid_key
from kassay.reference.model.errors import InputError, UpstreamError
from kassay.reference.protocol.message_decoder import RUNNING


@dataclass(slots=True)
class ClientState:
    """Process of a Streams application, with its tasks and its lag per task."""

    id: int  # the 128 bits of the process id
    capacity: int  # number of threads
    lags: Mapping[TaskId, int]  # in records, per stateful task; `RUNNING` for active tasks
    tags: Mapping[str, str]
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)

    def has_assigned(self, task: TaskId) -> bool:
        """Return whether a task is an active or a standby task of the process."""
        return task in self.active or task in self.standby

    @property
    def assigned_count(self) -> int:
        """Return the number of active and standby tasks."""
        return len(self.active) + len(self.standby)

    @property
    def assigned_load(self) -> float:
        """Return the number of active and standby tasks per thread."""
        return self.assigned_count / self.capacity


class ConstrainedPrioritySet:
    """Priority queue of processes. The process with the lowest load is first."""

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
        """Remove and return the least loaded allowed process, or None if there is none."""
        allowed = (c for c in self._clients.values() if self._constraint(c, task) and extra(c))
        client = min(allowed, key=lambda c: (self._weight(c), uuid_key(c.id)), default=None)
        if client is not None:
            del self._clients[client.id]
        return client

    def offer_all(self, clients: Iterable[ClientState]) -> None:
        """Add processes to the queue, in which each process occurs at most once."""
        self._clients.update((client.id, client) for client in clients)


Tag = tuple[str, str]
"""Key and value of a client tag."""


def assign_to_least_loaded(
    clients: Sequence[ClientState], stateful: Iterable[TaskId], standbys: int
) -> None:
    """Assign standbys to the least loaded processes without a copy of the task."""
    by_load = _least_loaded()
    by_load.offer_all(clients)
    for task in stateful:
        _assign_remaining(by_load, task, standbys)


def assign_to_different_tags(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], standbys: int, keys: Sequence[str]
) -> None:
    """Assign the standbys of a task to processes with different tags, if possible."""
    values: dict[str, dict[str, None]] = {}
    members: dict[Tag, list[ClientState]] = {}
    for client in clients:
        for key, value in client.tags.items():
            values.setdefault(key, {})[value] = None
            members.setdefault((key, value), []).append(client)
    by_load = _least_loaded()
    # Upstream serves the remaining tasks in the order of a hash map.
    remaining: HashMap[TaskId, int] = HashMap(_task_hash)
    for task in stateful:
        remaining.put(task, standbys)
    for task in stateful:
        active = next(client for client in clients if task in client.active)
        by_load.offer_all(clients)
        used, missing = [active], standbys
        excluded: dict[Tag, list[ClientState]] = {}
        while missing > 0:
            _exclude_used_tags(used, keys, values, members, excluded)
            taken = [id(client) for group in excluded.values() for client in group]
            standby = by_load.poll(task, lambda one, taken=taken: id(one) not in taken)  # type: ignore[misc]
            if standby is None:
                break
            standby.standby.add(task)
            used.append(standby)
            missing -= 1
        if missing > 0:
            remaining.put(task, missing)
        else:
            remaining.remove(task)
    by_load.offer_all(clients)
    for task, missing in list(remaining.items()):
        _assign_remaining(by_load, task, missing)


def _exclude_used_tags(
    used: Sequence[ClientState],
    keys: Sequence[str],
    values: Mapping[str, Mapping[str, None]],
    members: Mapping[Tag, list[ClientState]],
    excluded: dict[Tag, list[ClientState]],
) -> None:
    for key, value in used[-1].tags.items():
        if key not in keys:
            continue
        if len(values[key]) <= len(used):
            for one in values[key]:
                excluded.pop((key, one), None)
        else:
            excluded[key, value] = members[key, value]


def is_allowed_movement(source: ClientState, destination: ClientState) -> bool:
    """Return whether the destination has all tags of the source, with the same values."""
    return all(destination.tags.get(key) == value for key, value in source.tags.items())


def _least_loaded() -> ConstrainedPrioritySet:
    return ConstrainedPrioritySet(
        lambda client, task: not client.has_assigned(task), lambda client: client.assigned_load
    )


def _assign_remaining(by_load: ConstrainedPrioritySet, task: TaskId, missing: int) -> None:
    for _ in range(missing):
        client = by_load.poll(task)
        if client is None:
            return
        client.standby.add(task)
        by_load.offer_all([client])


def _task_hash(task: TaskId) -> int:
    return signed(31 * (31 * (31 + task.subtopology) + task.partition))


_UNBOUNDED = 2**63 - 1


@dataclass(slots=True)
class Movements:
    """Moves of tasks to processes with lower lags, with a limit on warm-up replicas."""

    clients: Sequence[ClientState]  # sorted by id
    acceptable_lag: int  # ``acceptable.recovery.lag``: with at most this lag, caught up
    remaining_warmups: int
    _warmups: set[tuple[int, TaskId]] = field(default_factory=set)

    def assign_active_task_movements(self) -> int:
        """Move active tasks to processes with lower lags. Return the number of moves."""
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
        """Add standbys on processes with lower lags. Return the number of added standbys."""
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
        """Return tasks that lag on their process and have a lower lag on another process."""
        found = [
            (sum(self._is_caught_up(one, task) for one in self.clients), task, client)
            for client in self.clients
            for task in tasks(client)
            if not self._is_caught_up(client, task)
            and min(other.lags[task] for other in self.clients) < client.lags[task]
        ]
        # Two standbys of one task have equal priorities.
        ordered = poll_order(found, key=lambda movement: movement[:2])
        return [(task, client) for _, task, client in ordered]

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
    """Return whether a process runs the task or has an acceptable lag for it."""
    lag = client.lags[task]
    return lag == RUNNING or acceptable_lag == _UNBOUNDED or 0 <= lag <= acceptable_lag


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentConfigs:
    """Settings of the assignor, with Kafka's names and defaults. Lags are numbers of records."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: Sequence[str] = ()


PlaceTasks = Callable[[Sequence[ClientState], Sequence[TaskId], AssignmentConfigs], None]


class Targets(NamedTuple):
    """Functions that place active and standby tasks without regard to lags."""

    place_active: PlaceTasks
    place_standbys: PlaceTasks


def assign_application(
    document: KindDocument, *, targets: Targets | None = None
) -> dict[str, object]:
    """Assign the tasks of a Streams application with Kafka's default assignor.

    ``targets`` places the tasks before the movements, by default as upstream does.

    Raise InputError if the document has a rack-aware strategy. Raise UpstreamError if the Java
    class throws an exception.
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
        clients, sorted(ends), sorted(stateless), configs, targets or UPSTREAM_TARGETS
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
    """Assign all tasks. Return whether a follow-up rebalance is needed."""
    if not clients and (stateful or stateless):
        java_class = "NoSuchElementException" if stateful else "NullPointerException"
        raise UpstreamError("null", java_class)
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
        assign_to_different_tags(clients, stateful, standbys, tags)
    else:
        assign_to_least_loaded(clients, stateful, standbys)
    _balance_tasks_over_threads(
        clients, lambda client: client.standby, is_allowed_movement if tags else lambda *_: True
    )


UPSTREAM_TARGETS = Targets(_assign_active_stateful_tasks, _assign_standby_replica_tasks)


def _balance_tasks_over_threads(
    clients: Sequence[ClientState],
    tasks_of: Callable[[ClientState], set[TaskId]],
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
    by_load = ConstrainedPrioritySet(
        lambda *_: True, lambda client: len(client.active) / client.capacity
    )
    by_load.offer_all(clients)
    for task in stateless:
        client = by_load.poll(task)
        if client is not None:
            client.active.add(task)
            by_load.offer_all([client])


Tasks = dict[str, list[int]]
"""Partition numbers by subtopology, in the documents of Streams groups."""


def assign_evenly(document: KindDocument) -> dict[str, object]:
    """Assign the tasks of a Streams group with the assignor ``spread``.

    The placement on processes is that of `UPSTREAM_TARGETS`, without warm-ups, tags and racks.

    Raise UpstreamError if the Java class throws an exception.
    """
    content: Any = document.content
    names = sorted(content["subtopologies"], key=utf16_key)
    stateful: list[TaskId] = []
    stateless: list[TaskId] = []
    for number, name in enumerate(names):
        fields = content["subtopologies"][name]
        tasks = stateful if fields["stateful"] else stateless
        tasks += [TaskId(number, partition) for partition in range(fields["partitions"])]
    members: dict[str, list[Any]] = {}  # by process
    for member in sorted(content["members"], key=lambda member: utf16_key(member["id"])):
        members.setdefault(member["process"], []).append(member)
    if not members and (stateful or stateless):
        raise UpstreamError("No process available to assign active tasks.", "TaskAssignorException")
    # The positions in the order of the names replace the ids of processes and subtopologies.
    processes = sorted(members, key=utf16_key)
    clients = [ClientState(n, len(members[id]), {}, {}) for n, id in enumerate(processes)]
    configs = AssignmentConfigs(num_standby_replicas=content.get("num_standby_replicas", 0))
    _assign_active_stateful_tasks(clients, stateful, configs)
    _assign_standby_replica_tasks(clients, stateful, configs)
    _assign_stateless_active_tasks(clients, stateless)
    answer: dict[str, object] = {}
    for client in clients:
        inside = _ProcessMembers(members[processes[client.id]], names)
        has_state = client.active.intersection(stateful)
        active, standby = inside.place(has_state), inside.place(client.standby)
        without_state = inside.place(client.active - has_state, is_sticky=False)
        for id in inside.counts:
            answer[id] = {
                "active": _by_subtopology(active[id] + without_state[id], names),
                "standby": _by_subtopology(standby[id], names),
            }
    return {"members": answer}


class _ProcessMembers:
    def __init__(self, members: Sequence[Any], names: Sequence[str]) -> None:
        self.counts = {member["id"]: 0 for member in members}
        self._owners: dict[TaskId, str] = {}
        for member in members:
            for tasks in (member.get(role, {}) for role in ("active", "standby", "warmup")):
                for name, numbers in tasks.items():
                    for number in numbers:
                        self._owners.setdefault(TaskId(names.index(name), number), member["id"])

    def place(self, tasks: Iterable[TaskId], *, is_sticky: bool = True) -> dict[str, list[TaskId]]:
        """Divide tasks evenly among the members. Owners keep tasks if possible."""
        placed: dict[str, list[TaskId]] = {id: [] for id in self.counts}
        left = sorted(tasks)
        if not left:
            return placed
        owners = self._owners if is_sticky else {}
        level = (sum(self.counts.values()) + len(left)) // len(self.counts)

        def keep(has_room: Callable[[str], bool]) -> list[TaskId]:
            others = []
            for task in left:
                owner = owners.get(task)
                if owner is not None and has_room(owner):
                    self._give(placed, owner, task)
                else:
                    others.append(task)
            return others

        left = keep(lambda owner: self.counts[owner] < level)
        below = [id for id in self.counts if self.counts[id] < level]
        while left and below:
            for id in below[: len(left)]:
                self._give(placed, id, left.pop(0))
            below = [id for id in below if self.counts[id] < level]
        left = keep(lambda owner: self.counts[owner] == level)
        at_level = [id for id in self.counts if self.counts[id] == level]
        for id, task in zip(at_level, left, strict=False):
            self._give(placed, id, task)
        return placed

    def _give(self, placed: dict[str, list[TaskId]], id: str, task: TaskId) -> None:
        placed[id].append(task)
        self.counts[id] += 1


def _by_subtopology(tasks: Sequence[TaskId], names: Sequence[str]) -> Tasks:
    numbers: Tasks = {}
    for task in sorted(tasks):
        numbers.setdefault(names[task.subtopology], []).append(task.partition)
    return numbers
