"""Create certificates of solutions and assignments."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver.bounds.level_bounds import level_bound
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin
from kassay.solver.certificate.level_values import improves, level_limits, value_of
from kassay.solver.certificate.refutation import PartitionPrices, cases_refute
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import check_levels, violated
from kassay.solver.evidence.price_search import find_prices
from kassay.solver.improvement.residual_network import price_counts
from kassay.solver.improvement.transfer_chains import improving_chain
from kassay.solver.level_network import check_arc_costs
from kassay.solver.objective import Level, requested_levels
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import Solution
from kassay.solver.subscription_network import build_network, prices_prove


def certify(
    group: Group,
    answer: Solution | Assignment,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
) -> Certificate:
    """Return a certificate of a solution or an assignment, for checking without a solver.

    For equal weights, prices prove an optimal assignment, and a chain improves any other.
    Otherwise the bounds are those of the solution, with partition prices as evidence where
    they are found, or bounds that need no search.

    Parameters
    ----------
    levels, constraints
        Levels on which an assignment is certified, or their names, by default `default_levels`, and
        constraints besides the capacities of the group. A solution has its own.

    Raises
    ------
    UsageError
        If there is neither an assignment nor a conflict, or the assignment is not valid or
        violates a constraint.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> from kassay.solver.certificate.check import certificate_errors
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> even = Assignment({"a": [("t", 0)], "b": [("t", 1)]})
    >>> certificate = certify(group, even)
    >>> certificate.prices.members, list(certificate_errors(group, even, certificate))
    ({'a': (3, 0), 'b': (3, 0)}, [])
    >>> uneven = certify(group, Assignment({"a": [("t", 0), ("t", 1)]}))
    >>> uneven.is_optimal, [str(transfer) for transfer in uneven.chain]
    (False, ['a gives t-0 to b'])
    """
    require_group(group)
    solution = answer if isinstance(answer, Solution) else None
    stated = solution.certificate if solution else None
    if stated is not None and stated.conflict is not None:
        return _proven_conflict(group, stated, stated.conflict)
    assignment = solution.assignment if solution else answer
    if not isinstance(assignment, Assignment):
        raise UsageError("the solution has no assignment and no conflict to certify")
    problem = build_problem(group)
    placement = problem.valid_placement(assignment)
    stated = stated or _counted_certificate(group, assignment, levels, tuple(constraints))
    rules = (*group_constraints(group), *stated.constraints)
    for rule in violated(problem, rules, placement):
        raise UsageError(f"the assignment violates a constraint: {rule}")
    return _with_proof(problem, assignment, placement, stated)


def _with_proof(
    problem: Problem, assignment: Assignment, placement: Placement, stated: Certificate
) -> Certificate:
    """Add evidence to a certificate: node prices, an improving chain or partition prices."""
    group = problem.group
    if stated.prices is not None:
        return stated
    if not prices_prove(group, [claim.level for claim in stated.claims]):
        return _with_evidence(group, assignment, stated)
    network = build_network(problem)
    prices = price_counts(network, network.counts(placement), moved=movement(group, assignment))
    if prices is None:
        chain = improving_chain(group, assignment)
        improved = chain if improves(group, assignment, stated, chain) else ()
        return replace(_with_evidence(group, assignment, stated), chain=improved)
    claims = tuple(
        replace(claim, bound=claim.value, origin=Origin.PRICES) for claim in stated.claims
    )
    return replace(stated, claims=claims, prices=prices)


def _counted_certificate(
    group: Group,
    assignment: Assignment,
    levels: Iterable[Level | str] | str | None,
    constraints: tuple[Constraint, ...],
) -> Certificate:
    """Return a certificate of an assignment with bounds that need no search."""
    check_constraints(group, constraints)
    levels = requested_levels(group, levels)
    check_levels(group, levels)
    check_arc_costs(group, levels, (*group_constraints(group), *constraints))
    problem = build_problem(group)
    claims: list[LevelClaim] = []
    for level in levels:
        value = value_of(group, assignment, level)
        bound = level_bound(problem, level, level_limits(group, assignment, claims))
        claims.append(LevelClaim(level, value, min(bound, value), Origin.COUNTING))
    return Certificate(tuple(claims), constraints=constraints)


def _with_evidence(group: Group, assignment: Assignment, stated: Certificate) -> Certificate:
    """Search for evidence for the unchecked bounds of a certificate; add it if found."""
    if not stated.trusted:
        return stated
    problem = build_problem(group)
    rules = (*group_constraints(group), *stated.constraints)
    limits = level_limits(group, assignment, stated.claims)
    claims = []
    for index, claim in enumerate(stated.claims):
        if claim.origin.is_checked:
            claims.append(claim)
        elif level_bound(problem, claim.level, limits[:index]) >= claim.bound:
            claims.append(replace(claim, origin=Origin.COUNTING))
        else:
            below = (*limits[:index], (claim.level, claim.bound - 1))
            found = _evidence(problem, rules, below)
            origin, prices = found or (claim.origin, None)
            claims.append(replace(claim, origin=origin, prices=prices))
    return replace(stated, claims=tuple(claims))


def _proven_conflict(group: Group, stated: Certificate, conflict: Conflict) -> Certificate:
    """Search for evidence for a conflict of constraints; add it to the certificate if found."""
    if conflict.origin.is_checked:
        return stated
    found = _evidence(build_problem(group), conflict.constraints, ())
    origin, prices = found or (conflict.origin, None)
    return replace(stated, conflict=replace(conflict, origin=origin, prices=prices))


def _evidence(
    problem: Problem, rules: Sequence[Constraint], limits: Sequence[tuple[Level, int]]
) -> tuple[Origin, PartitionPrices | None] | None:
    """Search for a proof that no assignment meets constraints and limits.

    Return the origin of the proof and its partition prices, or None if no proof is found.
    """
    prices = find_prices(problem, rules, limits)
    if prices is not None:
        return Origin.PARTITION_PRICES, prices
    return (Origin.CASES, None) if cases_refute(problem, rules, limits) else None
