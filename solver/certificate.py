"""Proof that an assignment is optimal, which anybody can check without a solver.

For equal weights both levels are one minimum cost flow with convex costs, where a cost is
a pair (squared load, movement) that is compared lexicographically. The flow is optimal if
and only if every topic and every member can be given a price, a pair too, such that no
arc is worth more than it costs: complementary slackness [1]_. The prices are the
certificate; `objections` reads the arcs once. Where no prices exist, there is a chain of
transfers that improves the assignment: see `solver.chains`.

Prices speak of counts: partitions of one topic are alike to them but for how many of a
member's partitions it owned. That an assignment keeps as many owned partitions as its
counts allow is checked besides.

Only `reference` is used here: no solver, no library of graphs.

References
----------
.. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin. "Network Flows". Prentice Hall, 1993,
   chapters 9 and 14.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reference.assignment import Assignment, violations
from reference.fields import as_array, as_integer, as_object, no_unknown_keys
from reference.group import Group, InvalidGroupError
from reference.metrics import movement, sum_of_squares
from solver.residual import Arcs, build_arcs, lower_prices, require_valid

Price = tuple[int, int]
VERSION = 1


@dataclass(frozen=True, slots=True)
class Certificate:
    """Prices that prove an assignment optimal on imbalance, then movement.

    Parameters
    ----------
    imbalance
        Sum of squared loads, in partitions squared, that is proven least.
    movement
        Partitions moved, proven least among assignments of that imbalance.
    members
        Price of one more partition at each member that consumes anything.
    topics
        Price of one partition of each topic that somebody consumes.
    """

    imbalance: int
    movement: int
    members: Mapping[str, Price]
    topics: Mapping[str, Price]


def certify(group: Group, assignment: Assignment) -> Certificate | None:
    """Find prices that prove an assignment optimal; None if it is not optimal.

    Weights are ignored: an assignment is judged by its counts.

    Raises
    ------
    ValueError
        If the assignment is not valid for the group.

    Examples
    --------
    >>> from reference.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> even = Assignment({"a": [("t", 0)], "b": [("t", 1)]})
    >>> certificate = certify(group, even)
    >>> certificate.members, list(objections(group, even, certificate))
    ({'a': (3, 0), 'b': (3, 0)}, [])
    >>> certify(group, Assignment({"a": [("t", 0), ("t", 1)]}))
    """
    require_valid(group, assignment)
    arcs = build_arcs(group, assignment)
    return certificate_for(arcs, moved=movement(group, assignment))


def certificate_for(arcs: Arcs, *, moved: int) -> Certificate | None:
    """Price the counts of an assignment that moves ``moved`` partitions; None if not optimal."""
    result = lower_prices(arcs)
    if result.chain is not None or moved > arcs.least_movement:
        return None
    return Certificate(
        imbalance=sum_of_squares(arcs.loads.tolist()),
        movement=moved,
        members=dict(zip(arcs.member_ids, result.pairs(result.members), strict=True)),
        topics=dict(zip(arcs.topic_names, result.pairs(result.topics), strict=True)),
    )


def objections(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    """Say what keeps a certificate from proving an assignment optimal; nothing if it does.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        What is claimed to be optimal.
    certificate
        The proof, from anybody.

    Yields
    ------
    str
        One broken condition, with names and numbers.
    """
    broken = [
        f"the assignment is not valid: {violation}" for violation in violations(group, assignment)
    ]
    if broken:
        yield from broken
        return
    arcs = build_arcs(group, assignment)
    yield from _wrong_values(group, assignment, arcs, certificate)
    missing = [
        *(
            f"member {name!r} has no price"
            for name in arcs.member_ids
            if name not in certificate.members
        ),
        *(
            f"topic {name!r} has no price"
            for name in arcs.topic_names
            if name not in certificate.topics
        ),
    ]
    if missing:
        yield from missing
        return
    member = [certificate.members[name] for name in arcs.member_ids]
    topic = [certificate.topics[name] for name in arcs.topic_names]
    yield from _members_mispriced(arcs, member)
    yield from _arcs_mispriced(arcs, topic, member)


def certificate_document(certificate: Certificate) -> dict[str, object]:
    """Return a certificate as a JSON document."""
    return {
        "version": VERSION,
        "imbalance": certificate.imbalance,
        "movement": certificate.movement,
        "members": {name: list(price) for name, price in certificate.members.items()},
        "topics": {name: list(price) for name, price in certificate.topics.items()},
    }


def parse_certificate(document: object, *, where: str = "certificate") -> Certificate:
    """Read a certificate from its JSON document.

    Raises
    ------
    InvalidGroupError
        If the document breaks the format.

    Examples
    --------
    >>> parse_certificate({"version": 2})
    Traceback (most recent call last):
    reference.group.InvalidGroupError: certificate: version must be 1, got 2
    """
    table = as_object(document, where)
    if table.get("version") != VERSION:
        raise InvalidGroupError(f"{where}: version must be {VERSION}, got {table.get('version')!r}")
    no_unknown_keys(table, ("version", "imbalance", "movement", "members", "topics"), where)
    return Certificate(
        imbalance=as_integer(table.get("imbalance"), f"{where}.imbalance"),
        movement=as_integer(table.get("movement"), f"{where}.movement"),
        members=_prices(table.get("members"), f"{where}.members"),
        topics=_prices(table.get("topics"), f"{where}.topics"),
    )


def _prices(value: object, where: str) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for name, price in as_object(value, where).items():
        pair = [as_integer(part, f"{where}[{name!r}]") for part in as_array(price, where)]
        if len(pair) != 2:
            raise InvalidGroupError(f"{where}[{name!r}]: expected a pair, got {price!r}")
        prices[name] = (pair[0], pair[1])
    return prices


def _wrong_values(
    group: Group, assignment: Assignment, arcs: Arcs, certificate: Certificate
) -> Iterator[str]:
    squares = sum_of_squares(arcs.loads.tolist())
    if squares != certificate.imbalance:
        yield f"the sum of squared loads is {squares}, not {certificate.imbalance}"
    moved = movement(group, assignment)
    if moved != certificate.movement:
        yield f"the movement is {moved}, not {certificate.movement}"
    if moved > arcs.least_movement:
        yield f"the movement is {moved}, but with these counts it can be {arcs.least_movement}"


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
