"""Certificates of solutions and assignments."""

from collections.abc import Iterable
from dataclasses import replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.solver.certificate.certificate import Certificate, Origin, PriceTable
from kassay.solver.certificate.check import (
    certified_improvement,
    price_counts,
    prices_prove,
    violated_constraints,
)
from kassay.solver.certificate.counting_bounds import counted_claims
from kassay.solver.constraints import Constraint, check_constraints
from kassay.solver.evaluation import valid_placement
from kassay.solver.objective import Level, default_levels
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.subscription_network import build_network


def certify(
    group: Group,
    answer: Solution | Assignment,
    *,
    levels: Iterable[Level] | None = None,
    constraints: Iterable[Constraint] = (),
) -> Certificate:
    """Return a certificate of a solution or an assignment, for checking without a solver.

    For equal weights, prices prove an optimal assignment, and a chain improves any other.
    Otherwise the bounds are those of the solution, or bounds that need no search.

    Parameters
    ----------
    levels, constraints
        Levels on which an assignment is certified, by default `default_levels`, and
        constraints besides the capacities of the group. A solution has its own.

    Raises
    ------
    UsageError
        If there is no assignment, or it is not valid or violates a constraint.
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
    solution = answer if isinstance(answer, Solution) else None
    assignment = solution.assignment if solution else answer
    if not isinstance(assignment, Assignment):
        raise UsageError("the solution has no assignment to certify")
    problem = build_problem(group)
    placement = valid_placement(problem, assignment)
    certificate = solution.certificate if solution else None
    certificate = certificate or _counted_certificate(group, assignment, levels, tuple(constraints))
    violation = next(violated_constraints(group, assignment, certificate.constraints), None)
    if violation is not None:
        raise UsageError(f"the assignment {violation}")
    stated = [claim.level for claim in certificate.claims]
    if certificate.prices is not None or not prices_prove(group, stated):
        return certificate
    network = build_network(problem)
    prices = price_counts(network, network.counts(placement), moved=movement(group, assignment))
    if prices is None:
        return replace(certificate, chain=certified_improvement(group, assignment, certificate))
    return _with_prices(certificate, prices)


def _counted_certificate(
    group: Group,
    assignment: Assignment,
    levels: Iterable[Level] | None,
    constraints: tuple[Constraint, ...],
) -> Certificate:
    """Return a certificate with bounds that need no search."""
    check_constraints(group, constraints)
    levels = default_levels(group) if levels is None else tuple(levels)
    claims = counted_claims(group, assignment, levels)
    return Certificate(claims, constraints=constraints)


def _with_prices(certificate: Certificate, prices: PriceTable) -> Certificate:
    """Add node prices, which prove the value of every level."""
    claims = tuple(
        replace(claim, bound=claim.value, origin=Origin.PRICES) for claim in certificate.claims
    )
    return replace(certificate, claims=claims, prices=prices)
