"""Solve the linear and integer programs of a trajectory with HiGHS, PDLP and CP-SAT.

PDLP is a first-order method for large linear programs (D. Applegate et al. "Practical large-scale
linear programming using primal-dual hybrid gradient". NeurIPS 2021). Its prices need not be exact:
`price_bound` computes the bound that they prove in integers.
"""

from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np
from ortools.sat.python import cp_model
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from kassay.solver.certificate.rebalance_sequence import (
    Stream,
    greatest_price,
    price_bound,
)
from kassay.solver.certificate.trajectory_certificate import TrajectoryObjective
from kassay.solver.cpsat.model import run_cpsat
from kassay.solver.limits import SearchBudget
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import Floats, LinearProgram

INTEGRALITY = 1e-6
"""Maximum distance of a value to an integer within the precision of the simplex method."""
_PRICE_BITS = 20
_WEIGHTED_PRICE_BITS = 40
_MAX_PRICE_IN_MOVES = 2**19
_WORK_OF_SIMPLEX = 5e-5
"""Work of the simplex method, per variable."""
_WORK_OF_PDLP = 1e-8
"""Work of one iteration of PDLP, per coefficient."""
_WORK_OF_NODES, _NODES = 3e-4, 500
"""Work of an integer program, per variable, and its maximum number of nodes."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Integer prices that prove a bound, in units of ``1 / scale`` moves.

    Parameters
    ----------
    loads
        Price of one unit of load per rebalance and member.
    moves
        Cost of a move per rebalance.
    """

    loads: Ints
    moves: tuple[int, ...]
    scale: int

    @classmethod
    def zero(cls, stream: Stream, objective: TrajectoryObjective) -> Self:
        """Return prices of zero."""
        scale = _scale(stream)
        shape = len(stream.rebalances), len(stream.members)
        moves = (scale if objective is TrajectoryObjective.TOTAL else 0,) * shape[0]
        return cls(np.zeros(shape, dtype=np.int64), moves, scale)

    @classmethod
    def of(cls, stream: Stream, program: LinearProgram, duals: Floats) -> Self:
        """Return the prices of the dual values of a program of all rebalances."""
        scale = _scale(stream)
        heaviest = max(int(stream.weight.max(initial=0)), 1)
        most = min(greatest_price(stream), scale * _MAX_PRICE_IN_MOVES) // heaviest
        loads = np.zeros((len(stream.rebalances), len(stream.members)), dtype=np.int64)
        for row, load_rows in zip(loads, program.load_rows, strict=True):
            known = load_rows >= 0
            values = np.clip(-duals[load_rows[known]] * scale, -most, most)
            row[known] = np.rint(values).astype(np.int64)
        moves = (scale,) * len(loads)
        if len(program.move_rows):
            shares = np.maximum(-duals[program.move_rows], 0)
            shares /= max(1.0, float(shares.sum()) * (1 + 1e-9))
            moves = tuple(int(share * scale) for share in shares.tolist())
        return cls(loads, moves, scale)

    def bound(self, stream: Stream) -> int:
        """Compute the lower bound on the cost of all moves from these prices."""
        return price_bound(stream, self.loads, self.moves, self.scale)


def _scale(stream: Stream) -> int:
    """Return the units of a price per move: more for weights, as prices per unit are smaller."""
    bits = _WEIGHTED_PRICE_BITS if stream.is_weighted else _PRICE_BITS
    return min(1 << bits, greatest_price(stream))


def exact_duals(program: LinearProgram, budget: SearchBudget) -> tuple[Floats, Floats] | None:
    """Solve a linear program by the simplex method; return its variables and dual values.

    The result is None if the expected work is not left, or the limits are reached.
    """
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
    """Return the greatest coefficient per row, and the matrix with rows divided by it."""
    greatest = np.maximum(abs(program.matrix).max(axis=1).toarray().ravel(), 1.0)
    return greatest, sparse.csr_matrix(sparse.diags(1 / greatest) @ program.matrix)


def is_integral(values: Floats) -> bool:
    """Return whether all values are integers, within the precision of the simplex method."""
    return bool(np.abs(values - np.rint(values)).max(initial=0) <= INTEGRALITY)


def approximate_solution(
    program: LinearProgram, budget: SearchBudget, *, precision: float
) -> tuple[Floats, Floats]:
    """Solve a linear program approximately; return its variables and dual values."""
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
    return np.asarray(result.primal_solution), np.asarray(result.dual_solution) / row_scale


class IntegerPrograms:
    """Solver of the integer programs of one search.

    Parameters
    ----------
    is_exact
        Solve the programs by CP-SAT, in exact arithmetic, instead of HiGHS.
    """

    def __init__(self, *, is_exact: bool) -> None:
        self.is_exact = is_exact

    def counts(self, program: LinearProgram, budget: SearchBudget) -> tuple[list[Ints] | None, int]:
        """Return the counts of each rebalance and a lower bound.

        The counts are None if no solution is found within the budget.
        """
        if self.is_exact:
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
    return counts, max(proven, 0) + program.constant


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
    bound = program.constant + max(0, int(solver.response_proto.inner_objective_lower_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    values = np.array([solver.value(variable) for variable in variables], dtype=np.float64)
    return program.read(values), bound
