"""Benchmark the solver on special subscription networks, compared with one OR-Tools flow.

The other implementation solves the same group as one plain network with `SimpleMinCostFlow`:
topics, members and a sink. A squared load is a sequence of arcs with capacity 1. Both times are
processor time from the group on; kassay's includes the certificate and the assignment.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.timing import KASSAY, Timing, run_alone
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.network.subscription_network import build_network
from kassay.solver.problem import Ints, build_problem
from kassay.solver.solve import solve

_PLAIN = "SimpleMinCostFlow, plain network"


def build_group(
    sizes: Sequence[int],
    subscriptions: Sequence[Sequence[int]],
    owners: Sequence[tuple[int, int, int]] = (),
) -> Group:
    """Build a group from partitions per topic, topics per member, and owned partitions.

    An owned partition is a triple (member, topic, partition).

    Examples
    --------
    >>> build_group([2], [[0], [0]], [(1, 0, 1)]).members[1].owned
    Partitions([t0-1])
    """
    owned: dict[int, list[tuple[str, int]]] = {}
    for member, topic, partition in owners:
        owned.setdefault(member, []).append((f"t{topic}", partition))
    return Group(
        topics=tuple(Topic(name=f"t{at}", partitions=size) for at, size in enumerate(sizes)),
        members=tuple(
            Member(
                id=f"m{at}",
                subscription=tuple(f"t{topic}" for topic in topics),
                owned=Partitions.of(owned.get(at, ())),
                generation=1,
            )
            for at, topics in enumerate(subscriptions)
        ),
    )


def chain(members: int) -> Group:
    """Build a chain: neighbouring members share a topic; only the first topic has 2 partitions.

    The first member owns all partitions of the first topic.
    """
    topics = members - 1
    subscriptions = [[0], *([at - 1, at] for at in range(1, topics)), [topics - 1]]
    owners = [(0, 0, 1), *((at, at, 0) for at in range(topics))]
    return build_group([2, *[1] * (topics - 1)], subscriptions, owners)


def path(members: int) -> Group:
    """Build a path: neighbouring members share a topic with 1 to 4 randomly owned partitions."""
    rng = random.Random(1)
    sizes = [rng.randint(1, 4) for _ in range(members - 1)]
    subscriptions = [[0], *([at - 1, at] for at in range(1, members - 1)), [members - 2]]
    owners = [(t + rng.randint(0, 1), t, p) for t, size in enumerate(sizes) for p in range(size)]
    return build_group(sizes, subscriptions, owners)


def star(members: int) -> Group:
    """Build a star: all members share one topic, and each member also has its own topic."""
    return build_group([members, *[1] * members], [[0, at + 1] for at in range(members)])


def ring(members: int) -> Group:
    """Build a ring: neighbouring members share a topic with 2 partitions."""
    return build_group([2] * members, [[at, (at + 1) % members] for at in range(members)])


def nested(members: int) -> Group:
    """Build nested consumer sets: each of 12 topics has fewer consumers than the one before."""
    topics = [[*range(1 + at * 12 // members)] for at in range(members)]
    return build_group([members] * 12, topics)


def sparse(members: int) -> Group:
    """Build a random network: each member consumes 3 of as many topics as there are members."""
    rng = random.Random(0)
    sizes = [rng.randint(1, 3) for _ in range(members)]
    return build_group(sizes, [sorted(rng.sample(range(members), 3)) for _ in range(members)])


def hub(members: int) -> Group:
    """Build a hub: one member consumes all topics, and each topic has one other consumer."""
    topics = members - 1
    return build_group([2] * topics, [[*range(topics)], *([at] for at in range(topics))])


def grid(members: int) -> Group:
    """Build a grid on a torus: members consume the topics of their cell and two neighbours."""
    rng = random.Random(0)
    side = round(math.sqrt(members))
    cells = [(row, column) for row in range(side) for column in range(side)]
    subscriptions = [
        [r * side + c, r * side + (c + 1) % side, (r + 1) % side * side + c] for r, c in cells
    ]
    consumers: list[list[int]] = [[] for _ in cells]
    for member, topics in enumerate(subscriptions):
        for topic in topics:
            consumers[topic].append(member)
    sizes = [rng.randint(0, 6) for _ in cells]
    owners = [(rng.choice(consumers[t]), t, p) for t, size in enumerate(sizes) for p in range(size)]
    return build_group(sizes, subscriptions, owners)


def staircase(members: int) -> Group:
    """Build a staircase: topic i has i + 1 partitions; members i, i + 1, ... consume it."""
    return build_group([*range(1, members + 1)], [[*range(at + 1)] for at in range(members)])


SHAPES: dict[str, tuple[Callable[[int], Group], tuple[int, int]]] = {
    "chain": (chain, (1_000, 4_000)),
    "path": (path, (4_000, 16_000)),
    "star": (star, (4_000, 16_000)),
    "ring": (ring, (500, 4_000)),
    "nested": (nested, (200, 1_000)),
    "sparse": (sparse, (500, 5_000)),
    "hub": (hub, (4_000, 16_000)),
    "grid": (grid, (4_096, 16_129)),
    "staircase": (staircase, (1_000, 2_000)),
}
"""Generator, and numbers of members, of each shape."""


def shapes() -> Iterator[Timing]:
    """Time the solver and one OR-Tools flow on each network shape, in separate processes."""
    for name, (_, sizes) in SHAPES.items():
        before: float | None = None
        for size in sizes:
            seconds, plain, note = run_alone(_measure, name, size)
            if before is not None:
                exponent = math.log(seconds / before) / math.log(size / sizes[0])
                note += f"; exponent {exponent:.2f}"
            before = seconds
            case = f"{name}, {size} members"
            for solver, used in ((KASSAY, seconds), (_PLAIN, plain)):
                yield Timing(
                    benchmark="shapes",
                    case=case,
                    implementation=solver,
                    seconds=used,
                    note=note if solver == KASSAY else "",
                )


def _measure(name: str, size: int) -> tuple[float, float, str]:
    solve(chain(200))  # loads OR-Tools, which small networks do not need
    group = SHAPES[name][0](size)
    seconds = math.inf
    for _ in range(3):
        # A copy has no cached results.
        again, start = replace(group), time.process_time()
        solution = solve(again)
        seconds = min(seconds, time.process_time() - start)
    if solution.assignment is None:
        raise RuntimeError(f"{name}: the solver found no assignment")
    highest = max(solution.assignment.counts().values())
    start = time.process_time()
    values = plain_network(replace(group), highest)
    plain = time.process_time() - start
    if values != (solution.imbalance.value, solution.movement.value):
        raise RuntimeError(f"{name}: the plain network has other values: {values}")
    return seconds, plain, f"{solution.status}, {solution.movement.value} moves"


def plain_network(group: Group, highest: int) -> tuple[int, int]:
    """Minimise the sum of squared loads, then moves, by one minimum cost flow.

    Loads are at most ``highest``. Return both minimum values.

    Examples
    --------
    >>> plain_network(chain(5), 2)
    (5, 4)
    """
    from ortools.graph.python import min_cost_flow  # noqa: PLC0415

    network = build_network(build_problem(group))
    topics, members = network.topics, network.members
    scale, sink = int(network.supply.sum()) + 1, topics + members
    owning = np.flatnonzero(network.owned)
    taker = np.repeat(np.arange(members), highest)
    step = np.tile(np.arange(highest), members)
    columns: list[tuple[Ints, Ints, Ints, Ints]] = [
        (
            network.tail,
            topics + network.head,
            network.supply[network.tail],
            np.ones(len(network.tail), int),
        ),
        (
            network.tail[owning],
            topics + network.head[owning],
            network.owned[owning],
            np.zeros(len(owning), int),
        ),
        (
            topics + taker,
            np.full(len(taker), sink),
            np.ones(len(taker), int),
            (2 * step + 1) * scale,
        ),
    ]
    tails, heads, capacities, costs = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(
        tails.astype(np.int32), heads.astype(np.int32), capacities, costs
    )
    supplies = np.concatenate([network.supply, np.zeros(members, int), [-network.supply.sum()]])
    flow.set_nodes_supplies(np.arange(sink + 1, dtype=np.int32), supplies)
    if flow.solve() != flow.OPTIMAL:
        raise RuntimeError("the plain network has no flow")
    squares, placed = divmod(flow.optimal_cost(), scale)
    # Partitions without an owner cost 1, too.
    unowned = int(network.supply.sum() - network.owned.sum())
    return squares, placed - unowned
