"""Few moves within a maximum load: greedy removal of overloads, and a search of neighbourhoods.

Two methods assign the partitions of some members again, at lower cost: a beam search of exchanges,
which is best if almost no capacity remains free, and CP-SAT, which is best otherwise.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.evaluation import moves_cost
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.weighted.search.exchange_beam import ExchangeBeam

if TYPE_CHECKING:
    from kassay.solver.cpsat.model import Expression

_TIGHT = 0.05
"""Free capacity per member, as a share of the mean weight, up to which exchanges are best. They
need 26 moves instead of 71, and 18 instead of 45, at the exact maximum load of two groups."""
_EXCHANGES, _CPSAT = 0, 1
_TIGHT_TURNS, _LOOSE_TURNS = (8, 1), (1, 40)
"""Numbers of turns of exchanges and CP-SAT, in proportion."""
_BEAM_WIDTH, _MAX_BEAM_MEMBERS = 4, 60
"""Width of the beam search, and maximum number of members."""
_LINKED = 0.9
"""Probability that the next members of exchanges exchange a partition with a chosen one."""
_MEMBERS = 5
"""Maximum number of members of a search of CP-SAT."""
_MAX_DRAWS = 40
"""Maximum number of random moves that choose the members; there may be fewer members."""
_MAX_PARTITIONS = 260
"""Maximum number of partitions of a search of CP-SAT."""
_ENOUGH = 0.05
"""Probability that no further moves are drawn."""
_WORK, _WORK_OF_MODEL = 0.5, 0.01
"""Maximum work of one search of CP-SAT, and work to build its model."""


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

    def initial_solution(
        self, start: Placement, may_continue: Callable[[], bool] = lambda: True
    ) -> Placement | None:
        """Find a first placement within the maximum load; return None on failure."""
        removal = _OverloadRemoval(self.problem, self.max_load, start.copy())
        if removal.run(may_continue):
            return removal.placement
        if self.problem.member_count > _MAX_BEAM_MEMBERS:
            return None
        members = self._by_load(start, range(self.problem.member_count))
        max_cost = self.problem.partition_count * int(self.costs.max(initial=0))
        return self._beam(start, members).search(1, max_cost, may_continue)

    def improve(
        self, placement: Placement, bound: int, may_continue: Callable[[], bool]
    ) -> Placement:
        """Improve a placement until its movement cost reaches a bound or the work is done.

        A method with fewer improvements per turn has fewer turns.
        """
        best, cost = placement, self.cost(placement)
        slack = self.max_load * self.problem.member_count - self.problem.total
        is_tight = slack < _TIGHT * self.problem.total / len(placement) * self.problem.member_count
        shares = _TIGHT_TURNS if is_tight else _LOOSE_TURNS
        turns, gains = [0, 0], [0, 0]
        while cost > bound and may_continue():
            method = min(
                (_EXCHANGES, _CPSAT),
                key=lambda at: (1 + turns[at]) / (shares[at] * (1 + gains[at])),
            )
            turns[method] += 1
            if method == _EXCHANGES:
                following = self._exchanged(best, may_continue)
            else:
                following = self._reassigned(best)
            if following is None or (reached := self.cost(following)) > cost:
                continue
            if reached < cost:
                gains[method] += 1
                self.found.append((self.budget.counter.spent, reached))
            best, cost = following, reached
        return best

    def cost(self, placement: Placement) -> int:
        """Return the cost of all moves of a placement."""
        return moves_cost(self.problem, self.costs, placement)

    def _exchanged(
        self, placement: Placement, may_continue: Callable[[], bool]
    ) -> Placement | None:
        """Exchange partitions of some members by a beam search; return None if it fails."""
        members = self._by_load(placement, self._linked_members(placement))
        among_members = np.isin(placement, members) & np.isin(self.problem.owner, members)
        inside = np.where(among_members, placement, self.problem.owner)
        beam = self._beam(placement, members)
        return beam.search(_BEAM_WIDTH, self.cost(inside), may_continue)

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

    def _linked(self, placement: Placement, moved: Ints, chosen: Iterable[int]) -> Ints:
        """Return the moved partitions with exactly one of owner and receiver in a set."""
        near = np.array(list(chosen))
        return moved[np.isin(self.problem.owner[moved], near) ^ np.isin(placement[moved], near)]

    def _add_both_members(self, placement: Placement, moved: Ints, chosen: dict[int, None]) -> None:
        """Add the owner and the receiver of a random move to the chosen members."""
        partition = int(self.rng.choice(moved))
        chosen[int(self.problem.owner[partition])] = chosen[int(placement[partition])] = None

    def _reassigned(self, placement: Placement) -> Placement | None:
        """Reassign the partitions of some members with CP-SAT, at minimum cost of moves.

        Return None if they are too many or too few, or if the search fails.
        """
        members = self._choose_members(placement)
        if np.count_nonzero(np.isin(placement, members)) > _MAX_PARTITIONS or len(members) < 2:
            return None
        # Loading OR-Tools takes longer than all other searches of a small group.
        from ortools.sat.python import cp_model  # noqa: PLC0415

        from kassay.solver.cpsat.model import run_cpsat, weighted_sum  # noqa: PLC0415
        from kassay.solver.cpsat.model_ranges import load_scale  # noqa: PLC0415

        problem, scale = self.problem, load_scale(self.problem)
        model = cp_model.CpModel()
        loads: dict[int, list[tuple[Expression, int]]] = {at: [] for at in members}
        cost: list[tuple[Expression, int]] = []
        choice: dict[tuple[int, int], cp_model.IntVar] = {}
        for partition in np.flatnonzero(np.isin(placement, members)).tolist():
            owner = int(problem.owner[partition])
            # Weights rounded up keep the maximum load.
            weight = scale.quotient(int(problem.weight[partition]), rounds_up=True)
            allowed = problem.may_consume[problem.consumer_set[partition]]
            consumers = [at for at in members if allowed[at]]
            for at in consumers:
                choice[partition, at] = variable = model.new_bool_var("")
                model.add_hint(variable, int(placement[partition] == at))
                loads[at].append((variable, weight))
                if owner in members and at != owner:
                    cost.append((variable, int(self.costs[partition])))
            model.add_exactly_one(choice[partition, at] for at in consumers)
        most = scale.quotient(self.max_load)
        for terms in loads.values():
            model.add_linear_constraint(weighted_sum(terms), 0, most)
        model.minimize(weighted_sum(cost))
        self.budget.spend(_WORK_OF_MODEL)
        solver, status = run_cpsat(model, self.budget.until(_WORK))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        reassigned = placement.copy()
        for (partition, at), variable in choice.items():
            if solver.value(variable):
                reassigned[partition] = at
        return reassigned


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
