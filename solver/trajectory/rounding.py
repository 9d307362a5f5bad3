"""Integer counts near a fractional solution of the linear program, by flows.

If the counts of the other rebalances are fixed, the counts of one rebalance are a flow from the
classes of partitions to the members. Small programs are rounded one rebalance after the other: a
flow rounds the fractional counts to one of their two neighbours and keeps the limits of the loads.
The counts are then fixed, and the dual simplex method continues from the last basis. If the value
rises, other flows are tried. In larger programs, sweeps over the rebalances minimise the moves and
the distance to the fractional counts, which are convex functions of the counts of one rebalance.
"""

from collections.abc import Iterator, Sequence
from math import inf
from random import Random

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from ortools.linear_solver import pywraplp

from kassay.reference.model.errors import InternalError
from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import (
    INTEGRALITY,
    Floats,
    LinearProgram,
    is_integral,
    total_moves,
)

_TRIES = 4
_WORK_PER_VARIABLE = 1e-5  # of one solution from the last basis
_COST = 1_000  # of a whole unit of distance to the fractional count
_SWEEPS = 40
_WORK_PER_REBALANCE = 0.002
_MOVE = 1_000  # cost of a move
# Cost of one partition of distance to the fractional counts, in the first sweep and in the last.
_FIRST_DISTANCE, _LAST_DISTANCE = 700, 30
_NOISE = 30


def _cheapest_flow(
    ends: tuple[Ints, Ints], capacity: Ints, cost: Ints, *, supply: Ints, loads: tuple[Ints, Ints]
) -> Ints | None:
    """Return the cheapest counts per pair of a class and a member; None if there are none.

    Parameters
    ----------
    ends
        Class and member of each pair.
    capacity, cost
        Per segment of a convex cost and per pair, its length and its cost per partition.
    supply
        Partitions per class.
    loads
        Minimum and maximum load per member.
    """
    classes, members = ends
    low, high = loads
    heads, sink = len(supply) + np.arange(len(low)), len(supply) + len(low)
    flow = SimpleMinCostFlow()
    segment, pair = np.nonzero(capacity)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        classes[pair], heads[members[pair]], capacity[segment, pair], cost[segment, pair]
    )
    flow.add_arcs_with_capacity_and_unit_cost(
        heads, np.full_like(heads, sink), high - low, np.zeros_like(heads)
    )
    flow.set_nodes_supplies(
        np.arange(sink + 1), np.concatenate([supply, -low, [low.sum() - supply.sum()]])
    )
    if flow.solve() != SimpleMinCostFlow.OPTIMAL:
        return None
    return np.bincount(pair, weights=flow.flows(arcs), minlength=len(classes)).astype(np.int64)


def counts_near(
    stream: Stream, fractions: Sequence[Floats], counts: Sequence[Ints], budget: SearchBudget
) -> list[Ints]:
    """Return counts with few moves near the fractional counts of a linear program.

    A sweep replaces the counts of one rebalance after the other by those with the lowest sum of
    moves and distances to the fractions. The cost of a distance falls from sweep to sweep.

    Parameters
    ----------
    counts
        Counts from which the sweeps start.
    """
    rng = np.random.default_rng(budget.seed)
    end, now = len(counts), [stream.start, *counts]
    best, value = list(counts), sum(total_moves(stream, counts))
    may_continue = budget.counted(_WORK_PER_REBALANCE)
    orders = (range(end), range(end - 1, -1, -1))
    for number, distance in enumerate(np.geomspace(_FIRST_DISTANCE, _LAST_DISTANCE, _SWEEPS)):
        for at in orders[number % 2]:
            if not may_continue():
                return best
            now[at + 1] = _cheapest_counts(
                stream, at, now, fractions[at], distance=distance, rng=rng
            )
        moves = sum(total_moves(stream, now[1:]))
        if moves < value:
            best, value = now[1:], moves
    return best


def _cheapest_counts(
    stream: Stream,
    at: int,
    counts: Sequence[Ints],
    fractions: Floats,
    *,
    distance: float,
    rng: np.random.Generator,
) -> Ints:
    """Return the counts of one rebalance with the lowest sum of moves and distances.

    Parameters
    ----------
    counts
        Counts at the start, and at each rebalance.
    distance
        Cost of one partition of distance to the fractions.
    """
    classes, members = np.nonzero(stream.permitted(at))
    pairs = classes, members
    count, target = stream.count[classes], fractions[pairs]
    is_last = at + 1 == len(stream.rebalances)
    leaves = stream.subscribed(at)[pairs]
    follows = np.zeros_like(leaves) if is_last else stream.subscribed(at + 1)[pairs]
    before = np.minimum(counts[at][pairs], count)
    after = before if is_last else np.minimum(counts[at + 2][pairs], count)
    floor = np.clip(np.floor(target), 0, count).astype(np.int64)
    ceiling = np.minimum(floor + 1, count)
    points = np.sort([np.zeros_like(count), before, after, floor, ceiling, count], axis=0)
    low, high = points[:-1], points[1:]
    slope = np.select([high <= floor, low >= ceiling], [-1.0, 1.0], 1 - 2 * (target - floor))
    cost = _MOVE * ((low >= after).astype(np.int64) * follows - (high <= before) * leaves)
    cost += np.rint(distance * slope).astype(np.int64) + rng.integers(_NOISE, size=len(count))
    one, result = stream.rebalances[at], np.zeros_like(stream.start)
    found = _cheapest_flow(
        pairs,
        high - low,
        cost,
        supply=np.where(stream.assigned(at), stream.count, 0),
        loads=(one.least, one.most),
    )
    if found is None:
        raise InternalError("the loads of a rebalance permit no flow")
    result[pairs] = found
    return result


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
        """Fix all counts to integers. The result is None if the time is over."""
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
                (classes, members), parts[None], cost[None], supply=supply, loads=(least, most)
            )
            if flow is not None:
                yield low + flow
