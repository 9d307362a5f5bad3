"""Solve the linear and integer programs of a trajectory with HiGHS and PDLP.

PDLP is a first-order method for large linear programs (D. Applegate et al. "Practical large-scale
linear programming using primal-dual hybrid gradient". NeurIPS 2021). Its prices need not be exact:
`price_bound` computes the bound that they prove in integers.
"""

import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from kassay.solver.certificate.trajectory_model import Stream
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import Floats, LinearProgram

SCALE = 2**20
"""Units of a price per move."""

_MAX_PRICE = 2.0**19  # in moves; greater dual values are cut
_INTEGRAL = 1e-6


def prices_of(stream: Stream, program: LinearProgram, duals: Floats) -> Ints:
    """Return the integer prices per rebalance and member, from the dual values of the loads."""
    prices = np.zeros((len(program.load_rows), len(stream.members)), dtype=np.int64)
    for row, load_rows in zip(prices, program.load_rows, strict=True):
        known = load_rows >= 0
        values = np.clip(-duals[load_rows[known]], -_MAX_PRICE, _MAX_PRICE)
        row[known] = np.rint(SCALE * values).astype(np.int64)
    return prices


def exact_duals(program: LinearProgram, seconds: float) -> tuple[Floats, Floats] | None:
    """Solve a linear program by the simplex method; return its variables and dual values.

    The result is None if the time limit is reached.
    """
    middle = program.equations
    result = linprog(
        program.cost,
        A_eq=program.matrix[:middle],
        b_eq=program.limit[:middle],
        A_ub=program.matrix[middle:],
        b_ub=program.limit[middle:],
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs-ds",
        options={"time_limit": max(seconds, 0.01)},
    )
    if result.status != 0:
        return None
    return result.x, result.eqlin.marginals


def is_integral(values: Floats) -> bool:
    """Return whether all values are integers, within the precision of the simplex method."""
    return bool(np.abs(values - np.rint(values)).max(initial=0) <= _INTEGRAL)


def optimal_counts(program: LinearProgram, seconds: float) -> list[Ints] | None:
    """Return optimal counts of each rebalance, or the best ones found within the time.

    The solution of the linear program is often integer. Otherwise, branch and bound is used.
    """
    end = time.monotonic() + seconds
    solved = exact_duals(program, seconds)
    if solved is None:
        return None
    if is_integral(solved[0][: program.counts]):
        return program.read(solved[0])
    return integer_counts(program, end - time.monotonic())[0]


def approximate_duals(
    program: LinearProgram, seconds: float, *, precision: float, workers: int
) -> Floats:
    """Solve a linear program approximately; return its dual values."""
    from ortools.pdlp import solvers_pb2  # noqa: PLC0415
    from ortools.pdlp.python import pdlp  # noqa: PLC0415

    model = pdlp.QuadraticProgram()
    model.resize_and_initialize(len(program.cost), len(program.limit))
    model.objective_vector = program.cost
    model.constraint_matrix = program.matrix.tocsc()
    lower = program.limit.copy()
    lower[program.equations :] = -np.inf
    model.constraint_lower_bounds, model.constraint_upper_bounds = lower, program.limit
    model.variable_lower_bounds, model.variable_upper_bounds = program.lower, program.upper
    settings = solvers_pb2.PrimalDualHybridGradientParams(num_threads=workers)
    criteria = settings.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_absolute = precision
    criteria.simple_optimality_criteria.eps_optimal_relative = precision
    criteria.time_sec_limit = max(seconds, 0.01)
    result = pdlp.primal_dual_hybrid_gradient(model, settings)
    return np.asarray(result.dual_solution)


def integer_counts(program: LinearProgram, seconds: float) -> tuple[list[Ints] | None, int]:
    """Solve an integer program; return the counts of each rebalance and a bound by HiGHS.

    The counts are None if no solution is found within the time.
    """
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
        options={"time_limit": max(seconds, 0.01)},
    )
    bound = getattr(result, "mip_dual_bound", None)
    proven = 0 if bound is None or not np.isfinite(bound) else int(np.ceil(bound - 1e-4))
    return None if result.x is None else program.read(result.x), max(proven, 0)
