"""Check certificates of optimality and of infeasibility, without a solver.

For equal weights both levels are one minimum cost flow with convex costs, where a cost is
a pair (squared load, movement), compared lexicographically. The flow is optimal if and only
if every topic and every member has a price, a pair too, that satisfies complementary
slackness [1]_. The prices are the certificate; `certificate_errors` reads the arcs once. If no
prices exist, a chain of transfers improves the assignment: see
`kassay.solver.improvement.transfer_chains`.

Prices prove that counts per topic and member are optimal. That the assignment keeps as many
owned partitions as its counts allow is checked separately.

For weighted groups there are no such prices. The certificate then names the origin of each
bound, and `Certificate.trusted` lists the claims that cannot be checked.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterator, Sequence

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, movement
from kassay.solver.certificate.certificate import Certificate, Origin, Price, PriceTable
from kassay.solver.certificate.level_claims import evidence_error, value_of, wrong_claims
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import check_levels, valid_placement, violated
from kassay.solver.improvement.residual_network import node_prices
from kassay.solver.improvement.transfer_chains import Transfer, apply_chain, improving_chain
from kassay.solver.objective import Imbalance, Level, Movement, MovementCost
from kassay.solver.problem import Ints, build_problem
from kassay.solver.subscription_network import SubscriptionNetwork, build_network


def prices_prove(group: Group, levels: Sequence[Level]) -> bool:
    """Return whether node prices can prove assignments of a group optimal on given levels.

    Prices prove the fewest moves among the least majorised loads. Strictly convex measures
    are minimal only there; for the other measures fewer moves may suffice elsewhere.
    """
    if not group.uniform_weight or any(level.tolerance for level in levels):
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


def price_counts(network: SubscriptionNetwork, counts: Ints, *, moved: int) -> PriceTable | None:
    """Return node prices that prove the partition counts per topic and member optimal.

    Return None if the counts are not optimal.
    """
    prices = node_prices(network, counts)
    if prices.chain is not None or moved > network.min_movement(counts):
        return None
    return PriceTable(
        members=dict(zip(network.member_ids, prices.pairs(prices.members), strict=True)),
        topics=dict(zip(network.topic_names, prices.pairs(prices.topics), strict=True)),
    )


def certificate_errors(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    """Check a certificate without a solver, and yield a message per error.

    Without errors, all claims are proven except those in `Certificate.trusted`: their bounds are
    only compared with the value.

    Parameters
    ----------
    certificate
        Claims and evidence, from an untrusted source.

    Yields
    ------
    str
        One failed condition, with names and numbers.

    Raises
    ------
    InputError
        If a constraint or level refers to a member, topic or partition that the group does not
        have.
    """
    check_constraints(group, certificate.constraints)
    check_levels(group, [claim.level for claim in certificate.claims])
    invalid = list(_invalid_assignments(group, assignment, certificate))
    if invalid:
        yield from invalid
        return
    yield from wrong_claims(group, assignment, certificate.claims, certificate.constraints)
    if certificate.conflict is not None:
        yield "the certificate has an assignment and a conflict"
    if certificate.chain:
        yield from _chain_errors(group, assignment, certificate)
    if certificate.prices is not None:
        yield from _price_errors(group, assignment, certificate.prices)
    if certificate.trusted and certificate.is_optimal:
        for transfer in certified_improvement(group, assignment, certificate)[:1]:
            yield f"the bounds are wrong: a chain improves the assignment, first {transfer}"
    priced = [claim for claim in certificate.claims if claim.origin is Origin.PRICES]
    if priced:
        # Prices prove the first levels; bounds of further levels have other origins.
        is_prefix = certificate.claims[: len(priced)] == tuple(priced)
        if certificate.prices is None:
            yield "bounds refer to node prices, but the certificate contains none"
        elif not is_prefix or not prices_prove(group, [claim.level for claim in priced]):
            yield "node prices cannot prove these levels optimal for this group"


def conflict_errors(group: Group, certificate: Certificate) -> Iterator[str]:
    """Check a certificate of infeasible constraints, and yield a message per error.

    Without errors, infeasibility is proven. A conflict with an origin that is not checked is only
    compared with the constraints.

    Yields
    ------
    str
        One failed condition.

    Raises
    ------
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.
    """
    check_constraints(group, certificate.constraints)
    conflict = certificate.conflict
    if conflict is None:
        yield "the certificate has no conflict"
        return
    rules = (*group_constraints(group), *certificate.constraints)
    for rule in conflict.constraints:
        if rule not in rules:
            yield f"the constraints do not include that {rule}"
    if conflict.origin in {Origin.PRICES, Origin.COUNTING}:
        yield f"the conflict is not proven: a conflict cannot have the origin {conflict.origin}"
    elif set(conflict.constraints) <= set(rules):
        error = evidence_error(build_problem(group), conflict.constraints, (), conflict)
        if error is not None:
            yield f"the conflict is not proven: {error}"


def _invalid_assignments(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    """Yield the violations of the assignment and of each level's best known assignment.

    Constraints are only checked if all assignments are valid.
    """
    named = [("the assignment", assignment)] + [
        (f"the best known assignment on {claim.level.name}", claim.best)
        for claim in certificate.claims
        if claim.best is not None
    ]
    invalid = [
        f"{name} is not valid: {violation}"
        for name, one in named
        for violation in violations(group, one)
    ]
    yield from invalid
    if not invalid:
        for name, one in named:
            for violation in violated_constraints(group, one, certificate.constraints):
                yield f"{name} {violation}"


def violated_constraints(
    group: Group, assignment: Assignment, constraints: Sequence[Constraint]
) -> Iterator[str]:
    """Describe each constraint and each member capacity that an assignment violates."""
    problem = build_problem(group)
    placement = problem.to_placement(assignment)
    if placement is not None:
        rules = (*group_constraints(group), *constraints)
        for rule in violated(problem, rules, placement):
            yield f"violates a constraint: {rule}"


def certified_improvement(
    group: Group, assignment: Assignment, certificate: Certificate
) -> tuple[Transfer, ...]:
    """Return a chain of transfers that improves the certified levels of an assignment.

    The chain is empty if node prices cannot prove these levels.
    """
    if not prices_prove(group, [claim.level for claim in certificate.claims]):
        return ()
    chain = improving_chain(group, assignment)
    return chain if _improves(group, assignment, certificate, chain) else ()


def _improves(
    group: Group, assignment: Assignment, certificate: Certificate, chain: tuple[Transfer, ...]
) -> bool:
    """Return whether a chain of transfers improves the levels and violates no constraint."""
    better = apply_chain(group, assignment, chain)
    levels = [claim.level for claim in certificate.claims]
    return not any(violated_constraints(group, better, certificate.constraints)) and [
        value_of(group, better, level) for level in levels
    ] < [value_of(group, assignment, level) for level in levels]


def _chain_errors(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    try:
        better = apply_chain(group, assignment, certificate.chain)
    except UsageError as error:
        yield f"the chain cannot be applied: {error}"
        return
    violation = next(violations(group, better), None)
    if violation is not None:
        yield f"the chain leads to an assignment that is not valid: {violation}"
    elif not _improves(group, assignment, certificate, certificate.chain):
        yield "the chain improves nothing"


def _price_errors(group: Group, assignment: Assignment, prices: PriceTable) -> Iterator[str]:
    problem = build_problem(group)
    network = build_network(problem)
    counts = network.counts(valid_placement(problem, assignment))
    missing = [
        f"{kind} {name!r} has no price"
        for kind, names, table in (
            ("member", network.member_ids, prices.members),
            ("topic", network.topic_names, prices.topics),
        )
        for name in names
        if name not in table
    ]
    if missing:
        yield from missing
        return
    moved, least = movement(group, assignment), network.min_movement(counts)
    if moved > least:
        yield f"the movement is {moved}, but with these counts it can be {least}"
    members = [prices.members[name] for name in network.member_ids]
    topics = [prices.topics[name] for name in network.topic_names]
    yield from _member_price_errors(network, network.loads(counts), members)
    yield from _topic_price_errors(network, counts, topics, members)


def _member_price_errors(
    network: SubscriptionNetwork, loads: Ints, prices: list[Price]
) -> Iterator[str]:
    """Yield a message per member price that violates complementary slackness.

    The price of a member must lie between the costs of its last and of one more partition.
    """
    for name, load, price in zip(network.member_ids, loads.tolist(), prices, strict=True):
        if price > (2 * load + 1, 0):
            yield (
                f"member {name!r}: price {price} is above the cost "
                f"{(2 * load + 1, 0)} of one more partition"
            )
        if load and price < (2 * load - 1, 0):
            yield (
                f"member {name!r}: price {price} is below the cost "
                f"{(2 * load - 1, 0)} of its last partition"
            )


def _topic_price_errors(
    network: SubscriptionNetwork, counts: Ints, topics: list[Price], members: list[Price]
) -> Iterator[str]:
    """Yield a message per topic price that violates complementary slackness.

    The price of a topic must be the lowest price at its members, and the price at its assignees.
    """
    columns = (network.tail, network.head, counts, network.owned)
    for t, m, count, owned in zip(*(column.tolist() for column in columns), strict=True):
        squared, moved = members[m]
        price = topics[t]
        one_more = (squared, moved + (count >= owned))
        name = f"topic {network.topic_names[t]!r} at member {network.member_ids[m]!r}"
        if price > one_more:
            yield f"{name}: price {price} is above the cost {one_more} of one more partition"
        last = (squared, moved + (count > owned))
        if count and price < last:
            yield f"{name}: price {price} is below the cost {last} of the last partition"
