"""Ports of the assignors of Kafka Connect, for documents of Connect clusters.

A document is a sequence of events with a simulated clock. A rebalance takes no time. After a
revocation and at the end of a delay, the workers rebalance again. A step first waits, then applies
its event. It ends after rebalances without revocation; with ``until_stable``, also without delay.

Upstream: EagerAssignor and IncrementalCooperativeAssignor of
org.apache.kafka.connect.runtime.distributed, connect-runtime 3.5 to 4.3. Methods keep upstream's
names and order.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any

from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.java_collections import set_capacity, string_order, utf16_key
from kassay.reference.model.errors import UpstreamError

_CONNECTOR = -1
"""Number of an entry that is a connector. The entries of its tasks have numbers from 0."""
Entry = tuple[str, int]
"""Name of a connector and number of its task, or `_CONNECTOR` for the connector itself."""
Entries = dict[Entry, None]
"""A set of connectors and tasks with the order of insertion."""
Loads = dict[str, Entries]
"""Connectors and tasks per worker, in the order of upstream's list of workers."""

_BACKOFF_MULTIPLIER = 40


def _configured(connectors: Mapping[str, int]) -> Entries:
    entries = [(name, number) for name in connectors for number in range(-1, connectors[name])]
    return dict.fromkeys(sorted(entries, key=_entry_key))


def _entry_key(entry: Entry) -> tuple[bool, bytes, int]:
    name, number = entry
    return number != _CONNECTOR, utf16_key(name), number


def _sorted(entries: Iterable[Entry]) -> Entries:
    return dict.fromkeys(sorted(entries, key=_entry_key))


def _without(entries: Entries, *others: Entries) -> Entries:
    return {entry: None for entry in entries if not any(entry in other for other in others)}


def _common(entries: Entries, other: Entries) -> Entries:
    return {entry: None for entry in entries if entry in other}


def _union(sets: Iterable[Entries]) -> Entries:
    return dict.fromkeys(chain.from_iterable(sets))


def _by_kind(entries: Entries) -> tuple[list[Entry], list[Entry]]:
    connectors = [entry for entry in entries if entry[1] == _CONNECTOR]
    return connectors, [entry for entry in entries if entry[1] != _CONNECTOR]


def assign_in_a_circle(workers: Iterable[str], connectors: Mapping[str, int]) -> Loads:
    """Assign connectors, then all their tasks, to the sorted workers in circular order."""
    assigned: Loads = {worker: {} for worker in sorted(workers, key=utf16_key)}
    # One circle for both kinds: the first task follows the last connector.
    for entry, own in zip(_configured(connectors), cycle(assigned.values()), strict=False):
        own[entry] = None
    return assigned


@dataclass(frozen=True, slots=True)
class ClusterAssignment:
    """Connectors and tasks that each worker starts and stops in a rebalance."""

    assigned: Loads
    revoked: Loads


