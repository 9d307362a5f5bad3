"""Build and solve linear programs that minimise moves over several rebalances.

All coefficients are integers.

A variable per class of partitions, rebalance and permitted member counts the partitions that the
member receives. A second variable counts the partitions that leave the member before the next
rebalance, although it may keep them. The loads of the members connect the classes.

PDLP is a first-order method for large linear programs (D. Applegate et al. "Practical large-scale
linear programming using primal-dual hybrid gradient". NeurIPS 2021). Its prices need not be exact:
`price_bound` computes the bound that they prove in integers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from random import Random
from typing import Self

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from kassay.solver.certificate.trajectory_evidence import Stream, greatest_price, price_bound
from kassay.solver.cpsat.model import run_cpsat
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import min_cost_flow
from kassay.solver.problem import Arithmetic, Ints

Floats = NDArray[np.float64]
INTEGRALITY = 1e-6
"""Maximum distance of a value to an integer within the precision of the simplex method."""
_PRICE_BITS = 20
_WEIGHTED_PRICE_BITS = 40
_MAX_PRICE_IN_MOVES = 2**19
_WORK_OF_SIMPLEX = 5e-5  # work of the simplex method, per variable
_WORK_OF_PDLP = 1e-8  # work of one iteration of PDLP, per coefficient
_WORK_OF_NODES, _NODES = 3e-4, 500
"""Work of an integer program, per variable, and its maximum number of nodes."""
# Of a rounded program: flows per rebalance, work per variable of a solution from the last basis,
# and cost of a whole unit of distance to the fractional count.
_TRIES = 4
_WORK_PER_VARIABLE = 1e-5
_COST = 1_000


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Linear program that minimises ``cost @ x`` within bounds and row limits."""

    cost: Floats
    lower: Floats
    upper: Floats
    matrix: sparse.csr_matrix
    limit: Floats
    equations: int  # number of rows that are equations and come first; others have upper limits
    nodes: tuple[Ints, ...]  # per rebalance, the variable of each class and member, or -1
    load_rows: tuple[Ints, ...]  # per rebalance, the row of the load of each member, or -1

    @property
    def counts(self) -> int:
        """Return the number of variables that count partitions."""
        return sum(int((table >= 0).sum()) for table in self.nodes)

    def read(self, values: Floats) -> list[Ints]:
        """Convert values of the variables to partition counts per rebalance."""
        return [
            np.where(table >= 0, np.rint(values[table]), 0).astype(np.int64) for table in self.nodes
        ]


class _Builder:
    """Builder that collects the variables, rows and entries of a linear program."""

    def __init__(self) -> None:
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []
        self.variables = 0
        # Rows, columns and values of equations and of inequalities, and their right-hand sides.
        self.entries: tuple[list[tuple[Ints, Ints, Floats]], ...] = ([], [])
        self.limits: tuple[list[Floats], ...] = ([], [])
        self.rows = [0, 0]
        self.moves: list[Ints] = []  # variables with the sum of the moves, per rebalance

    def add_variables(self, lower: Floats, upper: Floats) -> Ints:
        self.lower.append(lower)
        self.upper.append(upper)
        first, self.variables = self.variables, self.variables + len(lower)
        return np.arange(first, self.variables)

    def add_rows(self, kind: int, limits: Floats) -> Ints:
        self.limits[kind].append(limits)
        first, self.rows[kind] = self.rows[kind], self.rows[kind] + len(limits)
        return np.arange(first, self.rows[kind])

    def add_entries(self, kind: int, rows: Ints, columns: Ints, value: float | Ints) -> None:
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), len(rows))
        self.entries[kind].append((rows, columns, values))

    def add_fixed_counts(self, counts: Ints) -> Ints:
        table = np.full(counts.shape, -1, dtype=np.int64)
        fixed = counts[counts > 0].astype(np.float64)
        table[counts > 0] = self.add_variables(fixed, fixed)
        return table


