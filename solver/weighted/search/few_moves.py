"""Minimise moves under a load limit: large neighbourhood search and annealing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.evaluation import moves_cost
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.weighted.search.exchange_beam import ExchangeBeam
from kassay.solver.weighted.search.overload_annealing import OverloadAnnealing

_ANNEALING_WORK = 0.01  # of one step of the annealing
_MEMBERS = 5
_MAX_DRAWS = 40  # random moves that choose the members; there may be fewer members
_MAX_PARTITIONS = 260
_ENOUGH = 0.05  # probability that no further moves are drawn
_BEAM_WIDTH = 4
_MAX_BEAM_MEMBERS = 60
_LINKED = 0.9  # probability that the next members exchange a partition with a chosen one


class _Method(Enum):
    """Method of the search that improves a part of a placement."""

    EXCHANGE = auto()
    ANNEALING = auto()
    CP_SAT = auto()


_TIGHT = 0.05  # free capacity per member, as a share of the mean weight
# Numbers of runs per method, in proportion. Exchanges are best if almost no capacity remains free.
# CP-SAT is best otherwise, but it accepts at most _MAX_PARTITIONS.
_TIGHT_SHARES = {_Method.EXCHANGE: 8, _Method.ANNEALING: 1, _Method.CP_SAT: 1}
_LOOSE_SHARES = {_Method.EXCHANGE: 1, _Method.ANNEALING: 4, _Method.CP_SAT: 40}


@dataclass
class FewMovesSearch:
    """Large neighbourhood search for few moves within a maximum load."""

    problem: Problem
    max_load: int
    costs: Ints
    rng: np.random.Generator
    budget: SearchBudget = field(default_factory=lambda: SearchBudget(inf))
    found: list[tuple[float, int]] = field(init=False, default_factory=list)
    """Work spent until each improvement, and its cost."""

    def __post_init__(self) -> None:
        seed = int(self.rng.integers(2**31))
        self.annealing = OverloadAnnealing(self.problem, self.costs, self.max_load, seed)
        slack = self.max_load * self.problem.member_count - self.problem.total
        mean = float(self.problem.weight.mean())
        self.is_tight = slack < _TIGHT * mean * self.problem.member_count
        self.shares = _TIGHT_SHARES if self.is_tight else _LOOSE_SHARES
        self.turns = dict.fromkeys(_Method, 0)
        self.gains = dict.fromkeys(_Method, 0)

    def initial_solution(
        self, start: Placement, may_continue: Callable[[], bool] = lambda: True
    ) -> Placement | None:
        """Find a first placement within the maximum load; return None on failure."""
        removal = _OverloadRemoval(self.problem, self.max_load, start.copy())
        placement = removal.placement if removal.run(may_continue) else None
        if placement is None and self.problem.member_count <= _MAX_BEAM_MEMBERS:
            members = self._by_load(start, range(self.problem.member_count))
            beam = self._beam(start, members)
            max_cost = self.problem.partition_count * int(self.costs.max(initial=0))
            placement = beam.search(1, max_cost, may_continue)
        return placement

    def improve(
        self, placement: Placement, bound: int, may_continue: Callable[[], bool]
    ) -> Placement:
        """Improve a placement until its movement cost reaches a bound or time is up.

        A method with fewer improvements per run runs less often.
        """
        best, cost = placement, self.cost(placement)
        while cost > bound and may_continue():
            method = min(self.turns, key=self._rank)
            self.turns[method] += 1
            following = self._improved(method, best, bound, may_continue)
            if following is None or (reached := self.cost(following)) > cost:
                continue
            if reached < cost:
                self.gains[method] += 1
                self.found.append((self.budget.counter.spent, reached))
            best, cost = following, reached
        return best

    def _rank(self, method: _Method) -> float:
        return (1 + self.turns[method]) / (self.shares[method] * (1 + self.gains[method]))

    def _improved(
        self, method: "_Method", placement: Placement, bound: int, may_continue: Callable[[], bool]
    ) -> Placement | None:
        if method is _Method.ANNEALING:
            may_continue = self.budget.counted(_ANNEALING_WORK)
            return self.annealing.run(placement, self.cost(placement), bound, may_continue)
        if method is _Method.EXCHANGE:
            members = self._by_load(placement, self._linked_members(placement))
            among_members = np.isin(placement, members) & np.isin(self.problem.owner, members)
            inside = np.where(among_members, placement, self.problem.owner)
            beam = self._beam(placement, members)
            return beam.search(_BEAM_WIDTH, self.cost(inside), may_continue)
        members = self._choose_members(placement)
        if np.count_nonzero(np.isin(placement, members)) > _MAX_PARTITIONS or len(members) < 2:
            return None
        # Imported here: loading OR-Tools takes longer than the search in a small group.
        from kassay.solver.weighted.search.cpsat_reassignment import reassign  # noqa: PLC0415

        seed = int(self.rng.integers(2**31))
        return reassign(
            self.problem,
            self.costs,
            self.max_load,
            placement,
            members=members,
            seed=seed,
            budget=self.budget,
        )

    def _beam(self, placement: Placement, members: list[int]) -> ExchangeBeam:
        return ExchangeBeam(self.problem, self.costs, self.max_load, members, placement, self.rng)

    def _by_load(self, placement: Placement, members: Iterable[int]) -> list[int]:
        """Order members by descending owned load, with some random noise."""
        problem = self.problem
        home = np.where(np.isin(problem.owner, [*members]), problem.owner, placement)
        loads = np.array(problem.loads(home), dtype=np.float64)
        loads += self.rng.normal(0, 0.05, len(loads)) * loads.mean()
        return sorted(members, key=lambda at: -loads[at])

    def _linked_members(self, placement: Placement) -> list[int]:
        """Choose members at random, preferably members that exchange partitions."""
        owner, width = self.problem.owner, self.problem.member_count
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement))
        count = int(self.rng.integers(2, min(width, _MAX_BEAM_MEMBERS) + 1)) if width > 2 else width
        chosen = {int(self.rng.integers(width)): None}
        while len(chosen) < count:
            linked = self._linked(placement, moved, chosen)
            if len(linked) and self.rng.random() < _LINKED:
                self._add_both_members(placement, linked, chosen)
            else:
                chosen[int(self.rng.integers(width))] = None
        return list(chosen)

    def _linked(self, placement: Placement, moved: Ints, chosen: Iterable[int]) -> Ints:
        """Return the moved partitions with exactly one of owner and receiver in a set."""
        near = np.array(list(chosen))
        return moved[np.isin(self.problem.owner[moved], near) ^ np.isin(placement[moved], near)]

    def _add_both_members(self, placement: Placement, moved: Ints, chosen: dict[int, None]) -> None:
        """Add the owner and the receiver of a random move to the chosen members."""
        partition = int(self.rng.choice(moved))
        chosen[int(self.problem.owner[partition])] = chosen[int(placement[partition])] = None

    def cost(self, placement: Placement) -> int:
        """Return the cost of all moves of a placement."""
        return moves_cost(self.problem, self.costs, placement)

    def _choose_members(self, placement: Placement) -> list[int]:
        """Choose the next neighbourhood: owners and receivers of moves, and a random member."""
        owner = self.problem.owner
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement) & (self.costs > 0))
        chosen: dict[int, None] = {}
        for _ in range(_MAX_DRAWS):
            if len(chosen) >= _MEMBERS - 1 or not len(moved):
                break
            self._add_both_members(placement, moved, chosen)
            linked = self._linked(placement, moved, chosen)
            if not len(linked):
                continue
            self._add_both_members(placement, linked, chosen)
            if self.rng.random() < _ENOUGH:
                break
        chosen[int(self.rng.integers(self.problem.member_count))] = None
        return list(chosen)


@dataclass
class _OverloadRemoval:
    """Greedy moves of partitions away from overloaded members, one after the other.

    The lightest partition that ends the overload of its member moves first, otherwise the heaviest
    one. If none can move, the member exchanges a partition for a lighter one.
    """

    problem: Problem
    max_load: int
    placement: Placement  # changed in place

    def __post_init__(self) -> None:
        self.loads = np.array(self.problem.loads(self.placement), dtype=np.int64)

    def run(self, may_continue: Callable[[], bool]) -> bool:
        """Move partitions away from overloaded members; return whether none is left."""
        failed = np.zeros(self.problem.member_count, dtype=np.bool_)
        while (waiting := (self.loads > self.max_load) & ~failed).any():
            if not may_continue():
                return False
            overloaded = int(np.where(waiting, self.loads, -1).argmax())
            if not self._move_one(overloaded):
                failed[overloaded] = not self._swap_one(overloaded)
        return not failed.any()

    def _move_one(self, overloaded: int) -> bool:
        loads = self.loads
        partitions = np.flatnonzero(self.placement == overloaded)
        weights = self.problem.weight[partitions]
        free_capacity = np.where(self.problem.may_consume, self.max_load - loads, -1)
        free_capacity[:, overloaded] = -1
        fits = weights <= free_capacity[self.problem.consumer_set[partitions]].max(axis=1)
        if not (fits & (weights > 0)).any():
            return False
        enough = fits & (weights >= loads[overloaded] - self.max_load)
        if enough.any():
            at = int(np.where(enough, weights, np.iinfo(np.int64).max).argmin())
        else:
            at = int(np.where(fits, weights, -1).argmax())
        rooms = free_capacity[self.problem.consumer_set[partitions[at]]]
        fitting = np.where(rooms >= weights[at], rooms, np.iinfo(np.int64).max)
        self._move(int(partitions[at]), int(fitting.argmin()))
        return True

    def _swap_one(self, overloaded: int) -> bool:
        """Exchange a partition of an overloaded member for a lighter one of another member."""
        problem, placement, loads = self.problem, self.placement, self.loads
        weight, sets, may_consume = problem.weight, problem.consumer_set, problem.may_consume
        best: tuple[int, int, int] | None = None
        partitions = np.flatnonzero(placement == overloaded)
        for other in np.argsort(loads, kind="stable")[: max(8, len(loads) // 3)].tolist():
            if other == overloaded:
                continue
            candidates = np.flatnonzero(placement == other)
            change = weight[partitions][:, None] - weight[candidates][None, :]
            allowed = (change > 0) & (change <= self.max_load - loads[other])
            allowed &= may_consume[sets[partitions], other][:, None]
            allowed &= may_consume[sets[candidates], overloaded][None, :]
            if not allowed.any():
                continue
            one, two = np.unravel_index(int(np.where(allowed, change, -1).argmax()), allowed.shape)
            if best is None or change[one, two] > best[0]:
                best = int(change[one, two]), int(partitions[one]), int(candidates[two])
        if best is None:
            return False
        _, given, received = best
        self._move(given, int(placement[received]))
        self._move(received, overloaded)
        return True

    def _move(self, partition: int, target: int) -> None:
        weight = int(self.problem.weight[partition])
        self.loads[self.placement[partition]] -= weight
        self.loads[target] += weight
        self.placement[partition] = target
