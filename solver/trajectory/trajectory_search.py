"""Search for counts with the fewest moves over all rebalances, and for a bound on them.

If the linear program has fractional counts, they are fixed to integers one rebalance after the
other. A flow rounds the counts of a rebalance to one of their two neighbours and keeps the limits
of the loads. The dual simplex method then continues from the last basis. If the value rises, other
flows are tried.
"""

from collections.abc import Iterator, Sequence
from math import inf
from random import Random

import numpy as np
from ortools.linear_solver import pywraplp

from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import min_cost_flow
from kassay.solver.problem import Ints
from kassay.solver.trajectory import linear_program

# Numbers of variables up to which the whole program is solved by the simplex method first, and up
# to which it is solved by branch and bound.
_MAX_SIMPLEX = 12_000
_MAX_BRANCHING = 40_000
_PRECISION = 1e-5  # of an approximate solution, relative
# Variables of the first windows, and seconds per linear program and per integer program.
_WINDOW_SIZE = 1_500
_LINEAR_WORK, _INTEGER_WORK = 30.0, 3.0
# Maximum number of variables of an integer program. HiGHS ran for minutes beyond its limit of three
# seconds with 14,000 variables.
_MAX_WINDOW = 8_000
# Of a rounded program: flows per rebalance, work per variable of a solution from the last basis,
# and cost of a whole unit of distance to the fractional count.
_TRIES = 4
_WORK_PER_VARIABLE = 1e-5
_COST = 1_000


class TrajectorySearch:
    """State of a search: incumbent (counts per class and member of each rebalance) and bound."""

    def __init__(self, stream: Stream, budget: SearchBudget, counts: Sequence[Ints]) -> None:
        self.stream, self.budget = stream, budget
        self.counts = list(counts)
        self.value = sum(linear_program.total_moves(stream, counts))
        self.prices = linear_program.Prices.zero(stream)
        self.certified = 0  # bound that the prices prove
        self.bound = 0

    def run(self) -> None:
        """Search until the value is proven the lowest, or no work is left."""
        if self._is_over():
            return
        program = linear_program.build_program(
            self.stream, 0, len(self.counts), before=self.stream.start
        )
        size = len(program.cost)
        has_flows = not self.stream.is_weighted
        if has_flows and size <= _MAX_SIMPLEX:
            self._by_rounding(program)
        elif size <= _MAX_SIMPLEX:
            self._by_simplex(program)
        if not self.certified and not self._is_over():
            part = self.budget.part(0.4)
            self._prove(
                program, linear_program.approximate_duals(program, part, precision=_PRECISION)
            )
        if not self._is_over():
            part = self.budget.part(0.6 if size <= _MAX_BRANCHING else 1.0)
            self._offer(_improved_counts(self.stream, self.counts, bound=self.bound, budget=part))
        if has_flows and _MAX_SIMPLEX < size <= _MAX_BRANCHING and not self._is_over():
            self._by_rounding(program)
        if not self._is_over() and size <= _MAX_BRANCHING:
            found, bound = linear_program.integer_counts(
                program, self.budget, is_exact=self.stream.is_weighted
            )
            self._offer(found)
            self.bound = max(self.bound, min(bound, self.value))

    def _by_rounding(self, program: linear_program.LinearProgram) -> None:
        rounded = RoundedProgram(program, self.budget.seed)
        if rounded.solve(self.budget.part(0.5)):
            self._prove(program, rounded.duals())
            self._offer(rounded.round(self.budget.part(0.5)))

    def _is_over(self) -> bool:
        return self.value <= self.bound or not self.budget.has_work

    def _offer(self, counts: Sequence[Ints] | None) -> None:
        if counts is None or not _is_permitted(self.stream, 0, counts):
            return
        value = sum(linear_program.total_moves(self.stream, counts))
        if value < self.value:
            self.counts, self.value = list(counts), value

    def _by_simplex(self, program: linear_program.LinearProgram) -> None:
        solved = linear_program.exact_duals(program, self.budget)
        if solved is None:
            return
        values, duals = solved
        if linear_program.is_integral(values[: program.counts]):
            self._offer(program.read(values))
        self._prove(program, duals)

    def _prove(self, program: linear_program.LinearProgram, duals: linear_program.Floats) -> None:
        prices = linear_program.Prices.of(self.stream, program, duals)
        bound = prices.bound(self.stream)
        if bound > self.certified:
            self.prices, self.certified = prices, bound
            self.bound = max(self.bound, bound)


def _improved_counts(
    stream: Stream, counts: Sequence[Ints], *, bound: int, budget: SearchBudget
) -> list[Ints]:
    """Optimise overlapping windows, then longer ones, until the bound or a limit is reached."""
    best, moves, size = list(counts), linear_program.total_moves(stream, counts), _WINDOW_SIZE
    while sum(moves) > bound:
        windows = list(_windows(stream, size))
        for first, end in windows:
            if sum(moves) <= bound or not budget.has_work:
                return best
            value = sum(moves[first : end + 1])
            before = best[first - 1] if first else stream.start
            after = best[end] if end < len(best) else None
            program = linear_program.build_program(stream, first, end, before=before, after=after)
            found = _optimal_counts(program, value, budget, is_exact=stream.is_weighted)
            if found and _is_permitted(stream, first, found):
                changed = [*best[:first], *found, *best[end:]]
                if sum(new := linear_program.total_moves(stream, changed)) <= sum(moves):
                    best, moves = changed, new
        if len(windows) == 1:
            return best
        size *= 2
    return best