def build_program(
    stream: Stream, first: int, end: int, *, before: Ints, after: Ints | None = None
) -> LinearProgram:
    """Build the linear program of the rebalances ``first`` to ``end - 1``.

    ``before`` are the partitions per class and member before the first rebalance, ``after`` those
    at the rebalance ``end``; None if the partitions may then be anywhere.
    """
    builder = _Builder()
    rebalances = range(first, end)
    nodes = tuple(_add_counts(builder, stream, at) for at in rebalances)
    tables = [builder.add_fixed_counts(before), *nodes]
    if after is not None:
        tables.append(builder.add_fixed_counts(after))
    for at, (past, table) in enumerate(pairwise(tables), start=first):
        _add_departures(builder, stream, at, past, table)
    load_rows = tuple(
        _add_loads(builder, stream, at, table) for table, at in zip(nodes, rebalances, strict=True)
    )
    parts = [part for entries in builder.entries for part in entries]
    shift = [0] * len(builder.entries[0]) + [builder.rows[0]] * len(builder.entries[1])
    rows = [part[0] + more for part, more in zip(parts, shift, strict=True)]
    columns, values = ([part[index] for part in parts] for index in (1, 2))
    matrix = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(sum(builder.rows), builder.variables),
    )
    return LinearProgram(
        cost=np.bincount(np.concatenate(builder.moves), minlength=builder.variables).astype(float),
        lower=np.concatenate(builder.lower),
        upper=np.concatenate(builder.upper),
        matrix=matrix,
        limit=np.concatenate([np.zeros(0), *builder.limits[0], *builder.limits[1]]),
        equations=builder.rows[0],
        nodes=nodes,
        load_rows=load_rows,
    )


def _add_counts(builder: _Builder, stream: Stream, at: int) -> Ints:
    permitted = stream.permitted(at)
    classes, _ = np.nonzero(permitted)
    upper = stream.count[classes].astype(np.float64)
    table = np.full(permitted.shape, -1, dtype=np.int64)
    table[permitted] = builder.add_variables(np.zeros(len(classes)), upper)
    used = np.unique(classes)
    row_of_class = np.zeros(len(permitted), dtype=np.int64)
    row_of_class[used] = builder.add_rows(0, stream.count[used].astype(np.float64))
    builder.add_entries(0, row_of_class[classes], table[permitted], 1.0)
    return table


def _add_loads(builder: _Builder, stream: Stream, at: int, table: Ints) -> Ints:
    row_of_member = np.full(table.shape[1], -1, dtype=np.int64)
    for one in stream.rebalances[at].ranges:
        rows = builder.add_rows(0, np.zeros(len(one.members)))
        loads = builder.add_variables(one.low.astype(np.float64), one.high.astype(np.float64))
        builder.add_entries(0, rows, loads, -1.0)
        row_of_member[one.members] = rows
    classes, members = np.nonzero(table >= 0)
    weights = stream.weight[classes, at]
    builder.add_entries(0, row_of_member[members], table[table >= 0], weights)
    return row_of_member


def _add_departures(builder: _Builder, stream: Stream, at: int, before: Ints, table: Ints) -> None:
    """Add variables and rows that count the partitions that leave subscribed members."""
    stays = (before >= 0) & stream.subscribed(at)
    both = stays & (table >= 0)
    number = int(both.sum())
    departures = builder.add_variables(np.zeros(number), np.full(number, np.inf))
    builder.moves.append(np.concatenate([before[stays & (table < 0)], departures]))
    rows = builder.add_rows(1, np.zeros(number))
    for columns, value in ((before[both], 1.0), (table[both], -1.0), (departures, -1.0)):
        builder.add_entries(1, rows, columns, value)


def total_moves(stream: Stream, counts: Sequence[Ints]) -> list[int]:
    """Return the number of moves at each rebalance for given partition counts."""
    before, moves = stream.start, []
    for at, table in enumerate(counts):
        left = np.maximum(before - table, 0)
        moves.append(int(left[stream.subscribed(at)].sum()))
        before = table
    return moves


