"""Proof that an assignment is optimal, which anybody can check without a solver.

For equal weights both levels are one minimum cost flow with convex costs, where a cost is
a pair (squared load, movement) that is compared lexicographically. The flow is optimal if
and only if every topic and every member can be given a price, a pair too, such that no
arc is worth more than it costs: complementary slackness [1]_. The prices are the
certificate; `certificate_errors` reads the arcs once. Where no prices exist, there is a chain of
transfers that improves the assignment: see `kassay.solver.improvement.transfer_chains`.

Prices speak of counts: partitions of one topic are alike to them but for how many of a
member's partitions it owned. That an assignment keeps as many owned partitions as its
counts allow is checked besides.

With weights there are no such prices. The certificate then names the origin of each bound;
`Certificate.trusted` tells which of them a reader cannot check.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.solver.certificate.certificate import Certificate, Origin, Price, PriceTable
from kassay.solver.certificate.claims import (
    counted_claims,
    value_of,
    wrong_claims,
)
from kassay.solver.constraints import group_constraints
from kassay.solver.evaluation import broken
from kassay.solver.improvement.residual_network import Arcs, build_arcs, lower_prices, require_valid
from kassay.solver.improvement.transfer_chains import Transfer, apply_chain, improving_chain
from kassay.solver.objective import (
    Imbalance,
    Level,
    Measure,
    Movement,
    MovementCost,
    default_levels,
)
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution


def certify(group: Group, answer: Solution | Assignment) -> Certificate:
    """Gather what is proven of an answer, in a form that is checked without a solver.

    Parameters
    ----------
    group
        The rebalance.
    answer
        A solution, or any valid assignment. The latter is judged on the default levels,
        within the capacities of the group.

    Returns
    -------
    Certificate
        With equal weights an optimal assignment is proven by prices, and another one
        refuted by a chain that improves it. Otherwise it has the bounds of the solution
        with their origins, or those that need no search.

    Raises
    ------
    ValueError
        If there is no assignment, or it is not valid for the group, or breaks a capacity.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
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
    assignment = answer.assignment if isinstance(answer, Solution) else answer
    if assignment is None:
        raise ValueError("there is no assignment to certify")
    require_valid(group, assignment)
    certificate = answer.certificate if isinstance(answer, Solution) else None
    if certificate is None:
        certificate = Certificate(counted_claims(group, assignment, default_levels(group)))
    breach = next(_breaches(group, assignment, certificate), None)
    if breach is not None:
        raise ValueError(f"the assignment {breach}")
    levels = [claim.level for claim in certificate.claims]
    if certificate.prices is not None or not prices_prove(group, levels):
        return certificate
    arcs = build_arcs(group, assignment)
    prices = price_counts(arcs, moved=movement(group, assignment))
    if prices is not None:
        return with_prices(certificate, prices)
    return replace(certificate, chain=_improvement(group, assignment, certificate))


def with_prices(certificate: Certificate, prices: PriceTable) -> Certificate:
    """Let prices bound every level at its value."""
    claims = tuple(
        replace(claim, bound=claim.value, origin=Origin.PRICES) for claim in certificate.claims
    )
    return replace(certificate, claims=claims, prices=prices)


def prices_prove(group: Group, levels: Sequence[Level]) -> bool:
    """Say whether prices prove these levels: equal weights, loads first, then movement.

    They prove the fewest moves among the least majorised loads. Strictly convex measures
    are least there and nowhere else; the others may be least elsewhere with fewer moves.
    """
    if not group.common_weight or any(level.tolerance for level in levels):
        return False
    match levels:
        case [Imbalance()]:
            return True
        case [
            Imbalance(measure=Measure.SUM_OF_SQUARES | Measure.LEXIMAX),
            Movement(cost=MovementCost()),
        ]:
            return True
        case _:
            return False


def price_counts(arcs: Arcs, *, moved: int) -> PriceTable | None:
    """Price the counts of an assignment that moves ``moved`` partitions; None if not optimal."""
    result = lower_prices(arcs)
    if result.chain is not None or moved > arcs.least_movement:
        return None
    return PriceTable(
        members=dict(zip(arcs.member_ids, result.pairs(result.members), strict=True)),
        topics=dict(zip(arcs.topic_names, result.pairs(result.topics), strict=True)),
    )


