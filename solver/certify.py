"""Create certificates of solutions and assignments."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.reference.model.load_metrics import Measure
from kassay.solver import evaluation
from kassay.solver.certificate.certificate import (
    Certificate,
    Conflict,
    LevelClaim,
    Origin,
    improves,
    level_limits,
    value_of,
)
from kassay.solver.certificate.refutation import (
    Limit,
    PartitionPrices,
    Relaxation,
    build_relaxation,
    cases_refute,
    relaxation_refuted,
)
from kassay.solver.constraints import Constraint
from kassay.solver.counting_bounds import level_bound, peak_bound
from kassay.solver.network.improving_chains import improving_chain
from kassay.solver.network.level_cost_network import placement_prices, priced_levels
from kassay.solver.objective import HostImbalance, Imbalance, Level, requested_levels
from kassay.solver.problem import Arithmetic, Placement, Problem, build_problem
from kassay.solver.solution import Solution

Evidence = TypeVar("Evidence", LevelClaim, Conflict)


def certify(
    group: Group,
    answer: Solution | Assignment,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
) -> Certificate:
    """Create a certificate of optimality for a solution or an assignment.

    For equal weights, prices prove an optimal assignment, and a chain improves any other.
    Otherwise the bounds are those of the solution, with partition prices as evidence where
    they are found, or bounds that need no search.

    Parameters
    ----------
    levels, constraints
        Levels on which an assignment is certified, or their names, by default `default_levels`, and
        constraints besides the capacities of the group. A solution has its own levels.

    Raises
    ------
    UsageError
        If there is neither an assignment nor a conflict, or the assignment is not valid or
        violates a constraint.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay import Member, Topic, certificate_errors
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> even = Assignment({"a": [("t", 0)], "b": [("t", 1)]})
    >>> certificate = certify(group, even)
    >>> certificate.node_prices, list(certificate_errors(group, even, certificate))
    ((15, 15, 15, 0), [])
    >>> uneven = certify(group, Assignment({"a": [("t", 0), ("t", 1)]}))
    >>> uneven.is_optimal, [str(transfer) for transfer in uneven.chain]
    (False, ['a gives t-0 to b'])
    """
    require_group(group)
    if not isinstance(answer, Solution | Assignment):
        raise UsageError(f"answer must be a Solution or an Assignment, got {type(answer).__name__}")
    solution = answer if isinstance(answer, Solution) else None
    stated = solution.certificate if solution else None
    if stated is not None and stated.conflict is not None:
        conflict = stated.conflict
        if not conflict.origin.is_checked:
            conflict = _proven(conflict, build_problem(group), conflict.constraints, ())
        return replace(stated, conflict=conflict)
    assignment = solution.assignment if solution else answer
    if not isinstance(assignment, Assignment):
        raise UsageError("the solution has no assignment and no conflict; increase the work limit")
    problem = build_problem(group)
    placement = problem.valid_placement(assignment)
    stated = stated or _counted_certificate(group, assignment, levels, constraints)
    rules = (*evaluation.group_constraints(group), *stated.constraints)
    for rule in evaluation.violated(problem, rules, placement):
        raise UsageError(f"the assignment violates a constraint: {rule}")
    return _with_windows(problem, _with_proof(problem, assignment, placement, stated))


def _with_windows(problem: Problem, certificate: Certificate) -> Certificate:
    """Add to each claim about a maximum load the weight windows that prove its bound."""
    if problem.profiles is None:
        return certificate
    claims = tuple(
        replace(
            claim, windows=peak_bound(problem, evaluation.load_units(problem, claim.level)).windows
        )
        if claim.origin is Origin.COUNTING
        and isinstance(claim.level, Imbalance | HostImbalance)
        and claim.level.measure is Measure.MAKESPAN
        else claim
        for claim in certificate.claims
    )
    return replace(certificate, claims=claims)


def _with_proof(
    problem: Problem, assignment: Assignment, placement: Placement, stated: Certificate
) -> Certificate:
    """Add evidence for optimality to a certificate. Without evidence, add an improving chain."""
    group = problem.group
    if stated.node_prices:
        return stated
    levels = [claim.level for claim in stated.claims]
    prices = placement_prices(problem, levels, placement)
    if prices is not None:
        claims = tuple(
            replace(claim, bound=claim.value, origin=Origin.NODE_PRICES) for claim in stated.claims
        )
        return replace(stated, claims=claims, node_prices=prices)
    certificate = _with_evidence(group, assignment, stated)
    if group.has_copies or priced_levels(group, levels) is None:
        return certificate
    steps = improving_chain(group, assignment)
    improved = steps if improves(group, assignment, stated, steps) else ()
    return replace(certificate, chain=improved)


def _counted_certificate(
    group: Group,
    assignment: Assignment,
    levels: Iterable[Level | str] | str | None,
    constraints: Iterable[Constraint],
) -> Certificate:
    """Create a certificate with bounds that need no search."""
    rules = evaluation.check_constraints(group, constraints)
    levels = requested_levels(group, levels)
    evaluation.check_levels(group, levels)
    evaluation.check_arc_costs(group, levels, (*evaluation.group_constraints(group), *rules))
    problem = build_problem(group)
    claims: list[LevelClaim] = []
    for level in levels:
        value = value_of(group, assignment, level)
        bound = level_bound(problem, level, level_limits(group, assignment, claims))
        claims.append(LevelClaim(level, value, min(bound, value), Origin.COUNTING))
    return Certificate(tuple(claims), constraints=rules)


def _with_evidence(group: Group, assignment: Assignment, stated: Certificate) -> Certificate:
    """Add evidence, if it is found, to the bounds that only a solver can check."""
    if not stated.trusted:
        return stated
    problem = build_problem(group)
    rules = (*evaluation.group_constraints(group), *stated.constraints)
    limits = level_limits(group, assignment, stated.claims)
    claims = []
    for index, claim in enumerate(stated.claims):
        below = (*limits[:index], (claim.level, claim.bound - 1))
        if claim.origin.is_checked:
            claims.append(claim)
        elif level_bound(problem, claim.level, limits[:index]) >= claim.bound:
            claims.append(replace(claim, origin=Origin.COUNTING))
        else:
            claims.append(_proven(claim, problem, rules, below))
    return replace(stated, claims=tuple(claims))


def _proven(
    evidence: Evidence, problem: Problem, rules: Sequence[Constraint], limits: Sequence[Limit]
) -> Evidence:
    """Add a proof, if one is found, that no assignment meets the constraints and limits."""
    prices = find_prices(problem, rules, limits)
    if prices is not None:
        return replace(evidence, origin=Origin.PARTITION_PRICES, prices=prices)
    if cases_refute(problem, rules, limits):
        return replace(evidence, origin=Origin.CASES)
    return evidence


_MAX_CELLS = 300_000
_TANGENTS = 60
# Dual values are rounded to multiples of 1 / denominator, for each of these denominators.
_DENOMINATORS = (1, 2, 3, 4, 6, 10, 12, 60, 840, 10_000)


def find_prices(
    problem: Problem, rules: Sequence[Constraint], limits: Sequence[Limit]
) -> PartitionPrices | None:
    """Find partition prices (dual values) that prove a conflict of constraints and limits.

    Return None if no such prices are found. The candidates are rounded duals of the linear
    relaxation. The checker of certificates decides whether they are sufficient.
    """
    if problem.partition_count * problem.member_count > _MAX_CELLS:
        return None
    relaxation = build_relaxation(problem, rules, limits)
    candidates = chain([PartitionPrices()], _dual_prices(problem, relaxation))
    return next((one for one in candidates if relaxation_refuted(problem, relaxation, one)), None)


def _dual_prices(problem: Problem, relaxation: Relaxation) -> Iterator[PartitionPrices]:
    """Yield rounded dual values of the linear relaxation as candidate partition prices.

    The last level is minimised if it is linear or a sum of squares. If it is not, or if no
    placement is within the other limits, the greatest excess over a limit is minimised. The limits
    of the loads then replace those of the sums of squares.
    """
    if not relaxation.blocks or not Arithmetic.FLOAT_SOLVER.represents(sum(relaxation.weights)):
        return
    last = len(relaxation.levels) - 1
    duals = None
    if last >= 0 and (relaxation.levels[last] or relaxation.max_squares[last]) is not None:
        duals = _solve_dual(relaxation, last)
    if duals is None:
        duals = _solve_dual(relaxation, None)
    if duals is None:
        return
    names = [problem.group.topics[topic].name for topic in problem.topic.tolist()]
    for denominator in _DENOMINATORS:
        # The first partition of a block has the price of the block.
        price = [0] * problem.partition_count
        for block, value in zip(relaxation.blocks, duals.blocks, strict=True):
            price[block[0]] = round(value * denominator)
        table: dict[str, list[int]] = {}
        for name, one in zip(names, price, strict=True):
            table.setdefault(name, []).append(one)
        yield PartitionPrices(
            {name: tuple(values) for name, values in table.items() if any(values)},
            max(round(duals.max_moves * denominator), 0),
            tuple(max(round(value * denominator), 0) for value in duals.levels),
        )


class _Duals(NamedTuple):
    """Dual values of the constraints of the linear relaxation."""

    blocks: Sequence[float]
    max_moves: float
    levels: Sequence[float]


def _solve_dual(relaxation: Relaxation, target: int | None) -> _Duals | None:
    """Return dual values of the linear relaxation, or None if HiGHS finds no optimum.

    The columns are the shares of the blocks, one per block and member that may have it, then the
    squared load of each member, then the excess over the limits. The objective is the level with
    the index ``target``, or the excess.
    """
    from scipy import sparse  # noqa: PLC0415
    from scipy.optimize import linprog  # noqa: PLC0415

    block, member = np.nonzero(relaxation.allowed)
    members, shares = relaxation.allowed.shape[1], np.arange(len(block))
    weight, count = (
        sparse.csr_matrix((np.array(sizes)[block], (member, shares)), (members, len(block)))
        for sizes in (relaxation.weights, [len(one) for one in relaxation.blocks])
    )
    # Limits of the moves, with the index -1, and of the levels: coefficients of shares and squares.
    limits: dict[int, tuple[NDArray[np.float64], int]] = {}
    pairs = zip(
        (relaxation.max_moves, *relaxation.levels), (None, *relaxation.max_squares), strict=True
    )
    for index, (linear, squares) in enumerate(pairs, start=-1):
        if linear is not None:
            costs = linear.costs[block, member].astype(np.float64)
            limits[index] = np.append(costs, np.zeros(members)), linear.limit
        elif squares is not None and target is not None:
            limits[index] = np.append(np.zeros(len(block)), np.ones(members)), squares
    objective, excess = np.append(np.zeros(len(block) + members), 1.0), -1.0
    if target is not None:
        objective, excess = np.append(limits.pop(target)[0], 0.0), 0.0
    # Tangents at integer loads around the mean load bound the squared loads from below.
    first = max(sum(relaxation.weights) // max(members, 1) - _TANGENTS // 2, 0)
    has_squares = target is not None and any(most is not None for most in relaxation.max_squares)
    loads = np.arange(first, first + _TANGENTS * has_squares)
    excesses = np.full((members, 1), excess)
    rows = [
        [weight, None, excesses],
        [count, None, excesses],
        *(
            [row[None, : len(block)], row[None, len(block) :], excesses[:1]]
            for row, _ in limits.values()
        ),
        [
            sparse.kron((2 * loads + 1)[:, None], weight),
            sparse.kron(np.full((len(loads), 1), -1), sparse.identity(members)),
            None,
        ],
    ]
    sides = [*relaxation.max_loads, *relaxation.max_counts, *(most for _, most in limits.values())]
    is_placed = np.ones(len(block)), (block, shares)
    result = linprog(
        objective,
        A_ub=sparse.bmat(rows, format="csr"),
        b_ub=[*sides, *np.repeat(loads * (loads + 1), members)],
        A_eq=sparse.csr_matrix(is_placed, (len(relaxation.blocks), len(objective))),
        b_eq=np.ones(len(relaxation.blocks)),
        method="highs",
    )
    if result.status != 0:
        return None
    # HiGHS returns by how much the minimum grows if a right side grows by 1. That is at most 0 for
    # the limits, so their prices have the other sign.
    prices = -np.asarray(result.ineqlin.marginals)
    of_limit = dict(zip(limits, prices[2 * members : len(sides)].tolist(), strict=True))
    unit = 1.0
    if target is None:
        # The prices of all limits add up to 1, so that most are fractions.
        unit = float(prices.max(initial=0)) or 1.0
    else:
        of_limit[target] = 1.0
    return _Duals(
        (np.asarray(result.eqlin.marginals) / unit).tolist(),
        of_limit.get(-1, 0.0) / unit,
        [of_limit.get(index, 0.0) / unit for index in range(len(relaxation.levels))],
    )
