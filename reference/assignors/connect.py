"""Ports of the assignors of Kafka Connect, and their answers for documents of clusters.

A document is a sequence of events with a simulated clock. A rebalance takes no time. After a
revocation and at the end of a delay, the workers rebalance again. A step first waits, then applies
its event, and ends with the first rebalance without revocation, or without revocation and delay.

Upstream: EagerAssignor and IncrementalCooperativeAssignor of
org.apache.kafka.connect.runtime.distributed, connect-runtime 3.5 to 4.3. Methods keep upstream's
names and order.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, Self, TypeVar

from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.java_collections import set_capacity, string_order, utf16_key
from kassay.reference.model.assignor_result import UpstreamError

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


def assign_in_a_circle(
    workers: Iterable[str], connectors: Mapping[str, int]
) -> dict[str, ConnectorsAndTasks]:
    """Assign connectors with the given numbers of tasks to the sorted workers."""
    assigned = {worker: ConnectorsAndTasks() for worker in sorted(workers, key=utf16_key)}
    if not assigned:
        return {}
    configured = ConnectorsAndTasks.configured(connectors)
    # One circle for both lists: the first task follows the last connector.
    circle = cycle(assigned.values())
    for connector in configured.connectors:
        next(circle).connectors[connector] = None
    for task in configured.tasks:
        next(circle).tasks[task] = None
    return assigned


E = TypeVar("E")
Loads = dict[str, ConnectorsAndTasks]
"""Connectors and tasks per worker, in the order of upstream's list of workers."""

_BACKOFF_MULTIPLIER = 40


@dataclass(frozen=True, slots=True)
class ClusterAssignment:
    """Connectors and tasks that each worker starts, and those that it stops."""

    assigned: Loads
    revoked: Loads