def certificate_errors(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    """Say what is wrong with a certificate; nothing if it proves what it claims.

    Bounds that `Certificate.trusted` names are taken as they are, if only they are not
    above the value.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        What the claims are about.
    certificate
        Claims and evidence, from anybody.

    Yields
    ------
    str
        One broken condition, with names and numbers.
    """
    invalid = [
        f"the assignment is not valid: {violation}" for violation in violations(group, assignment)
    ]
    if invalid:
        yield from invalid
        return
    for breach in _breaches(group, assignment, certificate):
        yield f"the assignment {breach}"
    yield from wrong_claims(group, assignment, certificate.claims)
    if certificate.chain:
        yield from _useless(group, assignment, certificate)
    if certificate.prices is not None:
        yield from _mispriced(group, assignment, certificate.prices)
    if certificate.trusted and certificate.is_optimal:
        for transfer in _improvement(group, assignment, certificate)[:1]:
            yield f"the bounds are wrong: a chain improves the assignment, first {transfer}"
    if any(claim.origin is Origin.PRICES for claim in certificate.claims):
        if certificate.prices is None:
            yield "bounds rest on prices, but there are none"
        elif not prices_prove(group, [claim.level for claim in certificate.claims]):
            yield "prices prove nothing about these levels of this group"


def _breaches(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    rules = (*group_constraints(group), *certificate.constraints)
    if not rules:
        return
    problem = build_problem(group)
    placement = problem.to_placement(assignment)
    if placement is not None:
        for rule in broken(problem, rules, placement):
            yield f"breaks a constraint: {rule}"


def _improvement(
    group: Group, assignment: Assignment, certificate: Certificate
) -> tuple[Transfer, ...]:
    """Return a chain that helps; none where partitions weigh differently."""
    if not prices_prove(group, [claim.level for claim in certificate.claims]):
        return ()
    chain = improving_chain(group, assignment)
    return chain if _helps(group, assignment, certificate, chain) else ()


def _helps(
    group: Group, assignment: Assignment, certificate: Certificate, chain: Sequence[Transfer]
) -> bool:
    """Say whether transfers improve an assignment on the levels, within the constraints."""
    better = apply_chain(group, assignment, tuple(chain))
    levels = [claim.level for claim in certificate.claims]
    return not any(_breaches(group, better, certificate)) and [
        value_of(group, better, level) for level in levels
    ] < [value_of(group, assignment, level) for level in levels]


def _useless(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    try:
        better = apply_chain(group, assignment, certificate.chain)
    except ValueError as error:
        yield f"the chain cannot be carried out: {error}"
        return
    for violation in violations(group, better):
        yield f"the chain leads to no valid assignment: {violation}"
        return
    if not _helps(group, assignment, certificate, certificate.chain):
        yield "the chain improves nothing"


def _mispriced(group: Group, assignment: Assignment, prices: PriceTable) -> Iterator[str]:
    arcs = build_arcs(group, assignment)
    members, topics = prices.members, prices.topics
    missing = [
        *(
            f"member {name!r} has no price"
            for name in arcs.member_ids
            if name not in prices.members
        ),
        *(f"topic {name!r} has no price" for name in arcs.topic_names if name not in prices.topics),
    ]
    if missing:
        yield from missing
        return
    moved = movement(group, assignment)
    if moved > arcs.least_movement:
        yield f"the movement is {moved}, but with these counts it can be {arcs.least_movement}"
    member = [members[name] for name in arcs.member_ids]
    topic = [topics[name] for name in arcs.topic_names]
    yield from _members_mispriced(arcs, member)
    yield from _arcs_mispriced(arcs, topic, member)


def _members_mispriced(arcs: Arcs, prices: list[Price]) -> Iterator[str]:
    """Hold each member's price between the cost of its last partition and of one more."""
    for name, load, price in zip(arcs.member_ids, arcs.loads.tolist(), prices, strict=True):
        if price > (2 * load + 1, 0):
            yield f"member {name!r}: price {price} is above {(2 * load + 1, 0)}, one more partition"
        if load and price < (2 * load - 1, 0):
            yield f"member {name!r}: price {price} is below {(2 * load - 1, 0)}, its last partition"


def _arcs_mispriced(arcs: Arcs, topic: list[Price], member: list[Price]) -> Iterator[str]:
    """Hold each topic's price at what its cheapest subscribers ask, those that have some of it."""
    columns = (arcs.tail, arcs.head, arcs.count, arcs.owned)
    for t, m, count, owned in zip(*(column.tolist() for column in columns), strict=True):
        squared, moved = member[m]
        one_more = (squared, moved + (count >= owned))
        name = f"topic {arcs.topic_names[t]!r} at member {arcs.member_ids[m]!r}"
        if topic[t] > one_more:
            yield f"{name}: price {topic[t]} is above {one_more}, one more partition there"
        last = (squared, moved + (count > owned))
        if count and topic[t] < last:
            yield f"{name}: price {topic[t]} is below {last}, the last partition there"
