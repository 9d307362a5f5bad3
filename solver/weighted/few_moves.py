"""Minimise moves under a load limit: initial solution and large neighbourhood search."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.evaluation import moves_cost
from kassay.solver.problem import Ints, Placement, Problem

_MEMBERS = 5
_MAX_DRAWS = 40  # of moves that choose the members; a small group has fewer members
_MAX_PARTITIONS = 260
_DETERMINISTIC_TIME = 0.25  # per neighbourhood


@dataclass
class FewMovesSearch:
    """Large neighbourhood search for few moves within a maximum load."""

    problem: Problem
    max_load: int
    costs: Ints
    rng: np.random.Generator

    def initial_solution(self, start: Placement) -> Placement | None:
        """Move partitions from members above the load limit to members below it.

        Return None if a member stays above the limit. The lightest partition that ends the
        overload of its member moves first, otherwise the heaviest one.
        """
        placement = start.copy()
        loads = np.array(self.problem.loads(placement), dtype=np.int64)
        failed = np.zeros(self.problem.member_count, dtype=np.bool_)
        while (waiting := (loads > self.max_load) & ~failed).any():
            overloaded = int(np.where(waiting, loads, -1).argmax())
            if not self._move_one(placement, loads, overloaded):
                failed[overloaded] = not self._swap_one(placement, loads, overloaded)
        return None if failed.any() else placement

    def _move_one(self, placement: Placement, loads: Ints, overloaded: int) -> bool:
        partitions = np.flatnonzero(placement == overloaded)
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
        self._move(placement, loads, int(partitions[at]), int(fitting.argmin()))
        return True

    def _swap_one(self, placement: Placement, loads: Ints, overloaded: int) -> bool:
        """Exchange a partition of an overloaded member for a lighter one of another member."""
        weight, sets = self.problem.weight, self.problem.consumer_set
        may_consume = self.problem.may_consume
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
        other = int(placement[best[2]])
        self._move(placement, loads, best[1], other)
        self._move(placement, loads, best[2], overloaded)
        return True

    def _move(self, placement: Placement, loads: Ints, partition: int, target: int) -> None:
        weight = int(self.problem.weight[partition])
        loads[placement[partition]] -= weight
        loads[target] += weight
        placement[partition] = target

    def improve(
        self, placement: Placement, bound: int, may_continue: Callable[[], bool]
    ) -> Placement:
        """Reassign neighbourhoods until the movement cost reaches a bound or time is up."""
        placement = placement.copy()
        while may_continue() and self.cost(placement) > bound:
            members = self._choose_members(placement)
            partitions = np.flatnonzero(np.isin(placement, members))
            if len(partitions) <= _MAX_PARTITIONS and len(members) > 1:
                self._reassign(placement, partitions, members)
        return placement

    def cost(self, placement: Placement) -> int:
        """Return the cost of all moves."""
        return moves_cost(self.problem, self.costs, placement)

    def _choose_members(self, placement: Placement) -> list[int]:
        """Choose a neighbourhood: members that exchange partitions, and one or two others."""
        owner = self.problem.owner
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement) & (self.costs > 0))
        chosen: dict[int, None] = {}
        for _ in range(_MAX_DRAWS):
            if len(chosen) >= _MEMBERS - 1 or not len(moved):
                break
            partition = int(self.rng.choice(moved))
            chosen[int(owner[partition])] = chosen[int(placement[partition])] = None
            near = np.array(list(chosen))
            linked = moved[np.isin(owner[moved], near) ^ np.isin(placement[moved], near)]
            if not len(linked):
                continue
            partition = int(self.rng.choice(linked))
            chosen[int(owner[partition])] = chosen[int(placement[partition])] = None
            if self.rng.random() < 0.05:
                break
        chosen[int(self.rng.integers(self.problem.member_count))] = None
        return list(chosen)

    def _reassign(
        self, placement: Placement, partitions: NDArray[np.intp], members: list[int]
    ) -> None:
        """Reassign all partitions of the chosen members among these members, with CP-SAT."""
        model = cp_model.CpModel()
        loads: dict[int, list[tuple[cp_model.IntVar, int]]] = {at: [] for at in members}
        cost: list[tuple[cp_model.IntVar, int]] = []
        choice: dict[tuple[int, int], cp_model.IntVar] = {}
        for partition in partitions.tolist():
            owner, weight = int(self.problem.owner[partition]), int(self.problem.weight[partition])
            consumers = [
                at
                for at in members
                if self.problem.may_consume[self.problem.consumer_set[partition], at]
            ]
            for at in consumers:
                choice[partition, at] = variable = model.new_bool_var("")
                model.add_hint(variable, int(placement[partition] == at))
                loads[at].append((variable, weight))
                if owner in members and at != owner:
                    cost.append((variable, int(self.costs[partition])))
            model.add_exactly_one(choice[partition, at] for at in consumers)
        for terms in loads.values():
            model.add(_sum(terms) <= self.max_load)
        model.minimize(_sum(cost))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = int(self.rng.integers(2**31))
        solver.parameters.max_deterministic_time = _DETERMINISTIC_TIME
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return
        for (partition, at), variable in choice.items():
            if solver.value(variable):
                placement[partition] = at


def _sum(terms: list[tuple[cp_model.IntVar, int]]) -> cp_model.LinearExpr:
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [weight for _, weight in terms]
    )
    return total
