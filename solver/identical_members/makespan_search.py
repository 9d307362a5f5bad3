"""Minimise the maximum load of groups with identical members in each connected component."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.identical_members.packing_heuristics import (
    Packing,
    Refilling,
    SubsetFilling,
    longest_first,
    makespan_lower_bound,
    makespan_of,
    multifit,
)
from kassay.solver.identical_members.pattern_covers import PatternCovers, WeightClasses
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Placement, Problem, connected_components

_KEPT_COVERS = 2  # capacities
_SHORT_REFILL, _LONG_REFILL = 1_000, 20_000  # refills without success
_MANY_REFILLED = 8  # members that are filled together, at least, in a long search
# Shares of the work left.
_FILL_SHARE, _BOUND_SHARE, _DIVE_SHARE, _REFILL_SHARE = 0.3, 0.4, 0.4, 0.3
_DIVES = 3  # per capacity
_MAX_NOISE = 0.1  # of a dive
_MAX_MATCHED_MEMBERS = 400


@dataclass
class MakespanSearch:
    """Search for the minimum makespan; it improves a bound and a packing step by step."""

    weights: Sequence[int]  # descending
    members: int
    rng: np.random.Generator
    packing: Packing = field(init=False)
    bound: int = field(init=False)
    covers: dict[int, PatternCovers] = field(init=False, default_factory=dict)  # by capacity

    def __post_init__(self) -> None:
        self.classes = WeightClasses.of(self.weights)
        self.bound = makespan_lower_bound(self.weights, self.members)
        self.packing = longest_first(self.weights, self.members)

    @property
    def makespan(self) -> int:
        """Return the maximum load of the best packing."""
        return makespan_of(self.packing)

    def run(self, budget: SearchBudget) -> None:
        """Improve the bound and the packing until they are equal or no work is left."""
        if self._may_continue(budget):
            self.offer(multifit(self.weights, self.members, self.bound, self.makespan, budget))
        if self._may_continue(budget):
            self._fill(budget.part(_FILL_SHARE))
        if self._may_continue(budget) and self._raise_bound(budget.part(_BOUND_SHARE)):
            self._dive(budget.part(_DIVE_SHARE))
        self._refill(budget)

    def _may_continue(self, budget: SearchBudget) -> bool:
        return self.makespan > self.bound and budget.has_work

    def offer(self, packing: Packing | None) -> None:
        """Keep a packing if it is better than the current packing."""
        if packing is not None and makespan_of(packing) < self.makespan:
            self.packing = packing

    def _filling(self, capacity: int, budget: SearchBudget) -> SubsetFilling:
        return SubsetFilling(capacity, budget, Random(int(self.rng.integers(2**62))))  # noqa: S311

    def _fill(self, budget: SearchBudget) -> None:
        """Fill all members up to the bound, then some of them repeatedly."""
        filling = self._filling(self.bound, budget)
        if filling.may_fill(self.weights):
            search = Refilling(filling.fill(self.weights, self.members) or self.packing, filling)
            self.offer(search.packing)
            search.run(_SHORT_REFILL)
            self.offer(search.packing)

    def _raise_bound(self, budget: SearchBudget) -> bool:
        """Raise the bound while prices refute a capacity; return whether patterns are listed."""
        step = 1
        infeasible, feasible = self.bound - 1, self.makespan
        while infeasible + 1 < feasible and budget.has_work:
            middle = min(infeasible + step, (infeasible + feasible) // 2)
            covers = self._covers_within(middle, budget)
            if covers is None and middle == self.bound:
                return False
            if covers is not None and covers.are_refuted(budget):
                infeasible, step = middle, 2 * step
            else:
                feasible, step = middle, 1
        self.bound = max(self.bound, infeasible + 1)
        return True

    def _dive(self, budget: SearchBudget) -> None:
        """Search for a lower makespan by dives, with capacities from the lower bound upwards."""
        failed, step = self.bound - 1, 1
        while failed + 1 < self.makespan and budget.has_work:
            capacity = min(failed + step, (failed + self.makespan) // 2)
            covers = self._covers_within(capacity, budget)
            if covers is None:
                return
            noises = (_MAX_NOISE * attempt / _DIVES for attempt in range(_DIVES))
            dives = (covers.dive(budget, self.rng, noise) for noise in noises)
            packed = next((one for one in dives if one is not None), None)
            if packed is None:
                failed, step = capacity, 2 * step
            else:
                self.offer(self._complete(packed))
                step = 1

    def _refill(self, budget: SearchBudget) -> None:
        """Refill members to reach the bound or, if this fails, loads above it."""
        self._refill_to(
            self.bound,
            budget.part(_REFILL_SHARE),
            _LONG_REFILL,
            min(_MANY_REFILLED, max(2, self.members // 8)),
        )
        parts, failures = 2, _SHORT_REFILL
        while self._may_continue(budget):
            target = self.makespan - max((self.makespan - self.bound) // parts, 1)
            self._refill_to(target, budget, failures, 2)
            if self.makespan <= target:
                parts = max(parts // 2, 1)
            elif target < self.makespan - 1:
                parts *= 2
            elif failures < _LONG_REFILL:
                failures *= 2
            else:
                return

    def _refill_to(
        self, target: int, budget: SearchBudget, max_failures: int, smallest: int
    ) -> None:
        """Refill at least some members at a time until all loads are within a target."""
        filling = self._filling(target, budget)
        if not self._may_continue(budget) or not filling.may_fill(self.weights):
            return
        search = Refilling(self.packing, filling, smallest)
        search.run(max_failures)
        self.offer(search.packing)

    def _covers_within(self, capacity: int, budget: SearchBudget) -> PatternCovers | None:
        """Return the covers within a capacity; the last ones are kept: listing takes long."""
        if capacity not in self.covers:
            found = PatternCovers.within(self.classes, self.members, capacity, budget)
            if found is None:
                return None
            self.covers[capacity] = found
            if len(self.covers) > _KEPT_COVERS:
                del self.covers[next(iter(self.covers))]
        return self.covers[capacity]

    def _complete(self, packed: Packing) -> Packing:
        """Add members without load, and the weights of 0, which patterns do not contain."""
        full = [*packed, *([] for _ in range(self.members - len(packed)))]
        full[0].extend(weight for weight in self.weights if not weight)
        return full


@dataclass(frozen=True, slots=True)
class PackingResult:
    """Placement found, and a lower bound on the makespan of all placements."""

    placement: Placement
    bound: int


def minimise_makespan(
    problem: Problem, start: Placement, budget: SearchBudget
) -> PackingResult | None:
    """Minimise the makespan; return None if the members of a component are not identical.

    Components with a makespan below the bound of another one need no search.
    """
    parts = [part for part in connected_components(problem) if len(part[1])]
    for members, partitions in parts:
        sets = np.unique(problem.consumer_set[partitions]).tolist()
        if any(len(problem.consumer_sets[at]) < len(members) for at in sets):
            return None
    packings = [_packing(problem, start, *part) for part in parts]
    rng = np.random.default_rng(budget.seed)
    searches = [
        MakespanSearch(sorted(problem.weight[partitions].tolist(), reverse=True), len(members), rng)
        for members, partitions in parts
    ]
    bound = max((search.bound for search in searches), default=0)
    placement = start.copy()
    for index, search in enumerate(searches):
        search.packing = min(packings[index], search.packing, key=makespan_of)
        search.bound = bound
        search.run(budget.part(1 / (len(parts) - index)))
        bound = search.bound
        if search.packing is not packings[index]:
            members, partitions = parts[index]
            placement[partitions] = _place(problem, members, partitions, search.packing)
    return PackingResult(placement, bound)


def _packing(
    problem: Problem, start: Placement, members: Sequence[int], partitions: NDArray[np.intp]
) -> Packing:
    packing: dict[int, list[int]] = {member: [] for member in members}
    weights = problem.weight[partitions].tolist()
    for weight, member in zip(weights, start[partitions].tolist(), strict=True):
        packing[member].append(weight)
    return list(packing.values())


def _place(
    problem: Problem, members: Sequence[int], partitions: NDArray[np.intp], packing: Packing
) -> Placement:
    """Convert a packing of weights to a placement that keeps owned partitions where possible."""
    waiting: dict[tuple[int, int], list[int]] = {}
    for at, (weight, owner) in enumerate(
        zip(problem.weight[partitions].tolist(), problem.owner[partitions].tolist(), strict=True)
    ):
        waiting.setdefault((weight, owner), []).append(at)
    placed = np.full(len(partitions), NO_OWNER, dtype=np.int32)
    missing: dict[int, list[int]] = {}
    for member, weights in zip(_matched(waiting, members, packing), packing, strict=True):
        for weight in weights:
            own = waiting.get((weight, member))
            if own:
                placed[own.pop()] = member
            else:
                missing.setdefault(weight, []).append(member)
    left = np.flatnonzero(placed == NO_OWNER).tolist()
    for at, weight in zip(left, problem.weight[partitions[left]].tolist(), strict=True):
        placed[at] = missing[weight].pop()
    return placed


def _matched(
    waiting: Mapping[tuple[int, int], Sequence[int]], members: Sequence[int], packing: Packing
) -> list[int]:
    """Match each list of weights to a member so that many partitions stay at their owners."""
    if len(members) > _MAX_MATCHED_MEMBERS or all(owner == NO_OWNER for _, owner in waiting):
        return list(members)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    kept = np.zeros((len(packing), len(members)))
    owned = {(weight, owner): len(own) for (weight, owner), own in waiting.items()}
    for row, weights in enumerate(packing):
        for weight, count in Counter(weights).items():
            kept[row] += [min(count, owned.get((weight, member), 0)) for member in members]
    rows, columns = linear_sum_assignment(kept, maximize=True)
    return [members[column] for _, column in sorted(zip(rows, columns, strict=True))]
