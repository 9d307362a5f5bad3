"""Check node prices, which prove that an assignment of partitions with equal weights is optimal.

For equal weights both levels are one minimum cost flow with convex costs, where a cost is
a pair (squared load, movement), compared lexicographically. The flow is optimal if and only
if every topic and every member has a price, a pair too, that satisfies complementary
slackness [1]_. The check reads each arc once.

Prices prove that counts per topic and member are optimal. That the assignment keeps as many
owned partitions as its counts allow is checked separately.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterator

from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.solver.network.residual_network import Price, PriceTable
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, build_problem


def node_price_errors(group: Group, assignment: Assignment, prices: PriceTable) -> Iterator[str]:
    """Yield a message per condition that node prices and an assignment violate."""
    problem = build_problem(group)
    network = build_network(problem)
    counts = network.counts(problem.valid_placement(assignment))
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