class IncrementalCooperativeAssignor:
    """The assignor of one leader, with its memory of the last rebalance.

    ``max_delay`` is ``scheduled.rebalance.max.delay.ms``. ``delay`` is the time in milliseconds
    until the workers rebalance again; 0 if they wait for nothing.
    """

    # Deviation: upstream forgets the last assignment if its generation is not the last one. A
    # leader that missed a generation is a new object here.

    def __init__(self, max_delay: int) -> None:
        self._max_delay = max_delay
        self._previous_assignment = ConnectorsAndTasks()
        self._previous_revocation = ConnectorsAndTasks()
        self._previous_members: tuple[str, ...] = ()
        self._revoked_in_previous = False
        self._successive_revoking_rebalances = 0
        self._candidates: dict[str, None] = {}
        self._scheduled_rebalance = 0
        self.delay = 0

    def perform_task_assignment(
        self, configured: ConnectorsAndTasks, members: Mapping[str, ConnectorsAndTasks], *, now: int
    ) -> ClusterAssignment:
        """Return the changes of one rebalance at the time ``now``, in milliseconds.

        ``configured`` is sorted. ``members`` contains the entries that each worker runs, in the
        order of the worker's list. Raise UpstreamError if there is no worker.
        """
        members = {worker: members[worker] for worker in string_order(members)}
        active = _union(members.values())
        self._check_previous_revocation(active)
        deleted = self._previous_assignment.without(configured).sorted()
        lost = self._previous_assignment.without(active, deleted).sorted()
        created = configured.without(self._previous_assignment, active).sorted()
        current = {worker: own.without(deleted) for worker, own in members.items()}
        # Upstream revokes an entry that several workers run from all of them.
        unwanted = _union((deleted, _duplicated(members)))
        to_revoke = {worker: own.common(unwanted) for worker, own in members.items()}
        following = {worker: own.without(unwanted) for worker, own in members.items()}
        to_assign = created.copy()
        to_assign.add(self._handle_lost_assignments(lost, following, now))
        self._revoke_for_balance(configured, following, to_revoke, now)
        if not following:
            raise UpstreamError("IndexOutOfBoundsException", "Index 0 out of bounds for length 0")
        _assign([(w, own.connectors) for w, own in following.items()], to_assign.connectors)
        _assign([(w, own.tasks) for w, own in following.items()], to_assign.tasks)
        self._remember(to_revoke, following, lost)
        assigned = {worker: own.without(current[worker]) for worker, own in following.items()}
        return ClusterAssignment(assigned, to_revoke)

    def _check_previous_revocation(self, active: ConnectorsAndTasks) -> None:
        """Start from the entries that the workers run if a revocation had no effect."""
        if self._previous_revocation.common(active):
            self._previous_assignment = active
        self._previous_revocation = ConnectorsAndTasks()

    def _handle_lost_assignments(
        self, lost: ConnectorsAndTasks, workers: Loads, now: int
    ) -> ConnectorsAndTasks:
        """Return the lost entries that are assigned like new ones, or wait for their worker."""
        nothing = ConnectorsAndTasks()
        if not lost and not self._revoked_in_previous:
            self._reset_delay()
            return nothing
        has_left = any(worker not in workers for worker in self._previous_members)
        if (self._scheduled_rebalance <= 0 and not has_left) or self._max_delay == 0:
            return lost
        if 0 < self._scheduled_rebalance <= now:
            candidates = [workers[worker] for worker in self._candidates if worker in workers]
            for index, connector in enumerate(lost.connectors if candidates else ()):
                candidates[index % len(candidates)].connectors[connector] = None
            for index, task in enumerate(lost.tasks if candidates else ()):
                candidates[index % len(candidates)].tasks[task] = None
            self._reset_delay()
            self._revoked_in_previous = False
            return nothing if candidates else lost
        empty = [worker for worker, own in workers.items() if not own]
        self._candidates.update(dict.fromkeys(string_order(empty)))
        self.delay = self._max_delay
        if now < self._scheduled_rebalance:
            self.delay = min(self._scheduled_rebalance - now, self._max_delay)
        self._scheduled_rebalance = now + self.delay
        return nothing

    def _reset_delay(self) -> None:
        self._candidates.clear()
        self._scheduled_rebalance = 0
        self.delay = 0

    def _revoke_for_balance(
        self, configured: ConnectorsAndTasks, following: Loads, to_revoke: Loads, now: int
    ) -> None:
        """Revoke entries of workers with too many, except during a delay."""
        if self.delay > 0:
            self._revoked_in_previous = False
            return
        revocations = _perform_load_balancing_revocations(configured, following)
        if not revocations:
            if self._revoked_in_previous:
                self._successive_revoking_rebalances = 0
            self._revoked_in_previous = False
            return
        if self._revoked_in_previous:
            self._successive_revoking_rebalances += 1
            self.delay = _backoff(self._successive_revoking_rebalances, self._max_delay)
            if self.delay > 0:
                self._scheduled_rebalance = now + self.delay
                return
        for worker, revoked in revocations.items():
            to_revoke[worker].add(revoked)
            following[worker].remove(revoked)
        self._revoked_in_previous = True

    def _remember(self, revoked: Loads, following: Loads, lost: ConnectorsAndTasks) -> None:
        self._previous_revocation = _union(revoked.values())
        self._previous_assignment = _union(following.values()).without(self._previous_revocation)
        self._previous_assignment.add(lost)
        self._previous_members = tuple(following)


def _backoff(attempts: int, max_delay: int) -> int:
    """Return the delay of Kafka's ``ExponentialBackoff`` without jitter."""
    if max_delay <= 1:
        return max_delay
    exponent = min(float(attempts), math.log(max_delay) / math.log(_BACKOFF_MULTIPLIER))
    return min(int(math.pow(_BACKOFF_MULTIPLIER, exponent)), max_delay)


def _union(sets: Iterable[ConnectorsAndTasks]) -> ConnectorsAndTasks:
    union = ConnectorsAndTasks()
    for entries in sets:
        union.add(entries)
    return union


