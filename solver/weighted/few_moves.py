"""Few moves under a ceiling of load: a first plan, and small parts of it planned anew."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Placement, Problem
from kassay.solver.weighted.subset_enumeration import Ints

_PART = 5
_PART_ROWS = 260
_PART_EFFORT = 0.25  # CP-SAT's deterministic time for one part


@dataclass
class FewMovesSearch:
    """A placement whose loads are within a ceiling, and whose moves get fewer.

    Parameters
    ----------
    problem
        What has been placed; its weights fit 64 bits.
    ceiling
        The most load of any member.
    costs
        What moving each row from its owner costs.
    rng
        Which parts to plan anew.
    """

    problem: Problem
    ceiling: int
    costs: Ints
    rng: np.random.Generator
    may: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        """Tabulate who consumes what."""
        self.may = np.zeros((len(self.problem.sets), self.problem.width), dtype=np.bool_)
        for index, consumers in enumerate(self.problem.sets):
            self.may[index, consumers] = True

    def first_plan(self, start: Placement) -> Placement | None:
        """Shed rows of overloaded members to where they fit; None if that does not suffice.

        Of the rows that some member has room for, one that relieves its owner at once
        goes first, the lightest of these; else the heaviest.
        """
        placement = start.copy()
        loads = np.array(self.problem.loads(placement), dtype=np.int64)
        stuck = np.zeros(self.problem.width, dtype=np.bool_)
        while (open_ := (loads > self.ceiling) & ~stuck).any():
            heavy = int(np.where(open_, loads, -1).argmax())
            if not self._shed_one(placement, loads, heavy):
                stuck[heavy] = not self._swap_one(placement, loads, heavy)
        return None if stuck.any() else placement

    def _shed_one(self, placement: Placement, loads: Ints, heavy: int) -> bool:
        rows = np.flatnonzero(placement == heavy)
        weights = self.problem.weight[rows]
        room = np.where(self.may, self.ceiling - loads, -1)
        room[:, heavy] = -1
        fits = weights <= room[self.problem.set_of_row[rows]].max(axis=1)
        if not (fits & (weights > 0)).any():
            return False
        enough = fits & (weights >= loads[heavy] - self.ceiling)
        if enough.any():
            at = int(np.where(enough, weights, np.iinfo(np.int64).max).argmin())
        else:
            at = int(np.where(fits, weights, -1).argmax())
        rooms = room[self.problem.set_of_row[rows[at]]]
        fitting = np.where(rooms >= weights[at], rooms, np.iinfo(np.int64).max)
        self._move(placement, loads, int(rows[at]), int(fitting.argmin()))
        return True

    def _swap_one(self, placement: Placement, loads: Ints, heavy: int) -> bool:
        """Swap a row of an overloaded member for a lighter one, which its taker can bear."""
        best: tuple[int, int, int] | None = None
        rows = np.flatnonzero(placement == heavy)
        for other in np.argsort(loads, kind="stable")[: max(8, len(loads) // 3)].tolist():
            if other == heavy:
                continue
            theirs = np.flatnonzero(placement == other)
            change = self.problem.weight[rows][:, None] - self.problem.weight[theirs][None, :]
            fine = (change > 0) & (change <= self.ceiling - loads[other])
            fine &= self.may[self.problem.set_of_row[rows], other][:, None]
            fine &= self.may[self.problem.set_of_row[theirs], heavy][None, :]
            if not fine.any():
                continue
            one, two = np.unravel_index(int(np.where(fine, change, -1).argmax()), fine.shape)
            if best is None or change[one, two] > best[0]:
                best = int(change[one, two]), int(rows[one]), int(theirs[two])
        if best is None:
            return False
        other = int(placement[best[2]])
        self._move(placement, loads, best[1], other)
        self._move(placement, loads, best[2], heavy)
        return True

    def _move(self, placement: Placement, loads: Ints, row: int, target: int) -> None:
        weight = int(self.problem.weight[row])
        loads[placement[row]] -= weight
        loads[target] += weight
        placement[row] = target

    def improve(self, placement: Placement, bound: int, go_on: Callable[[], bool]) -> Placement:
        """Plan parts anew until the cost of all moves is at a bound or time is up."""
        placement = placement.copy()
        while go_on() and self.cost(placement) > bound:
            members = self._choose_part(placement)
            rows = np.flatnonzero(np.isin(placement, members))
            if len(rows) <= _PART_ROWS and len(members) > 1:
                self._plan_part(placement, rows, members)
        return placement

    def cost(self, placement: Placement) -> int:
        """Add up what the moves of a placement cost."""
        owner = self.problem.owner
        return int(self.costs[(owner != NO_OWNER) & (owner != placement)].sum())

    def _choose_part(self, placement: Placement) -> list[int]:
        """Choose members that rows have moved between, and one or two others."""
        owner = self.problem.owner
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement) & (self.costs > 0))
        chosen: dict[int, None] = {}
        while len(chosen) < _PART - 1 and len(moved):
            row = int(self.rng.choice(moved))
            chosen[int(owner[row])] = chosen[int(placement[row])] = None
            near = np.array(list(chosen))
            linked = moved[np.isin(owner[moved], near) ^ np.isin(placement[moved], near)]
            if not len(linked):
                continue
            row = int(self.rng.choice(linked))
            chosen[int(owner[row])] = chosen[int(placement[row])] = None
            if self.rng.random() < 0.05:
                break
        chosen[int(self.rng.integers(self.problem.width))] = None
        return list(chosen)

    def _plan_part(self, placement: Placement, rows: NDArray[np.intp], members: list[int]) -> None:
        """Solve the part by CP-SAT: everything these members have, dealt among them anew."""
        model = cp_model.CpModel()
        loads: dict[int, list[tuple[cp_model.IntVar, int]]] = {at: [] for at in members}
        cost: list[tuple[cp_model.IntVar, int]] = []
        choice: dict[tuple[int, int], cp_model.IntVar] = {}
        for row in rows.tolist():
            owner, weight = int(self.problem.owner[row]), int(self.problem.weight[row])
            mine = [at for at in members if self.may[self.problem.set_of_row[row], at]]
            for at in mine:
                choice[row, at] = variable = model.new_bool_var("")
                model.add_hint(variable, int(placement[row] == at))
                loads[at].append((variable, weight))
                if owner in members and at != owner:
                    cost.append((variable, int(self.costs[row])))
            model.add_exactly_one(choice[row, at] for at in mine)
        for terms in loads.values():
            model.add(_sum(terms) <= self.ceiling)
        model.minimize(_sum(cost))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = int(self.rng.integers(2**31))
        solver.parameters.max_deterministic_time = _PART_EFFORT
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return
        for (row, at), variable in choice.items():
            if solver.value(variable):
                placement[row] = at


def _sum(terms: list[tuple[cp_model.IntVar, int]]) -> cp_model.LinearExpr:
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [weight for _, weight in terms]
    )
    return total
