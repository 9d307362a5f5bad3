"""Round the linear program of a trajectory, one rebalance after the other.

At each rebalance, a flow rounds the fractional counts to one of their two neighbours and keeps the
limits of the loads. The counts are then fixed, and the dual simplex method continues from the last
basis. If the value rises, other flows are tried.
"""

from collections.abc import Iterator
from math import inf
from random import Random

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from ortools.linear_solver import pywraplp

from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import INTEGRALITY, Floats, LinearProgram, is_integral

_TRIES = 4
_WORK_PER_VARIABLE = 1e-5  # of one solution from the last basis
_COST = 1_000  # of a whole unit of distance to the fractional count


def _cheapest_flow(
    ends: tuple[Ints, Ints], capacity: Ints, cost: Ints, *, supply: Ints, loads: tuple[Ints, Ints]
) -> Ints | None:
    """Return the cheapest counts per pair of a class and a member; None if there are none.

    Parameters
    ----------
    ends
        Class and member of each pair.
    capacity, cost
        Maximum count per pair, and cost per partition.
    supply
        Partitions per class.
    loads
        Minimum and maximum load per member.
    """
    classes, members = ends
    low, high = loads
    heads, sink = len(supply) + np.arange(len(low)), len(supply) + len(low)
    flow = SimpleMinCostFlow()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(classes, heads[members], capacity, cost)
    flow.add_arcs_with_capacity_and_unit_cost(
        heads, np.full_like(heads, sink), high - low, np.zeros_like(heads)
    )
    flow.set_nodes_supplies(
        np.arange(sink + 1), np.concatenate([supply, -low, [low.sum() - supply.sum()]])
    )
    if flow.solve() != SimpleMinCostFlow.OPTIMAL:
        return None
    return np.asarray(flow.flows(arcs), dtype=np.int64)


class RoundedProgram:
    """Linear program whose counts are fixed to integers, one rebalance after the other."""

    def __init__(self, program: LinearProgram, seed: int) -> None:
        self.program, self.rng = program, Random(seed)  # noqa: S311
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        self.settings = pywraplp.MPSolverParameters()
        settings = self.settings
        settings.SetIntegerParam(settings.INCREMENTALITY, settings.INCREMENTALITY_ON)
        settings.SetIntegerParam(settings.PRESOLVE, settings.PRESOLVE_OFF)
        self.value = 0.0  # of the last solution
        self.variables = self._variables()
        self.rows = self._rows()

    def _variables(self) -> list[pywraplp.Variable]:
        objective = self.solver.Objective()
        objective.SetMinimization()
        infinity, program = self.solver.infinity(), self.program
        upper = np.where(np.isfinite(program.upper), program.upper, infinity).tolist()
        variables = []
        for low, high, cost in zip(
            program.lower.tolist(), upper, program.cost.tolist(), strict=True
        ):
            variables.append(self.solver.NumVar(low, high, ""))
            if cost:
                objective.SetCoefficient(variables[-1], cost)
        return variables

    def _rows(self) -> list[pywraplp.Constraint]:
        matrix, rows = self.program.matrix.tocsr(), []
        for number, limit in enumerate(self.program.limit.tolist()):
            is_equation = number < self.program.equations
            rows.append(
                self.solver.Constraint(limit if is_equation else -self.solver.infinity(), limit)
            )
            own = slice(matrix.indptr[number], matrix.indptr[number + 1])
            pairs = zip(matrix.indices[own].tolist(), matrix.data[own].tolist(), strict=True)
            for column, value in pairs:
                rows[-1].SetCoefficient(self.variables[column], value)
        return rows

    def solve(self, budget: SearchBudget) -> bool:
        """Solve the program with the fixed counts, and return whether the optimum was found."""
        if not budget.has_work:
            return False
        if budget.seconds < inf:
            self.solver.SetTimeLimit(max(1, int(1000 * budget.seconds)))
        is_optimal = bool(self.solver.Solve(self.settings) == pywraplp.Solver.OPTIMAL)
        budget.spend(_WORK_PER_VARIABLE * len(self.variables))
        if is_optimal:  # OR-Tools prints an error for a value without a solution
            self.value = float(self.solver.Objective().Value())
        return is_optimal

    def duals(self) -> Floats:
        """Return the dual values of the last solution."""
        return np.array([row.dual_value() for row in self.rows])

    def counts(self) -> Floats:
        """Return the counts of the last solution."""
        return np.array([one.solution_value() for one in self.variables[: self.program.counts]])

    def round(self, budget: SearchBudget) -> list[Ints] | None:
        """Fix all counts to integers. The result is None if no work is left."""
        counts = self.counts()
        for table in self.program.nodes:
            columns = table[table >= 0]
            if is_integral(counts[columns]):
                self._fix(columns, np.rint(counts[columns]))
                continue
            before, best, last = self.value, None, None
            for last in self._flows(table, counts):
                self._fix(columns, last)
                if not self.solve(budget):
                    return None
                if best is None or self.value < best[0] - INTEGRALITY:
                    best = self.value, last, self.counts()
                if self.value <= before + INTEGRALITY:
                    break
            if best is None:
                return None
            counts = best[2]
            if last is not best[1]:
                self._fix(columns, best[1])
                if not self.solve(budget):
                    return None
        return self.program.read(counts)

    def _fix(self, columns: Ints, counts: Floats) -> None:
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True):
            self.variables[column].SetBounds(count, count)

    def _flows(self, table: Ints, counts: Floats) -> Iterator[Floats]:
        """Yield counts of one rebalance: first the nearest ones, then with random changes."""
        classes, members = np.nonzero(table >= 0)
        values = counts[table[table >= 0]]
        low = np.floor(values + INTEGRALITY)
        # 1 if the count is a fraction
        parts = (np.ceil(values - INTEGRALITY) - low).astype(np.int64)
        supply = np.rint(np.bincount(classes, weights=values - low)).astype(np.int64)
        loads = np.bincount(members, weights=values - low, minlength=table.shape[1])
        least = np.floor(loads + INTEGRALITY).astype(np.int64)
        most = np.ceil(loads - INTEGRALITY).astype(np.int64)
        for number in range(_TRIES):
            noise = np.array([self.rng.random() for _ in values]) if number else 0.0
            cost = np.rint(_COST * (low - values + noise)).astype(np.int64)
            flow = _cheapest_flow(
                (classes, members), parts, cost, supply=supply, loads=(least, most)
            )
            if flow is not None:
                yield low + flow