def _duplicated(members: Mapping[str, ConnectorsAndTasks]) -> ConnectorsAndTasks:
    """Return the connectors and tasks that several workers run."""
    connectors = Counter(one for own in members.values() for one in own.connectors)
    tasks = Counter(one for own in members.values() for one in own.tasks)
    return ConnectorsAndTasks.of(
        (one for one, count in connectors.items() if count > 1),
        (one for one, count in tasks.items() if count > 1),
    )


def _perform_load_balancing_revocations(configured: ConnectorsAndTasks, workers: Loads) -> Loads:
    if not configured or not any(workers.values()):
        return {}
    connectors = _load_balancing_revocations(
        len(configured.connectors), {worker: own.connectors for worker, own in workers.items()}
    )
    tasks = _load_balancing_revocations(
        len(configured.tasks), {worker: own.tasks for worker, own in workers.items()}
    )
    return {
        worker: ConnectorsAndTasks.of(connectors.get(worker, ()), tasks.get(worker, ()))
        for worker in workers
        if worker in connectors or worker in tasks
    }


def _load_balancing_revocations(
    total: int, workers: Mapping[str, dict[E, None]]
) -> dict[str, list[E]]:
    """Return the first entries of each worker that has more than its share."""
    minimum, extras = divmod(total, len(workers))
    sizes = Counter(len(own) for own in workers.values())
    if sizes[minimum + 1] == extras and sizes[minimum] + sizes[minimum + 1] == len(workers):
        return {}
    revoked: dict[str, list[E]] = {}
    for worker, own in workers.items():
        if len(own) <= minimum:
            continue
        # The first workers in the order of the hash map keep one entry more.
        most = minimum + 1 if extras > 0 else minimum
        extras -= 1
        if len(own) > most:
            revoked[worker] = list(islice(own, len(own) - most))
    return revoked


def _assign(workers: list[tuple[str, dict[E, None]]], entries: Iterable[E]) -> None:
    """Assign entries in layers: one to each worker with the fewest entries, and so on."""
    workers.sort(key=lambda worker: (len(worker[1]), utf16_key(worker[0])))
    waiting = iter(entries)
    while True:
        fewest = len(workers[0][1])
        layer = [own for _, own in workers if len(own) == fewest]
        for own in layer:
            entry = next(waiting, None)
            if entry is None:
                return
            own[entry] = None


DEFAULT_MAX_DELAY = 300_000
"""Default of ``scheduled.rebalance.max.delay.ms``."""
_MAX_REBALANCES = 1000


def assign_eagerly(document: KindDocument) -> dict[str, object]:
    """Return the state after each step with the eager assignor."""
    steps: Any = document.content["steps"]
    states = (assign_in_a_circle(step["workers"], step["connectors"]) for step in steps)
    return {"steps": [{"state": _documents(state)} for state in states]}


def assign_incrementally(document: KindDocument) -> dict[str, object]:
    """Return all rebalances, the state and the downtime of each step.

    Raise UpstreamError if a step has no worker.
    """
    maximum: Any = document.content.get("scheduled_rebalance_max_delay_ms", DEFAULT_MAX_DELAY)
    steps: Any = document.content["steps"]
    return {"steps": _Cluster(maximum).run(steps)}


