"""Simple searches for low maximum loads with few moves, and groups to compare them on.

The searches share no code with the solver.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from kassay import Group, Member, Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.constraints import Constraint, Pinned, Separated
from kassay.solver.problem import Problem


def by_maximum(problem: Problem, most: int) -> list[int]:
    """Return the maximum loads after moves that each lower the maximum load most."""
    return beam(problem, most, width=1)


def by_squares(problem: Problem, most: int) -> list[int]:
    """Return the maximum loads after moves that each lower the sum of squares most."""
    found = (greedy_within(problem, (), moves) for moves in range(most + 1))
    return list(accumulate((max(problem.loads(one)) for one in found), min))


def beam(problem: Problem, most: int, width: int = 50) -> list[int]:
    """Return the maximum loads of a beam search over single moves of the most loaded member."""
    weight = problem.weight
    states = [(problem.owner, np.array(problem.loads(problem.owner)))]
    found = [int(states[0][1].max())]
    for _ in range(most):
        children: dict[bytes, tuple[int, float, int, int, int]] = {}
        for number, (placement, loads) in enumerate(states):
            source = int(loads.argmax())
            moves = _moves(problem, placement, source)
            sources, targets = moves[:, 0], moves[:, 1]
            after = np.tile(loads, (len(moves), 1))
            after[:, source] -= weight[sources]
            after[np.arange(len(moves)), targets] += weight[sources]
            highest, squares = after.max(axis=1), np.square(after, dtype=float).sum(axis=1)
            for row in np.lexsort((squares, highest))[: 2 * width].tolist():
                rank = (int(highest[row]), float(squares[row]))
                child = (*rank, number, int(sources[row]), int(targets[row]))
                children.setdefault(after[row].tobytes(), child)
        best = sorted(children.values())[:width]
        following = []
        for _, _, number, at, target in best:
            placement, loads = states[number]
            placement, loads = placement.copy(), loads.copy()
            loads[placement[at]] -= weight[at]
            loads[target] += weight[at]
            placement[at] = target
            following.append((placement, loads))
        states = following or states
        found.append(min([found[-1], *(int(loads.max()) for _, loads in states)]))
    return found


def greedy_within(problem: Problem, rules: Sequence[Constraint], most: int) -> np.ndarray:
    """Return a placement after moves that each lower the sum of squares most.

    Before them, partitions move as pins require, and the second of two separated partitions to the
    member with the lowest relative load.
    """
    placement, weight = problem.owner.copy(), problem.weight.astype(float)
    speed = np.array([problem.group.members[at].speed for at in problem.members])
    index, free = problem.partition_index, np.ones(problem.partition_count, dtype=bool)
    for rule in rules:
        if isinstance(rule, Pinned):
            at = index[TopicPartition(rule.topic, rule.partition)]
            placement[at], free[at] = problem.member_index[rule.member], False
    loads = np.bincount(placement, weight, problem.member_count)
    for rule in rules:
        if isinstance(rule, Separated):
            first, second = (index[tp] for tp in rule.partitions)
            free[[first, second]] = False
            if placement[first] == placement[second]:
                loads[placement[second]] -= weight[second]
                relative = loads / speed
                relative[placement[first]] = np.inf
                placement[second] = relative.argmin()
                loads[placement[second]] += weight[second]
    for _ in range(most - int((placement != problem.owner).sum())):
        giver = (loads[placement] ** 2 - (loads[placement] - weight) ** 2) / speed[placement]
        taker = ((loads[None, :] + weight[:, None]) ** 2 - loads[None, :] ** 2) / speed[None, :]
        drop = giver[:, None] - taker
        drop[~free | (placement != problem.owner)] = 0
        drop[~problem.may_consume[problem.consumer_set]] = 0
        drop[np.arange(len(placement)), placement] = 0
        at, target = divmod(int(drop.argmax()), problem.member_count)
        if drop[at, target] <= 0:
            break
        loads[placement[at]] -= weight[at]
        loads[target] += weight[at]
        placement[at] = target
    return placement


def greedy_sets(
    problem: Problem, sets: Sequence[Sequence[int]], most_partitions: int
) -> np.ndarray:
    """Return a placement of colocated partitions: the heaviest set goes to the lowest load.

    A member gets at most a number of partitions.
    """
    placement = np.zeros(problem.partition_count, dtype=np.int32)
    speed = np.array([problem.group.members[at].speed for at in problem.members])
    loads, counts = np.zeros(problem.member_count), np.zeros(problem.member_count)
    by_weight = sorted(sets, key=lambda each: -int(problem.weight[[*each]].sum()))
    for each in sorted(by_weight, key=len, reverse=True):
        weight = problem.weight[[*each]].sum()
        has_room = counts + len(each) <= most_partitions
        member = int(np.where(has_room, (loads + weight) / speed, np.inf).argmin())
        placement[[*each]] = member
        loads[member] += weight
        counts[member] += len(each)
    return placement


def _moves(problem: Problem, placement: np.ndarray, source: int) -> np.ndarray:
    """Return partitions of a member that did not move yet, and their other consumers."""
    at = np.flatnonzero((placement == source) & (problem.owner == source))
    allowed = problem.may_consume[problem.consumer_set[at]].copy()
    allowed[:, source] = False
    rows, targets = np.nonzero(allowed)
    return np.stack((at[rows], targets), axis=1)


def seeded_groups(
    count: int, *, first: int = 0, most_partitions: int = 3_000, size: tuple[int, int] | None = None
) -> Iterator[Group]:
    """Yield seeded groups with different weights and owners that are not balanced.

    ``first`` is the first seed, and ``size`` the number of members and of partitions of each group.
    """
    for seed in range(first, first + count):
        rng = random.Random(seed)
        members, partitions = rng.randint(12, 60), rng.randint(100, most_partitions)
        members, partitions = (members, partitions) if size is None else size
        topics = rng.choice([1, 1, 3, 8])
        counts = [partitions // topics] * topics
        exponent = rng.uniform(0.6, 1.2)
        weights = [
            round(1_000_000 / (rank + 1) ** exponent) + 1
            if seed % 4
            else round(rng.lognormvariate(8, 1)) + 1
            for rank in range(sum(counts))
        ]
        rng.shuffle(weights)
        names = [f"t{number}" for number in range(topics)]
        subscribed = [
            names if topics == 1 or seed % 3 else sorted(rng.sample(names, rng.randint(1, topics)))
            for _ in range(members)
        ]
        subscribed[0] = names
        owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
        listed, start = [], 0
        for name, number in zip(names, counts, strict=True):
            consumers = [at for at, one in enumerate(subscribed) if name in one]
            racks = tuple((f"r{rng.randint(0, 2)}",) for _ in range(number))
            listed.append(
                Topic(
                    name=name,
                    partitions=number,
                    weights=tuple(weights[start : start + number]),
                    racks=racks if seed % 5 == 0 else None,
                )
            )
            start += number
            for at in range(number):  # as range assigns
                owned[consumers[at * len(consumers) // number]].append((name, at))
        yield Group(
            id=f"seed {seed}",
            topics=tuple(listed),
            members=tuple(
                Member(
                    id=f"c{at:02}",
                    subscription=tuple(subscribed[at]),
                    owned=owned[at],
                    generation=1,
                    rack=f"r{at % 3}" if seed % 5 == 0 else None,
                )
                for at in range(members)
            ),
        )


def groups_with_a_heavy_partition(count: int) -> Iterator[Group]:
    """Yield seeded groups of several topics with rates, one of them above the mean load."""
    for seed in range(count):
        rng = random.Random(f"receivers {seed}")
        members, topics, partitions = rng.randint(8, 24), rng.randint(2, 6), rng.randint(20, 90)
        size = topics * partitions
        weights = [round(10_000 / (rank + 1) ** rng.uniform(0.6, 1.1)) + 1 for rank in range(size)]
        rng.shuffle(weights)
        weights[rng.randrange(size)] = round(sum(weights) / members * rng.choice([1.2, 1.8, 2.5]))
        names = tuple(f"t{number}" for number in range(topics))
        owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
        for name in names:
            for at in range(partitions):  # as range assigns
                owned[at * members // partitions].append((name, at))
        yield Group(
            id=f"seed {seed}",
            topics=tuple(
                Topic(
                    name=name,
                    partitions=partitions,
                    weights=tuple(weights[number * partitions : (number + 1) * partitions]),
                )
                for number, name in enumerate(names)
            ),
            members=tuple(
                Member(id=f"c{at:02}", subscription=names, owned=owned[at], generation=1)
                for at in range(members)
            ),
        )


def badly_received(problem: Problem, placement: np.ndarray) -> list[tuple[int, int]]:
    """Return partitions that members above 1.5 times the mean receive, and better receivers.

    A better receiver is below the mean, neither gives nor receives, and would have a lower load.
    """
    loads, mean = problem.loads(placement), sum(problem.loads(placement)) / problem.member_count
    moved = np.flatnonzero(placement != problem.owner).tolist()
    touched = {*placement[moved].tolist(), *problem.owner[moved].tolist()}
    return [
        (at, member)
        for at in moved
        if loads[placement[at]] > 1.5 * mean
        for member in problem.consumer_sets[problem.consumer_set[at]].tolist()
        if member not in touched
        and loads[member] < mean
        and loads[member] + int(problem.weight[at]) < loads[placement[at]]
    ]