@dataclass(frozen=True, slots=True)
class Prices:
    """Integer dual values that prove a lower bound on the moves."""

    loads: Ints  # price of one unit of load per rebalance and member
    scale: int

    @classmethod
    def zero(cls, stream: Stream) -> Self:
        """Create dual values of zero."""
        shape = len(stream.rebalances), len(stream.members)
        return cls(np.zeros(shape, dtype=np.int64), _scale(stream))

    @classmethod
    def of(cls, stream: Stream, program: LinearProgram, duals: Floats) -> Self:
        """Convert dual values of the linear program to integers."""
        scale = _scale(stream)
        heaviest = max(int(stream.weight.max(initial=0)), 1)
        most = min(greatest_price(stream), scale * _MAX_PRICE_IN_MOVES) // heaviest
        loads = np.zeros((len(stream.rebalances), len(stream.members)), dtype=np.int64)
        for row, load_rows in zip(loads, program.load_rows, strict=True):
            known = load_rows >= 0
            values = np.clip(-duals[load_rows[known]] * scale, -most, most)
            row[known] = np.rint(values).astype(np.int64)
        return cls(loads, scale)

    def bound(self, stream: Stream) -> int:
        """Compute the lower bound on the moves that the dual values prove."""
        return price_bound(stream, self.loads, self.scale)


def _scale(stream: Stream) -> int:
    """Return the integer price that represents one move."""
    bits = _WEIGHTED_PRICE_BITS if stream.is_weighted else _PRICE_BITS
    return min(1 << bits, greatest_price(stream))


def exact_duals(program: LinearProgram, budget: SearchBudget) -> tuple[Floats, Floats] | None:
    """Solve a linear program by the simplex method; return values and dual values, or None."""
    work = _WORK_OF_SIMPLEX * len(program.cost)
    if budget.left < work:
        return None
    budget.spend(work)
    middle = program.equations
    row_scale, matrix = _scaled(program)
    limit = program.limit / row_scale
    result = linprog(
        program.cost,
        A_eq=matrix[:middle],
        b_eq=limit[:middle],
        A_ub=matrix[middle:],
        b_ub=limit[middle:],
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs-ds",
        options={"time_limit": max(budget.seconds, 0.01)},
    )
    if result.status != 0:
        return None
    duals = np.concatenate([result.eqlin.marginals, result.ineqlin.marginals])
    return result.x, duals / row_scale


def _scaled(program: LinearProgram) -> tuple[Floats, sparse.csr_matrix]:
    """Return the greatest coefficient of each row, and the matrix divided by them."""
    greatest = np.maximum(abs(program.matrix).max(axis=1).toarray().ravel(), 1.0)
    return greatest, sparse.csr_matrix(sparse.diags(1 / greatest) @ program.matrix)


def is_integral(values: Floats) -> bool:
    """Return whether all values are integers, within the precision of the simplex method."""
    return bool(np.abs(values - np.rint(values)).max(initial=0) <= INTEGRALITY)


def approximate_duals(program: LinearProgram, budget: SearchBudget, *, precision: float) -> Floats:
    """Solve a linear program approximately, and return its dual values."""
    from ortools.pdlp import solvers_pb2  # noqa: PLC0415
    from ortools.pdlp.python import pdlp  # noqa: PLC0415

    model = pdlp.QuadraticProgram()
    model.resize_and_initialize(len(program.cost), len(program.limit))
    model.objective_vector = program.cost
    row_scale, matrix = _scaled(program)
    limit = program.limit / row_scale
    model.constraint_matrix = matrix.tocsc()
    lower = limit.copy()
    lower[program.equations :] = -np.inf
    model.constraint_lower_bounds, model.constraint_upper_bounds = lower, limit
    model.variable_lower_bounds, model.variable_upper_bounds = program.lower, program.upper
    settings = solvers_pb2.PrimalDualHybridGradientParams(num_threads=budget.limits.workers)
    criteria = settings.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_absolute = precision
    criteria.simple_optimality_criteria.eps_optimal_relative = precision
    work = _WORK_OF_PDLP * max(model.constraint_matrix.nnz, 1)
    criteria.iteration_limit = max(int(budget.left / work), 1)
    if budget.seconds < inf:
        criteria.time_sec_limit = max(budget.seconds, 0.01)
    result = pdlp.primal_dual_hybrid_gradient(model, settings)
    budget.spend(work * result.solve_log.iteration_count)
    return np.asarray(result.dual_solution) / row_scale


