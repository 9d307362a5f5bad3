"""Large neighbourhood search that repacks a few members so that fewer loads exceed a target.

Three members are repacked by sequential number partitioning (Korf, "Objective functions for
multi-way number partitioning", SoCS 2010): one member after the other receives a subset with a
load in a window. More members are repacked by patterns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kassay.solver.enumeration.subset_enumeration import (
    EnumerationLimitError,
    contained,
    enumerate_subsets,
    nearest_subset,
)
from kassay.solver.identical_members.load_patterns import WeightClasses
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.identical_members.pattern_packing import Answer, PatternPacking
from kassay.solver.limits import SearchBudget
from kassay.solver.number_ranges import Weights, exact_integers

_MAX_PATTERNS = 4_000
_WORK_PER_ATTEMPT = 1e-3
_WORK = 1.0  # per neighbourhood
_MAX_FAILURES = 12
_SMALLEST = 3
_GROWTH = 5  # a neighbourhood grows by this fraction of its size, at least by 1
_TRIES = 4  # attempts with three members, before more members are repacked
_MAX_WEIGHTS = 26
_MAX_SUBSETS_TRIED = 1_500


@dataclass
class Repacking:
    """Search that repacks a few members at a time to lower loads to a target."""

    packing: Packing
    target: int
    budget: SearchBudget
    rng: np.random.Generator
    size: int  # members in a neighbourhood
    loads: Weights = field(init=False)

    def __post_init__(self) -> None:
        self.packing = [list(weights) for weights in self.packing]
        self.loads = exact_integers([sum(weights) for weights in self.packing])

    def run(self) -> None:
        """Repack members until no load exceeds the target or too many attempts fail."""
        failures = 0
        while failures < _MAX_FAILURES and self.budget.has_work:
            self.budget.spend(_WORK_PER_ATTEMPT)
            overloaded = np.flatnonzero(self.loads > self.target)
            if not len(overloaded):
                return
            member = int(self.rng.choice(overloaded))
            done = any(self._repartition(member) for _ in range(_TRIES)) or self._repack(member)
            failures = 0 if done else failures + 1

    def _repartition(self, overloaded: int) -> bool:
        """Redistribute the weights of an overloaded member and two others, by subset sums."""
        members = [overloaded, *self._least_loaded(overloaded, 4)[:2]]
        weights = [weight for at in members for weight in self.packing[at]]
        if len(members) < 3 or sum(weights) > 3 * self.target or len(weights) > _MAX_WEIGHTS:
            return False
        packed = partition_within(weights, 3, self.target, self.rng, self.budget)
        return packed is not None and self._replace(members, packed)

    def _repack(self, overloaded: int) -> bool:
        """Redistribute the weights of an overloaded member and several others, by patterns."""
        members = [overloaded, *self._least_loaded(overloaded, self.size)[: self.size - 1]]
        weights = [weight for at in members for weight in self.packing[at]]
        if sum(weights) > len(members) * self.target:
            return False
        classes = WeightClasses.of(weights)
        problem = PatternPacking.within(
            classes, len(members), self.target, _MAX_PATTERNS, self.budget
        )
        if problem is None:
            self.size = max(self.size - 1, _SMALLEST)
            return False
        answer, packed = problem.pack(self.budget.until(_WORK))
        if answer is not Answer.YES:
            # It takes little time to prove that no packing exists: take more members.
            change = 1 + self.size // _GROWTH if answer is Answer.NO else -1
            self.size = min(max(self.size + change, _SMALLEST), len(self.packing))
            return False
        packed += [[] for _ in range(len(members) - len(packed))]
        packed[0].extend(weight for weight in weights if not weight)
        return self._replace(members, packed)

    def _least_loaded(self, overloaded: int, count: int) -> list[int]:
        """Return the least loaded members of a random sample, in random order."""
        others = self.rng.permutation(len(self.packing))[: 3 * count]
        others = others[others != overloaded]
        least = others[np.argsort(self.loads[others], kind="stable")][:count]
        return [int(at) for at in self.rng.permutation(least)]

    def _replace(self, members: list[int], packed: Packing) -> bool:
        for at, own in zip(members, packed, strict=True):
            self.packing[at] = own
            self.loads[at] = sum(own)
        return True


def partition_within(
    weights: Sequence[int],
    members: int,
    capacity: int,
    rng: np.random.Generator,
    budget: SearchBudget,
) -> Packing | None:
    """Divide weights among members within a capacity; return None if the search fails."""
    column = exact_integers(sorted(weights, reverse=True))
    return _split(column, members, capacity, rng, budget)


def _split(
    weights: Weights, members: int, capacity: int, rng: np.random.Generator, budget: SearchBudget
) -> Packing | None:
    total = sum(weights.tolist())
    if members == 1:
        return [weights.tolist()] if total <= capacity else None
    if members == 2:
        return _halves(weights, total, capacity)
    # The first member receives the heaviest weight.
    heaviest, rest = int(weights[0]), weights[1:]
    low = max(total - (members - 1) * capacity - heaviest, 0)
    try:
        subsets = enumerate_subsets(rest, low, capacity - heaviest)
    except EnumerationLimitError:
        return None
    tries = rng.permutation(len(subsets.mask))[:_MAX_SUBSETS_TRIED].tolist()
    for index in tries:
        if not budget.has_work:
            return None
        chosen = contained(subsets.mask[index], len(rest))
        others = _split(rest[~chosen], members - 1, capacity, rng, budget)
        if others is not None:
            return [[heaviest, *rest[chosen].tolist()], *others]
    return None


def _halves(weights: Weights, total: int, capacity: int) -> Packing | None:
    chosen = contained(nearest_subset(weights, total // 2), len(weights))
    load = sum(weights[chosen].tolist())
    if max(load, total - load) > capacity:
        return None
    return [weights[chosen].tolist(), weights[~chosen].tolist()]