class IncrementalCooperativeAssignor:
    """Incremental cooperative assignor of one leader, with its state after the last rebalance.

    ``max_delay`` is ``scheduled.rebalance.max.delay.ms``. ``delay`` is the time in milliseconds
    until the workers rebalance again, or 0 if no further rebalance is scheduled.
    """

    # Deviation: upstream forgets the last assignment if its generation is not the last one. A
    # leader that missed a generation is a new object here.

    def __init__(self, max_delay: int) -> None:
        self._max_delay = max_delay
        self._previous_assignment: Entries = {}
        self._previous_revocation: Entries = {}
        self._previous_members: tuple[str, ...] = ()
        self._revoked_in_previous = False
        self._successive_revoking_rebalances = 0
        self._candidates: dict[str, None] = {}
        self._scheduled_rebalance = 0
        self.delay = 0

    def perform_task_assignment(
        self, configured: Entries, members: Mapping[str, Entries], *, now: int
    ) -> ClusterAssignment:
        """Return the connectors and tasks that each worker starts and stops in a rebalance.

        ``now`` is in milliseconds. ``configured`` is sorted. ``members`` has the entries that
        each worker runs, in the worker's order. Raise UpstreamError if there is no worker.
        """
        members = {worker: members[worker] for worker in string_order(members)}
        active = _union(members.values())
        # If a revocation had no effect, start from the entries that the workers run.
        if _common(self._previous_revocation, active):
            self._previous_assignment = active
        self._previous_revocation = {}
        deleted = _sorted(_without(self._previous_assignment, configured))
        lost = _sorted(_without(self._previous_assignment, active, deleted))
        created = _sorted(_without(configured, self._previous_assignment, active))
        current = {worker: _without(own, deleted) for worker, own in members.items()}
        # Upstream revokes an entry that several workers run from all of them.
        counts = Counter(chain.from_iterable(members.values()))
        unwanted = deleted | {entry: None for entry, count in counts.items() if count > 1}
        to_revoke = {worker: _common(own, unwanted) for worker, own in members.items()}
        following = {worker: _without(own, unwanted) for worker, own in members.items()}
        to_assign = created | self._handle_lost_assignments(lost, following, now)
        self._revoke_for_balance(configured, following, to_revoke, now)
        if not following:
            raise UpstreamError("Index 0 out of bounds for length 0", "IndexOutOfBoundsException")
        for kind, entries in enumerate(_by_kind(to_assign)):
            _assign(following, kind, entries)
        self._previous_revocation = _union(to_revoke.values())
        kept = _without(_union(following.values()), self._previous_revocation)
        self._previous_assignment = kept | lost
        self._previous_members = tuple(following)
        assigned = {worker: _without(own, current[worker]) for worker, own in following.items()}
        return ClusterAssignment(assigned, to_revoke)

    def _handle_lost_assignments(self, lost: Entries, workers: Loads, now: int) -> Entries:
        """Assign or delay connectors and tasks without a worker. Return the ones to assign now."""
        nothing: Entries = {}
        if not lost and not self._revoked_in_previous:
            self._reset_delay()
            return nothing
        has_left = any(worker not in workers for worker in self._previous_members)
        if (self._scheduled_rebalance <= 0 and not has_left) or self._max_delay == 0:
            return lost
        if 0 < self._scheduled_rebalance <= now:
            candidates = [workers[worker] for worker in self._candidates if worker in workers]
            for entries in _by_kind(lost):
                for entry, own in zip(entries, cycle(candidates), strict=False):
                    own[entry] = None
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
        self, configured: Entries, following: Loads, to_revoke: Loads, now: int
    ) -> None:
        """Revoke connectors and tasks of workers above an even share, except during a delay."""
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
            to_revoke[worker].update(revoked)
            following[worker] = _without(following[worker], revoked)
        self._revoked_in_previous = True


def _backoff(attempts: int, max_delay: int) -> int:
    """Return the delay in ms of Kafka's ``ExponentialBackoff`` without jitter."""
    if max_delay <= 1:
        return max_delay
    exponent = min(float(attempts), math.log(max_delay) / math.log(_BACKOFF_MULTIPLIER))
    return min(int(math.pow(_BACKOFF_MULTIPLIER, exponent)), max_delay)


def _perform_load_balancing_revocations(configured: Entries, workers: Loads) -> Loads:
    """Return the connectors and tasks that each worker has above an even share."""
    revoked: Loads = {}
    if not configured or not any(workers.values()):
        return revoked
    for kind, entries in enumerate(_by_kind(configured)):
        minimum, extras = divmod(len(entries), len(workers))
        lists = {worker: _by_kind(own)[kind] for worker, own in workers.items()}
        sizes = Counter(map(len, lists.values()))
        if sizes[minimum + 1] == extras and sizes[minimum] + sizes[minimum + 1] == len(workers):
            continue
        for worker, own in lists.items():
            if len(own) <= minimum:
                continue
            # The first workers in the order of the hash map keep one entry more.
            most = minimum + 1 if extras > 0 else minimum
            extras -= 1
            if len(own) > most:
                revoked.setdefault(worker, {}).update(dict.fromkeys(own[: len(own) - most]))
    return revoked


def _assign(workers: Loads, kind: int, entries: Iterable[Entry]) -> None:
    """Assign each connector (or task) to a worker with the fewest connectors (or tasks)."""
    sizes = {worker: len(_by_kind(own)[kind]) for worker, own in workers.items()}
    order = sorted(workers, key=lambda worker: (sizes[worker], utf16_key(worker)))
    waiting = iter(entries)
    while True:
        fewest = sizes[order[0]]
        for worker in [worker for worker in order if sizes[worker] == fewest]:
            entry = next(waiting, None)
            if entry is None:
                return
            workers[worker][entry] = None
            sizes[worker] += 1


DEFAULT_MAX_DELAY = 300_000
"""Default of ``scheduled.rebalance.max.delay.ms``."""
_MAX_REBALANCES = 1000


