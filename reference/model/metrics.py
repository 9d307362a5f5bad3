"""Imbalance and movement metrics.

Imbalance measures are functions of the loads alone; smaller is better, and all except
`leximax` are integers. Members that subscribe to no topic with partitions are idle and
not part of any load vector (see `participants`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from kassay.reference.model.assignment import Assignment, assignee_column
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.result_cache import cached, cached_per_group
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions


class Measure(StrEnum):
    """Measure of the imbalance of an assignment.

    `MEASURES` contains the measures with integer values: all except ``leximax``.
    """

    SUM_OF_SQUARES = "sum_of_squares"
    MAKESPAN = "makespan"
    SPREAD = "spread"
    DEVIATION = "deviation"
    BALANCE_SCORE = "balance_score"
    LEXIMAX = "leximax"


@cached
def participants(group: Group) -> tuple[str, ...]:
    """Return the ids of the members that subscribe to a topic with partitions, in group order."""
    return tuple(group.members[index].id for index in participant_indices(group))


@cached
def participant_indices(group: Group) -> tuple[int, ...]:
    """Return the indices of the members that subscribe to a topic with partitions."""
    with_partitions = frozenset(t.name for t in group.topics if t.partitions)
    return tuple(
        index
        for index, member in enumerate(group.members)
        if not with_partitions.isdisjoint(member.subscription)
    )


def loads(group: Group, assignment: Assignment) -> dict[str, int]:
    """Return the load of each participant: total weight, or number of partitions.

    The load is the number of partitions if no topic has weights. `participants` are the members
    that subscribe to a topic with partitions.
    """
    return dict(zip(participants(group), load_vector(group, assignment), strict=True))


@cached_per_group
def load_vector(group: Group, assignment: Assignment) -> tuple[int, ...]:
    """Return the loads of the `participants` in group order."""
    topics = group.topic_table()
    lists = [assignment.get(member, NO_PARTITIONS) for member in participants(group)]
    if all(topic.weights is None for topic in group.topics):
        return tuple(map(len, lists))
    return tuple(_weight_of(partitions, topics) for partitions in lists)


def sum_of_squares(loads: Iterable[int]) -> int:
    """Return the sum of squared loads, which ranks assignments as the variance does.

    With equal weights, its minimum minimises every other imbalance measure (Harvey, Ladner,
    Lovasz, Tamir. "Semi-matchings for bipartite graphs and load balancing". Journal of
    Algorithms 59(1), 2006).
    """
    return sum(load * load for load in loads)


def makespan(loads: Iterable[int]) -> int:
    """Return the maximum load, or 0 if no load is given."""
    return max(loads, default=0)


def spread(loads: Sequence[int]) -> int:
    """Return maximum load minus minimum load, or 0 if no load is given."""
    return max(loads) - min(loads) if loads else 0


def deviation(loads: Sequence[int]) -> int:
    """Return the sum of absolute differences to the mean load, times the number of members.

    The factor makes it an integer: the sum over members of ``|n * load - total|``.
    """
    total = sum(loads)
    return sum(abs(len(loads) * load - total) for load in loads)


def balance_score(loads: Sequence[int]) -> int:
    """Return the sum of ``|load_i - load_j|`` over all pairs of loads.

    Kafka's own score counts only some members, see
    `kassay.reference.model.external_metrics.kafka_balance_score`.
    """
    ascending = sorted(loads)
    last = len(ascending) - 1
    return sum(load * (2 * rank - last) for rank, load in enumerate(ascending))


def leximax(loads: Iterable[int]) -> tuple[int, ...]:
    """Return the loads in descending order. Lexicographically smaller vectors are better."""
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
    """Return the imbalance of an assignment."""
    return measures(group, assignment)[Measure(measure)]


@cached_per_group
def measures(group: Group, assignment: Assignment) -> Mapping[Measure, int]:
    """Return the imbalance of an assignment by each of the `MEASURES`."""
    vector = load_vector(group, assignment)
    return MappingProxyType({name: value(vector) for name, value in MEASURES.items()})


@dataclass(frozen=True, slots=True)
class MovementCount:
    """Numbers and weights of the kept, moved, placed and unassigned partitions.

    Kept partitions stay with their current owner, moved ones get another member, placed ones
    have no current owner. Unassigned ones have a current owner, but no assignee.
    """

    kept: int
    moved: int
    placed: int
    unassigned: int
    kept_weight: int
    moved_weight: int
    placed_weight: int
    unassigned_weight: int


@cached_per_group
def movement_count(group: Group, assignment: Assignment) -> MovementCount:
    """Count the kept, moved, placed and unassigned partitions of an assignment."""
    before, after = ownership(group).column, assignee_column(group, assignment)
    owned, assigned, same = before != NO_OWNER, after != NO_OWNER, before == after
    masks = (owned & same, owned & assigned & ~same, ~owned & assigned, owned & ~assigned)
    counts = [int(np.count_nonzero(mask)) for mask in masks]
    if all(topic.weights is None for topic in group.topics):
        return MovementCount(*counts, *counts)
    weights = [topic.weight(number) for topic in group.topics for number in range(topic.partitions)]
    return MovementCount(
        *counts, *(sum(weights[place] for place in np.flatnonzero(mask)) for mask in masks)
    )


def movement(group: Group, assignment: Assignment) -> int:
    """Count the partitions that are assigned to another member than their current owner."""
    return movement_count(group, assignment).moved


def _weight_of(partitions: Partitions, topics: Mapping[str, Topic]) -> int:
    tables = [topics.get(name) for name in partitions.topics]
    if all(topic is None or topic.weights is None for topic in tables):
        return len(partitions)
    total = 0
    pairs = zip(partitions.codes.tolist(), partitions.numbers.tolist(), strict=True)
    for code, number in pairs:
        topic = tables[code]
        # A partition that does not exist has no weight; violations() reports it.
        inside = topic is not None and 0 <= number < topic.partitions
        total += topic.weight(number) if topic is not None and inside else 1
    return total
