"""The ruler: every measure of imbalance and of movement.

A measure of imbalance is a function of the loads alone; smaller is better, and all but
`leximax` are integers. Members that subscribe to no topic with partitions are idle:
they are left out of every load vector (see `participants`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reference.assignment import Assignment, assignees
from reference.group import Group, Topic
from reference.ownership import NOBODY, ownership
from reference.partitions import Partitions


class Measure(StrEnum):
    """Names of the imbalance measures that are integers."""

    SUM_OF_SQUARES = "sum_of_squares"
    MAKESPAN = "makespan"
    SPREAD = "spread"
    DEVIATION = "deviation"
    BALANCE_SCORE = "balance_score"


def participants(group: Group) -> tuple[str, ...]:
    """Ids of the members that subscribe to some topic with partitions, in group order."""
    return tuple(group.members[index].id for index in participant_indices(group))


def participant_indices(group: Group) -> tuple[int, ...]:
    """Return the ascending indices of the members that `participants` names."""
    with_partitions = frozenset(t.name for t in group.topics if t.partitions)
    return tuple(
        index
        for index, member in enumerate(group.members)
        if any(topic in with_partitions for topic in member.subscription)
    )


def idle_members(group: Group) -> tuple[str, ...]:
    """Ids of the members that no assignment can give anything, in group order."""
    active = set(participants(group))
    return tuple(member.id for member in group.members if member.id not in active)


def loads(group: Group, assignment: Assignment) -> dict[str, int]:
    """Load of every participant, in total weight (partitions, where weights are absent).

    Examples
    --------
    >>> from reference.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2, weights=(3, 4)),),
    ...     members=(
    ...         Member(id="a", subscription=("t",)),
    ...         Member(id="idle", subscription=("gone",)),
    ...     ),
    ... )
    >>> loads(group, Assignment({"a": [("t", 0), ("t", 1)]}))
    {'a': 7}
    """
    topics = group.topic_table()
    return {
        member: _weight_of(assignment[member], topics) if member in assignment else 0
        for member in participants(group)
    }


def sum_of_squares(loads: Iterable[int]) -> int:
    """Sum of squared loads; by it, fixed totals rank as by the variance of the loads.

    For equal weights its minimum minimises every other measure here too.

    References
    ----------
    Harvey, Ladner, Lovasz, Tamir. "Semi-matchings for bipartite graphs and load
    balancing". Journal of Algorithms 59(1), 2006.

    Examples
    --------
    >>> sum_of_squares([2, 1, 0])
    5
    """
    return sum(load * load for load in loads)


def makespan(loads: Iterable[int]) -> int:
    """Return the greatest load; 0 for no members."""
    return max(loads, default=0)


def spread(loads: Sequence[int]) -> int:
    """Greatest load minus least load; 0 for no members."""
    return max(loads) - min(loads) if loads else 0


def deviation(loads: Sequence[int]) -> int:
    """Sum of distances from the mean load, times the number of members.

    The factor keeps it an integer: the sum over members of ``|n * load - total|``.

    Examples
    --------
    >>> deviation([2, 1, 1])
    4
    """
    total = sum(loads)
    return sum(abs(len(loads) * load - total) for load in loads)


def balance_score(loads: Sequence[int]) -> int:
    """Kafka's pairwise sum ``|load_i - load_j|`` over all pairs of the loads given.

    ``AbstractStickyAssignor.getBalanceScore`` (Kafka 4.4.0) restricts it to some
    members; see `reference.peers.kafka_balance_score`.

    Examples
    --------
    >>> balance_score([3, 1, 1])
    4
    """
    ascending = sorted(loads)
    last = len(ascending) - 1
    return sum(load * (2 * rank - last) for rank, load in enumerate(ascending))


def leximax(loads: Iterable[int]) -> tuple[int, ...]:
    """Return the loads in descending order; the lexicographically least vector is the best.

    Examples
    --------
    >>> leximax([1, 3, 2])
    (3, 2, 1)
    """
    return tuple(sorted(loads, reverse=True))


MEASURES: dict[Measure, Callable[[Sequence[int]], int]] = {
    Measure.SUM_OF_SQUARES: sum_of_squares,
    Measure.MAKESPAN: makespan,
    Measure.SPREAD: spread,
    Measure.DEVIATION: deviation,
    Measure.BALANCE_SCORE: balance_score,
}


def imbalance(
    group: Group, assignment: Assignment, *, measure: Measure = Measure.SUM_OF_SQUARES
) -> int:
    """Measure the imbalance of an assignment.

    Examples
    --------
    >>> from reference.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> assignment = Assignment({"a": [("t", 0), ("t", 1)]})
    >>> imbalance(group, assignment), imbalance(group, assignment, measure=Measure.SPREAD)
    (4, 2)
    """
    return MEASURES[Measure(measure)](tuple(loads(group, assignment).values()))


@dataclass(frozen=True, slots=True)
class MovementCount:
    """Where the partitions of a group went, each figure in partitions and in weight.

    Parameters
    ----------
    kept
        Partitions whose owner still has them.
    moved
        Partitions that have an owner and are assigned to somebody else.
    placed
        New or orphaned partitions (no owner before) that are now assigned.
    unassigned
        Partitions that have an owner and are now assigned to nobody.
    kept_weight, moved_weight, placed_weight, unassigned_weight
        The same, weighed.
    """

    kept: int
    moved: int
    placed: int
    unassigned: int
    kept_weight: int
    moved_weight: int
    placed_weight: int
    unassigned_weight: int


def movement_count(group: Group, assignment: Assignment) -> MovementCount:
    """Compare an assignment with the ownership before it, partition by partition."""
    owners = ownership(group).owners
    now = assignees(group, assignment)
    counts = [0, 0, 0, 0]
    weights = [0, 0, 0, 0]
    for topic in group.topics:
        before, after = owners[topic.name], now[topic.name]
        owned, assigned = before != NOBODY, after != NOBODY
        masks = (
            owned & (before == after),
            owned & assigned & (before != after),
            ~owned & assigned,
            owned & ~assigned,
        )
        for kind, mask in enumerate(masks):
            counts[kind] += int(np.count_nonzero(mask))
            weights[kind] += _masked_weight(topic, mask)
    return MovementCount(*counts, *weights)


def movement(group: Group, assignment: Assignment) -> int:
    """Count the partitions that have an owner and are assigned to somebody else.

    Examples
    --------
    >>> from reference.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> movement(group, Assignment({"a": [("t", 0)], "b": [("t", 1)]}))
    1
    """
    return movement_count(group, assignment).moved


def _masked_weight(topic: Topic, mask: NDArray[np.bool_]) -> int:
    if topic.weights is None:
        return int(np.count_nonzero(mask))
    return sum(topic.weights[number] for number in np.flatnonzero(mask).tolist())


def _weight_of(partitions: Partitions, topics: dict[str, Topic]) -> int:
    tables = [topics.get(name) for name in partitions.topics]
    if all(topic is None or topic.weights is None for topic in tables):
        return len(partitions)
    total = 0
    pairs = zip(partitions.codes.tolist(), partitions.numbers.tolist(), strict=True)
    for code, number in pairs:
        topic = tables[code]
        # A partition beyond the topic's count has no weight to look up: violations() tells.
        inside = topic is not None and 0 <= number < topic.partitions
        total += topic.weight(number) if topic is not None and inside else 1
    return total