def assign_eagerly(document: KindDocument) -> dict[str, object]:
    """Run the eager assignor. Return connectors and tasks per worker after each step."""
    steps: Any = document.content["steps"]
    states = (assign_in_a_circle(step["workers"], step["connectors"]) for step in steps)
    return {"steps": [{"state": _documents(state)} for state in states]}


def assign_incrementally(document: KindDocument) -> dict[str, object]:
    """Run the incremental assignor. Return the rebalances and downtime of each step."""
    maximum: Any = document.content.get("scheduled_rebalance_max_delay_ms", DEFAULT_MAX_DELAY)
    steps: Any = document.content["steps"]
    return {"steps": _Cluster(maximum).run(steps)}


class _Cluster:
    def __init__(self, max_delay: int) -> None:
        self._max_delay = max_delay
        self._leader: IncrementalCooperativeAssignor | None = None
        self._now = 0
        self._delay = 0
        self._configured: Entries = {}
        self._workers: dict[str, Entries] = {}
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
        self._configured = _configured(step["connectors"])
        if self._leader is None or step.get("new_leader", False):
            self._leader = IncrementalCooperativeAssignor(self._max_delay)
        running = step.get("running", {})
        self._workers = {
            worker: _parse(running[worker]) if worker in running else self._workers.get(worker, {})
            for worker in step["workers"]
        }
        return self._leader

    def _advance(self, until: int) -> None:
        """Advance the clock to ``until`` (ms). Rebalance at the end of each delay."""
        while self._leader is not None and self._delay > 0 and self._now + self._delay < until:
            self._pass(self._delay)
            self._rebalance(self._leader)
        self._delay = max(0, self._delay - (until - self._now))
        self._pass(until - self._now)

    def _pass(self, milliseconds: int) -> None:
        """Advance the clock, and add up the downtime of connectors and tasks."""
        self._now += milliseconds
        connectors, tasks = _by_kind(_without(self._configured, *self._workers.values()))
        self._stopped["connector_downtime_ms"] += milliseconds * len(connectors)
        self._stopped["task_downtime_ms"] += milliseconds * len(tasks)

    def _rebalance(self, leader: IncrementalCooperativeAssignor) -> None:
        for _ in range(_MAX_REBALANCES):
            if not self._rebalance_once(leader):
                return
        detail = f"the workers still rebalance after {_MAX_REBALANCES} rebalances"
        raise UpstreamError(detail, "IllegalStateException")

    def _rebalance_once(self, leader: IncrementalCooperativeAssignor) -> bool:
        sent = {worker: _transmitted(own) for worker, own in self._workers.items()}
        result = leader.perform_task_assignment(self._configured, sent, now=self._now)
        self._delay = leader.delay
        received = {worker: _transmitted(own) for worker, own in result.assigned.items()}
        revoked = {worker: own for worker, own in result.revoked.items() if own}
        for worker, own in self._workers.items():
            # New entries precede kept ones.
            self._workers[worker] = received[worker] | _without(own, result.revoked[worker])
        self._rounds.append(
            {
                "at_ms": self._now,
                "delay_ms": self._delay,
                "assigned": _documents({w: own for w, own in received.items() if own}),
                "revoked": _documents(revoked),
            }
        )
        return bool(revoked)


def _transmitted(own: Entries) -> Entries:
    """Order connectors and tasks as in a message, which groups tasks by connector."""
    connectors, tasks = _by_kind(own)
    names = [name for name, _ in connectors]
    names = string_order(names, capacity=set_capacity(len(names)))
    place = {name: index for index, name in enumerate(dict.fromkeys([*names, *dict(tasks)]))}
    tasks.sort(key=lambda task: place[task[0]])
    return dict.fromkeys([*((name, _CONNECTOR) for name in names), *tasks])


def _parse(running: Mapping[str, Iterable[str]]) -> Entries:
    entries = [(connector, _CONNECTOR) for connector in running.get("connectors", ())]
    for text in running.get("tasks", ()):
        connector, _, number = text.rpartition("-")
        entries.append((connector, int(number)))
    return dict.fromkeys(entries)


def _documents(workers: Mapping[str, Entries]) -> dict[str, object]:
    return {worker: _document(workers[worker]) for worker in sorted(workers, key=utf16_key)}


def _document(own: Entries) -> dict[str, list[str]]:
    connectors, tasks = _by_kind(_sorted(own))
    return {
        "connectors": [name for name, _ in connectors],
        "tasks": [f"{name}-{number}" for name, number in tasks],
    }
