"""Targets with the fewest state moves: a remedy for high availability of Kafka Streams.

The remedy replaces the first two steps of the assignor, which choose the target processes of
stateful tasks, and keeps all others. Each task starts where its state is. Then chains of transfers
make the numbers of tasks per thread even. See docs/remedies.md.
"""

from collections.abc import Callable, Sequence
from math import lcm
from typing import NamedTuple

from kassay.reference.assignors.streams import (
    UPSTREAM_TARGETS,
    AssignmentConfigs,
    ClientState,
    Targets,
    assign_application,
    is_caught_up,
)
from kassay.reference.documents.kind_documents import KindDocument, TaskId
from kassay.reference.java_collections import uuid_key
from kassay.reference.protocol.message_decoder import RUNNING

_Tasks = Callable[[ClientState], set[TaskId]]


class Transfer(NamedTuple):
    """The cheapest transfer of a task between two processes, given as indices."""

    cost: int
    task: TaskId
    giver: int
    taker: int


class Chain(NamedTuple):
    """Transfers from one process to the next; change of the imbalance, then cost."""

    imbalance: int
    cost: int
    transfers: tuple[Transfer, ...]


def assign(document: KindDocument) -> dict[str, object]:
    """Assign with targets of active and standby tasks that need the fewest state moves."""
    targets = Targets(_place_active, _place_standbys)
    return assign_application(document, targets=targets)


def assign_active(document: KindDocument) -> dict[str, object]:
    """Change the targets of active tasks only."""
    targets = UPSTREAM_TARGETS._replace(place_active=_place_active)
    return assign_application(document, targets=targets)


def _place_active(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], configs: AssignmentConfigs
) -> None:
    """Place active tasks: lowest imbalance, then fewest moves of state."""
    _place(clients, stateful, 1, configs, lambda client: client.active)


def _place_standbys(
    clients: Sequence[ClientState], stateful: Sequence[TaskId], configs: AssignmentConfigs
) -> None:
    """Place standby tasks likewise, beside the active tasks. Tags are not supported."""
    standbys = configs.num_standby_replicas
    _place(clients, stateful, standbys, configs, lambda client: client.standby)


def _place(
    clients: Sequence[ClientState],
    stateful: Sequence[TaskId],
    copies: int,
    configs: AssignmentConfigs,
    tasks_of: _Tasks,
) -> None:
    def cost(client: ClientState, task: TaskId) -> int:
        # One move of state costs more than all hand-overs between processes with the state.
        if client.lags[task] == RUNNING:
            return 0
        return 1 if is_caught_up(client, task, configs.acceptable_recovery_lag) else weight

    def change(client: ClientState, tasks: int) -> int:
        # Of the sum over processes of load**2 / threads, if the process takes or gives a task.
        return (2 * client.assigned_count * tasks + 1) * (common // client.capacity)

    weight = 1 + copies * len(stateful)
    common = lcm(*(client.capacity for client in clients))
    for task in stateful:
        for _ in range(copies):
            free = [client for client in clients if not client.has_assigned(task)]
            if not free:
                break
            chosen = min(
                free,
                key=lambda client, task=task: (  # type: ignore[misc]
                    cost(client, task),
                    client.lags[task] if cost(client, task) == weight else 0,
                    change(client, 1),
                    uuid_key(client.id),
                ),
            )
            tasks_of(chosen).add(task)
    while True:
        chain = _best_chain(clients, tasks_of, cost, change)
        if not chain.transfers:
            return
        for transfer in chain.transfers:
            tasks_of(clients[transfer.giver]).remove(transfer.task)
            tasks_of(clients[transfer.taker]).add(transfer.task)


def _best_chain(
    clients: Sequence[ClientState],
    tasks_of: _Tasks,
    cost: Callable[[ClientState, TaskId], int],
    change: Callable[[ClientState, int], int],
) -> Chain:
    """Return the cheapest chain among those with the lowest imbalance (Bellman-Ford)."""
    cheapest = [
        min(
            (
                Transfer(cost(taker, task) - cost(giver, task), task, i, j)
                for task in tasks_of(giver)
                if not taker.has_assigned(task)
            ),
            default=None,
        )
        for i, giver in enumerate(clients)
        for j, taker in enumerate(clients)
        if i != j
    ]
    transfers = [transfer for transfer in cheapest if transfer is not None]
    best = Chain(0, 0, ())
    for first, giver in enumerate(clients):
        found = {first: Chain(0, 0, ())}
        for _ in clients[1:]:
            before = dict(found)
            for transfer in transfers:
                chain = before.get(transfer.giver)
                if chain is None:
                    continue
                total = chain.cost + transfer.cost
                if transfer.taker not in found or total < found[transfer.taker].cost:
                    longer = (*chain.transfers, transfer)
                    found[transfer.taker] = Chain(0, total, longer)
        for last, taker in enumerate(clients):
            if last != first and last in found:
                imbalance = change(taker, 1) + change(giver, -1)
                chain = found[last]._replace(imbalance=imbalance)
                best = min(best, chain, key=lambda one: one[:2])
    return best