def integer_counts(
    program: LinearProgram, budget: SearchBudget, *, is_exact: bool
) -> tuple[list[Ints] | None, int]:
    """Solve an integer program; return partition counts per rebalance and a lower bound.

    The counts are None if no solution is found within the budget. ``is_exact`` selects CP-SAT,
    which has exact arithmetic, instead of HiGHS.
    """
    if is_exact:
        return _by_cpsat(program, budget) if budget.has_work else (None, 0)
    work = _WORK_OF_NODES * len(program.cost)
    if budget.left < work or budget.seconds < work:
        return None, 0
    budget.spend(work)
    return _by_highs(program, budget.seconds)


def _by_highs(program: LinearProgram, seconds: float) -> tuple[list[Ints] | None, int]:
    middle = program.equations
    lower = program.limit.copy()
    lower[middle:] = -np.inf
    is_count = np.zeros(len(program.cost))
    is_count[: program.counts] = 1
    result = milp(
        program.cost,
        integrality=is_count,
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, lower, program.limit),
        options={"time_limit": max(seconds, 0.01), "node_limit": _NODES},
    )
    bound = getattr(result, "mip_dual_bound", None)
    proven = 0 if bound is None or not np.isfinite(bound) else int(np.ceil(bound - 1e-4))
    counts = None if result.x is None else program.read(result.x)
    return counts, max(proven, 0)


def _by_cpsat(program: LinearProgram, budget: SearchBudget) -> tuple[list[Ints] | None, int]:
    model = cp_model.CpModel()
    most = int(program.upper[: program.counts].sum())
    limits = np.where(np.isfinite(program.upper), program.upper, most).astype(np.int64)
    pairs = zip(program.lower.astype(np.int64).tolist(), limits.tolist(), strict=True)
    variables = [model.new_int_var(low, high, "") for low, high in pairs]
    matrix = program.matrix.tocsr()
    for row, limit in enumerate(program.limit.astype(np.int64).tolist()):
        start, end = matrix.indptr[row], matrix.indptr[row + 1]
        terms = [variables[column] for column in matrix.indices[start:end].tolist()]
        factors = matrix.data[start:end].astype(np.int64).tolist()
        value = cp_model.LinearExpr.weighted_sum(terms, factors)
        model.add(value == limit if row < program.equations else value <= limit)
    # A variable as objective has no offset, so its integer bound is that of the program.
    objective = model.new_int_var(0, Arithmetic.CP_SAT.value, "objective")
    cost = program.cost.astype(np.int64).tolist()
    model.add(objective == cp_model.LinearExpr.weighted_sum(variables, cost))
    model.minimize(objective)
    solver, status = run_cpsat(model, budget)
    bound = max(0, int(solver.response_proto.inner_objective_lower_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    values = np.array([solver.value(variable) for variable in variables], dtype=np.float64)
    return program.read(values), bound


def _cheapest_flow(
    ends: tuple[Ints, Ints], capacity: Ints, cost: Ints, *, supply: Ints, loads: tuple[Ints, Ints]
) -> Ints | None:
    """Return the cheapest partition counts per class and member; None if no flow exists."""
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
    """Linear program whose counts are rounded one rebalance after the other.

    A flow rounds each count of a rebalance up or down, and keeps the limits of the loads. The dual
    simplex method then continues from the last basis. If the value rises, other flows are tried.
    """

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
        """Return the partition counts of the last solution."""
        return np.array([one.solution_value() for one in self.variables[: self.program.counts]])

    def round(self, budget: SearchBudget) -> list[Ints] | None:
        """Round all counts to integers; return None if no work is left."""
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
        """Yield rounded counts of one rebalance, the nearest integers first."""
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