class _Cluster:
    """Workers with their connectors and tasks, and a simulated clock."""

    def __init__(self, max_delay: int) -> None:
        self._max_delay = max_delay
        self._leader: IncrementalCooperativeAssignor | None = None
        self._now = 0
        self._delay = 0
        self._configured = ConnectorsAndTasks()
        self._workers: dict[str, ConnectorsAndTasks] = {}
        self._stopped = {"connector_downtime_ms": 0, "task_downtime_ms": 0}
        self._rounds: list[dict[str, object]] = []

    def run(self, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
        states: list[dict[str, object]] = []
        for step in steps:
            self._rounds = []
            self._advance(self._now + step.get("wait_ms", 0))
            leader = self._apply(step)
            self._rebalance(leader)
            while self._delay > 0 and step.get("until_stable", True):
                self._pass(self._delay)
                self._rebalance(leader)
            states.append(
                {
                    "at_ms": self._now,
                    "rounds": self._rounds,
                    "stable": self._delay == 0,
                    "state": _documents(self._workers),
                    **self._stopped,
                }
            )
        return states

    def _apply(self, step: Mapping[str, Any]) -> IncrementalCooperativeAssignor:
        self._configured = ConnectorsAndTasks.configured(step["connectors"])
        if self._leader is None or step.get("new_leader", False):
            self._leader = IncrementalCooperativeAssignor(self._max_delay)
        running = step.get("running", {})
        self._workers = {
            worker: _parse(running[worker])
            if worker in running
            else self._workers.get(worker, ConnectorsAndTasks())
            for worker in step["workers"]
        }
        return self._leader

    def _advance(self, until: int) -> None:
        """Advance the clock, and rebalance at the end of each earlier delay."""
        while self._leader is not None and self._delay > 0 and self._now + self._delay < until:
            self._pass(self._delay)
            self._rebalance(self._leader)
        self._delay = max(0, self._delay - (until - self._now))
        self._pass(until - self._now)

    def _pass(self, milliseconds: int) -> None:
        """Count the time in which configured connectors and tasks do not run."""
        self._now += milliseconds
        stopped = self._configured.without(*self._workers.values())
        self._stopped["connector_downtime_ms"] += milliseconds * len(stopped.connectors)
        self._stopped["task_downtime_ms"] += milliseconds * len(stopped.tasks)

    def _rebalance(self, leader: IncrementalCooperativeAssignor) -> None:
        """Rebalance until a rebalance revokes nothing."""
        for _ in range(_MAX_REBALANCES):
            if not self._rebalance_once(leader):
                return
        raise UpstreamError("IllegalStateException", "the workers rebalance without end")

    def _rebalance_once(self, leader: IncrementalCooperativeAssignor) -> bool:
        sent = {worker: _transmitted(own) for worker, own in self._workers.items()}
        result = leader.perform_task_assignment(self._configured, sent, now=self._now)
        self._delay = leader.delay
        received = {worker: _transmitted(own) for worker, own in result.assigned.items()}
        revoked = {worker: own for worker, own in result.revoked.items() if own}
        for worker, own in self._workers.items():
            # New entries precede kept ones.
            kept = own.without(result.revoked[worker])
            self._workers[worker] = received[worker].copy()
            self._workers[worker].add(kept)
        self._rounds.append(
            {
                "at_ms": self._now,
                "delay_ms": self._delay,
                "assigned": _documents({w: own for w, own in received.items() if own}),
                "revoked": _documents(revoked),
            }
        )
        return bool(revoked)


def _transmitted(own: ConnectorsAndTasks) -> ConnectorsAndTasks:
    """Return the entries after encoding and decoding, which groups the tasks by connector."""
    connectors = string_order(own.connectors, capacity=set_capacity(len(own.connectors)))
    numbers: dict[str, list[int]] = {connector: [] for connector in connectors}
    for connector, number in own.tasks:
        numbers.setdefault(connector, []).append(number)
    tasks = ((connector, number) for connector, listed in numbers.items() for number in listed)
    return ConnectorsAndTasks.of(connectors, tasks)


def _parse(running: Mapping[str, Iterable[str]]) -> ConnectorsAndTasks:
    tasks: list[Task] = []
    for text in running.get("tasks", ()):
        connector, _, number = text.rpartition("-")
        tasks.append((connector, int(number)))
    return ConnectorsAndTasks.of(running.get("connectors", ()), tasks)


def _documents(workers: Mapping[str, ConnectorsAndTasks]) -> dict[str, object]:
    return {worker: workers[worker].document() for worker in sorted(workers, key=utf16_key)}
