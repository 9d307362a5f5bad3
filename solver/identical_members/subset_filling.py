"""Fill identical members one after the other, each by a subset of the weights.

A subset with the greatest load within the capacity prefers heavy weights, so that the last members
receive many light ones. Source of the method: Haouari, Gharbi, Jemmali, "Tight bounds for the
identical parallel machine scheduling problem", ITOR 13(6), 2006. Large neighbourhood search then
fills random members again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.limits import SearchBudget

_MAX_BITS = 500_000_000  # of the subset sums of one member
_MAX_CAPACITY = 1_000_000
_NOISE = (0.1, 0.3, 0.5)
_SIZES = (2, 3, 4, 5, 6, 8, 12, 20, 40)  # members of a neighbourhood
_MAX_WEIGHTS = 200  # of a neighbourhood, unless two members have more
_CHECK_WORK, _WORK_PER_REFILL = 16, 1e-4


def may_fill(weights: Sequence[int], capacity: int) -> bool:
    """Return whether the subset sums of the weights need little memory."""
    return capacity <= _MAX_CAPACITY and len(weights) * capacity <= _MAX_BITS


def fill(
    weights: Sequence[int], members: int, capacity: int, budget: SearchBudget
) -> Packing | None:
    """Fill members by subsets of weights in descending order; the last one receives the rest.

    Return None if the time is up.
    """
    packing: Packing = []
    left = list(weights)
    for _ in range(members - 1):
        if not budget.has_work:
            return None
        budget.spend(_WORK_PER_REFILL)
        own, left = _fullest(left, capacity, None, 0.0)
        packing.append(own)
    return [*packing, left]


def _fullest(
    weights: Sequence[int], capacity: int, rng: Random | None, noise: float
) -> tuple[list[int], list[int]]:
    """Split weights: a subset with the greatest load within a capacity, and the rest.

    The subset contains the heaviest weight; it prefers heavy weights, but skips each one with the
    probability ``noise``. The weights are in descending order.
    """
    room = capacity - weights[0] if weights else 0
    own, rest = list(weights[:1]), weights[1:]
    if room <= 0 or not rest:
        return own, list(rest)
    mask = (2 << room) - 1
    sums = [1]  # bit s: some of the lightest weights have the sum s
    for weight in reversed(rest):
        sums.append(sums[-1] | (sums[-1] << weight & mask) if weight <= room else sums[-1])
    room = sums.pop().bit_length() - 1
    left = []
    for weight in rest:
        lighter = sums.pop()
        fits = weight <= room and lighter >> (room - weight) & 1
        if fits and not (rng and lighter >> room & 1 and rng.random() < noise):
            own.append(weight)
            room -= weight
        else:
            left.append(weight)
    return own, left


@dataclass
class Refilling:
    """Search that fills a few random members again, while the overload does not increase."""

    packing: Packing
    capacity: int
    rng: Random
    smallest: int = 2  # members of a neighbourhood, or fewer if their weights are too many
    overload: int = field(init=False)

    def __post_init__(self) -> None:
        self.packing = [list(weights) for weights in self.packing]
        self.overload = self._overload_of(self.packing)
        each = max(sum(map(len, self.packing)) // len(self.packing), 1)
        most = min(max(_MAX_WEIGHTS // each, 2), len(self.packing))
        self.sizes = [size for size in _SIZES if self.smallest <= size <= most] or [most]

    def run(self, budget: SearchBudget, max_failures: int) -> None:
        """Refill members until none is overloaded, or too many attempts fail."""
        attempts = failures = 0
        while self.overload and failures < max_failures:
            if attempts % _CHECK_WORK == 0:
                if not budget.has_work:
                    return
                budget.spend(_CHECK_WORK * _WORK_PER_REFILL)
            before = self.overload
            self._refill()
            attempts += 1
            failures = failures + 1 if self.overload == before else 0

    def _refill(self) -> None:
        """Fill an overloaded member and random others again."""
        rng, capacity = self.rng, self.capacity
        overloaded = [at for at, own in enumerate(self.packing) if sum(own) > capacity]
        chosen = rng.sample(range(len(self.packing)), rng.choice(self.sizes))
        first = rng.choice(overloaded)
        if first not in chosen:
            chosen[0] = first
        old = [self.packing[at] for at in chosen]
        left = sorted((weight for own in old for weight in own), reverse=True)
        noise = rng.choice(_NOISE)
        new: Packing = []
        for _ in chosen[1:]:
            own, left = _fullest(left, capacity, rng, noise)
            new.append(own)
        new.append(left)
        change = self._overload_of(new) - self._overload_of(old)
        if change <= 0:
            self.overload += change
            for at, own in zip(chosen, new, strict=True):
                self.packing[at] = own

    def _overload_of(self, packing: Packing) -> int:
        return sum(max(sum(own) - self.capacity, 0) for own in packing)