def _is_permitted(stream: Stream, first: int, counts: Sequence[Ints]) -> bool:
    return all(
        stream.rebalances[at].permits(stream.loads(at, table))
        for at, table in enumerate(counts, start=first)
    )


def _optimal_counts(
    program: linear_program.LinearProgram, value: int, budget: SearchBudget, *, is_exact: bool
) -> list[Ints] | None:
    """Return counts of a program with a value of at most ``value``; None if none are found.

    The solution of the linear program is often integer. Otherwise, branch and bound is used if the
    value can fall and the program is small.
    """
    solved = linear_program.exact_duals(program, budget.until(_LINEAR_WORK))
    if solved is None:
        return None
    if linear_program.is_integral(solved[0][: program.counts]):
        return program.read(solved[0])
    can_fall = program.cost @ solved[0] <= value - 1 + linear_program.INTEGRALITY
    if not can_fall or len(program.cost) > _MAX_WINDOW:
        return None
    return linear_program.integer_counts(program, budget.until(_INTEGER_WORK), is_exact=is_exact)[0]


def _windows(stream: Stream, size: int) -> Iterator[tuple[int, int]]:
    """Yield windows of a number of variables that overlap by half of their rebalances."""
    first, end = 0, len(stream.rebalances)
    while first < end:
        last = _window_end(stream, first, size)
        yield first, last
        if last == end:
            return
        first += max(1, (last - first) // 2)


def _window_end(stream: Stream, first: int, size: int) -> int:
    """Return the end of the longest window with few variables that starts at a rebalance."""
    variables, last, end = 0, first, len(stream.rebalances)
    while last < end and (variables <= size or last < first + 2):
        variables += 2 * int(np.count_nonzero(stream.permitted(last)))
        last += 1
    return last


def _cheapest_flow(
    ends: tuple[Ints, Ints], capacity: Ints, cost: Ints, *, supply: Ints, loads: tuple[Ints, Ints]
) -> Ints | None:
    """Return the cheapest counts of pairs (class, member) within supplies and loads, or None."""
    classes, members = ends
    low, high = loads
    heads, sink = len(supply) + np.arange(len(low)), len(supply) + len(low)
    flow = min_cost_flow(
        np.concatenate([classes, heads]),
        np.concatenate([heads[members], np.full_like(heads, sink)]),
        np.concatenate([capacity, high - low]),
        np.concatenate([cost, np.zeros_like(heads)]),
        supply=np.concatenate([supply, -low, [low.sum() - supply.sum()]]),
    )
    return None if flow is None else flow[: len(classes)]


class RoundedProgram:
    """Linear program with counts that are fixed to integers, one rebalance after the other."""

    def __init__(self, program: linear_program.LinearProgram, seed: int) -> None:
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

    def duals(self) -> linear_program.Floats:
        """Return the dual values of the last solution."""
        return np.array([row.dual_value() for row in self.rows])

    def counts(self) -> linear_program.Floats:
        """Return the counts of the last solution."""
        return np.array([one.solution_value() for one in self.variables[: self.program.counts]])

    def round(self, budget: SearchBudget) -> list[Ints] | None:
        """Fix all counts to integers. The result is None if no work is left."""
        counts = self.counts()
        for table in self.program.nodes:
            columns = table[table >= 0]
            if linear_program.is_integral(counts[columns]):
                self._fix(columns, np.rint(counts[columns]))
                continue
            before, best, last = self.value, None, None
            for last in self._flows(table, counts):
                self._fix(columns, last)
                if not self.solve(budget):
                    return None
                if best is None or self.value < best[0] - linear_program.INTEGRALITY:
                    best = self.value, last, self.counts()
                if self.value <= before + linear_program.INTEGRALITY:
                    break
            if best is None:
                return None
            counts = best[2]
            if last is not best[1]:
                self._fix(columns, best[1])
                if not self.solve(budget):
                    return None
        return self.program.read(counts)

    def _fix(self, columns: Ints, counts: linear_program.Floats) -> None:
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True):
            self.variables[column].SetBounds(count, count)

    def _flows(self, table: Ints, counts: linear_program.Floats) -> Iterator[linear_program.Floats]:
        """Yield counts of one rebalance: first the nearest ones, then with random changes."""
        classes, members = np.nonzero(table >= 0)
        values = counts[table[table >= 0]]
        low = np.floor(values + linear_program.INTEGRALITY)
        # 1 if the count is a fraction
        parts = (np.ceil(values - linear_program.INTEGRALITY) - low).astype(np.int64)
        supply = np.rint(np.bincount(classes, weights=values - low)).astype(np.int64)
        loads = np.bincount(members, weights=values - low, minlength=table.shape[1])
        least = np.floor(loads + linear_program.INTEGRALITY).astype(np.int64)
        most = np.ceil(loads - linear_program.INTEGRALITY).astype(np.int64)
        for number in range(_TRIES):
            noise = np.array([self.rng.random() for _ in values]) if number else 0.0
            cost = np.rint(_COST * (low - values + noise)).astype(np.int64)
            flow = _cheapest_flow(
                (classes, members), parts, cost, supply=supply, loads=(least, most)
            )
            if flow is not None:
                yield low + flow
