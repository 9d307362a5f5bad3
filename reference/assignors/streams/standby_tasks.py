"""Ports of ``DefaultStandbyTaskAssignor`` and ``ClientTagAwareStandbyTaskAssignor``.

Upstream: org.apache.kafka.streams.processor.internals.assignment, kafka-streams 4.2 to 4.3.
"""

from collections.abc import Iterable, Mapping, Sequence

from kassay.reference.assignors.streams.client_state import ClientState, ConstrainedPrioritySet
from kassay.reference.documents.kind_documents import TaskId
from kassay.reference.java.hash_map import HashMap

Tag = tuple[str, str]
"""Key and value of a client tag."""


def assign_to_least_loaded(
    clients: Sequence[ClientState], stateful: Iterable[TaskId], standbys: int
) -> None:
    """Assign each task to the least loaded processes without a copy."""
    by_load = _least_loaded()
    by_load.offer_all(clients)
    for task in stateful:
        _assign_remaining(by_load, task, standbys)


def assign_to_different_tags(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], standbys: int, keys: Sequence[str]
) -> None:
    """Assign each task to processes with other values of the tags ``keys``, as far as possible."""
    values: dict[str, dict[str, None]] = {}
    members: dict[Tag, list[ClientState]] = {}
    for client in clients:
        for key, value in client.tags.items():
            values.setdefault(key, {})[value] = None
            members.setdefault((key, value), []).append(client)
    by_load = _least_loaded()
    # Upstream serves the remaining tasks in the order of a hash map.
    remaining: HashMap[TaskId, int] = HashMap(_task_hash, sort_key=tuple)
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
    """Exclude the processes with the tags of the last used one.

    A tag with no more values than used processes no longer excludes any.
    """
    for key, value in used[-1].tags.items():
        if key not in keys:
            continue
        if len(values[key]) <= len(used):
            for one in values[key]:
                excluded.pop((key, one), None)
        else:
            excluded[key, value] = members[key, value]


def is_allowed_movement(source: ClientState, destination: ClientState) -> bool:
    """Return whether the destination has all tags of the source."""
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
    """Return the hash code of a ``TaskId`` without a topology name."""
    value = (31 * (31 * (31 + task.subtopology) + task.partition)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
