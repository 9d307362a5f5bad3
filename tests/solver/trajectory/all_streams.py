"""Fewest moves of all small streams, with and without knowledge of later rebalances.

A stream is a sequence of groups, and a group is the set of consumers of each partition, as a bit
mask. The search keeps the costs of all assignments after a prefix of a stream. Prefixes with equal
costs, up to the names of members and partitions, are continued once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.int64]
UNREACHED = 10**6


@dataclass(frozen=True)
class Prefix:
    """Costs per assignment, and the groups so far."""

    hindsight: Costs
    each: Costs  # with the fewest moves at each rebalance, and the luckiest choice among them
    groups: tuple[tuple[int, ...], ...] = ()


class StreamSearch:
    """All streams of a number of members and partitions."""

    def __init__(self, members: int, partitions: int) -> None:
        self.members, self.partitions = members, partitions
        # The number of members means that a partition is not assigned.
        self.assignments = [*product(range(members + 1), repeat=partitions)]
        self.index = {one: at for at, one in enumerate(self.assignments)}
        self.groups = [*product(range(2**members), repeat=partitions)]
        self.steps = [self._step(group) for group in self.groups]
        self.namings = [
            np.array([self._renamed(one, names, order) for one in self.assignments])
            for names in permutations(range(members))
            for order in permutations(range(partitions))
        ]

    def _renamed(self, one: tuple[int, ...], names: tuple[int, ...], order: tuple[int, ...]) -> int:
        return self.index[tuple((*names, self.members)[one[at]] for at in order)]

    def _step(self, group: tuple[int, ...]) -> tuple[Costs, Costs]:
        """Return the assignments with minimum imbalance, and the moves to them."""
        choices = [
            [m for m in range(self.members) if mask >> m & 1] or [self.members] for mask in group
        ]
        found = [*product(*choices)]
        squares = [sum(one.count(m) ** 2 for m in range(self.members)) for one in found]
        even = [one for one, value in zip(found, squares, strict=True) if value == min(squares)]
        table = np.array(self.assignments)
        masks = np.array(group)
        is_owner = (masks >> table & 1 == 1) & (table < self.members)
        changed = table[:, None, :] != np.array(even)[None, :, :]
        moves = (changed & is_owner[:, None, :]).sum(axis=2)
        return np.array([self.index[one] for one in even]), moves

    def prefixes(self, rebalances: int) -> Iterator[Prefix]:
        """Yield one prefix per class of equal costs, up to a number of rebalances."""
        start = np.full(len(self.assignments), UNREACHED)
        start[self.index[(self.members,) * self.partitions]] = 0
        level, seen = [Prefix(start, start)], set()
        for _ in range(rebalances):
            following = []
            for prefix in level:
                for group, step in zip(self.groups, self.steps, strict=True):
                    longer = self._longer(prefix, group, step)
                    key = min(
                        longer.hindsight[at].tobytes() + longer.each[at].tobytes()
                        for at in self.namings
                    )
                    if key not in seen:
                        seen.add(key)
                        following.append(longer)
                        yield longer
            level = following

    def _longer(self, prefix: Prefix, group: tuple[int, ...], step: tuple[Costs, Costs]) -> Prefix:
        even, moves = step
        hindsight = np.full(len(self.assignments), UNREACHED)
        hindsight[even] = (prefix.hindsight[:, None] + moves).min(axis=0)
        each = np.full(len(self.assignments), UNREACHED)
        is_fewest = moves == moves.min(axis=1, keepdims=True)
        each[even] = np.where(is_fewest, prefix.each[:, None] + moves, UNREACHED).min(axis=0)
        return Prefix(hindsight, each, (*prefix.groups, group))
