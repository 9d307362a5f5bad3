"""Merge each set of colocated partitions of a group into one partition.

The merged group is smaller and needs no `Colocated` constraint, which few searches support. Each
assignment of the merged group is an assignment of the original group with equal loads.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from kassay.reference.model.group import MAX_WEIGHT, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.solver import constraints, evaluation, objective
from kassay.solver.certificate.certificate import LevelClaim, stable_claims
from kassay.solver.problem import Ints, Problem, build_problem


@dataclass(frozen=True, slots=True)
class MergedProblem:
    """Problem with one partition per set of colocated partitions.

    ``rules`` are constraints of the merged group. With ``lacks_rules``, some are missing.
    """

    problem: Problem
    original: Problem
    rules: tuple[constraints.Constraint, ...]
    lacks_rules: bool
    merged_into: Ints  # merged partition, per original partition
    set_size: int | None  # original partitions per merged one; None if the sets differ in size
    has_equal_owners: bool
    """Whether each set has one owner or none, so that its partitions move together."""

    def levels(self, levels: Sequence[objective.Level]) -> tuple[objective.Level, ...]:
        """Convert levels for the merged group; stop at the first level without equivalent."""
        found: list[objective.Level] = []
        for level in levels:
            match level:
                case objective.Imbalance() | objective.HostImbalance() | objective.MembersUsed():
                    found.append(level)
                case objective.Movement(tolerance=tolerance) if tolerance == objective.EXACT:
                    found.append(self._movement(level))
                case _:
                    break
        return tuple(found)

    def _movement(self, level: objective.Movement) -> objective.Movement:
        """Convert the movement level for the merged group.

        If all sets have equal sizes, each move still costs 1, and `bounds` multiplies bounds.
        """
        if not self.has_equal_owners:
            return objective.Movement()
        is_weight = level.cost is objective.MovementCost.WEIGHT and self.original.profiles is None
        if is_weight or self._multiplies(level):
            return level
        costs = [0] * self.problem.partition_count
        cost_of = evaluation.movement_costs(self.original, level).tolist()
        for merged, cost in zip(self.merged_into.tolist(), cost_of, strict=True):
            costs[merged] += cost
        return objective.Movement(tuple(zip(self.problem.partition_index, costs, strict=True)))

    def _multiplies(self, level: objective.Level) -> bool:
        return (
            isinstance(level, objective.Movement)
            and level.cost is objective.MovementCost.COUNT
            and self.set_size is not None
        )

    def bounds(self, levels: Sequence[objective.Level], claims: Sequence[LevelClaim]) -> list[int]:
        """Convert bounds for the merged group to bounds for the original group.

        With different owners, the moves differ, so that bounds on moves and later levels are not
        valid. If constraints are left out, only the bound on the first level is valid, otherwise
        those of `stable_claims`.
        """
        found: list[int] = []
        valid = claims[:1] if self.lacks_rules else stable_claims(self.problem, claims)
        for level, claim in zip(levels, valid, strict=False):
            is_movement = isinstance(level, objective.Movement)
            if is_movement and not self.has_equal_owners:
                break
            size = self.set_size if is_movement and self._multiplies(level) else None
            found.append(claim.bound * (size or 1))
        return found


def merge_colocated(
    problem: Problem, rules: Sequence[constraints.Constraint]
) -> MergedProblem | None:
    """Merge the partitions that `Colocated` constraints assign to one member.

    Return None without such sets, if a set has no common consumer, if a member could not receive
    any set, if colocated partitions must be separated, or if a sum of weights is too large.
    """
    if not any(isinstance(rule, constraints.Colocated) for rule in rules):
        return None
    by_topics: dict[tuple[int, ...], list[list[int]]] = {}
    for partitions in map(list, evaluation.colocated_sets(problem, rules)):
        by_topics.setdefault(tuple(problem.topic[partitions].tolist()), []).append(partitions)
    consumers = [_common_consumers(problem, topics) for topics in by_topics]
    if not all(consumers) or len(set(chain.from_iterable(consumers))) < problem.member_count:
        return None
    sets = [*chain.from_iterable(by_topics.values())]
    if max(sum(problem.weight[partitions].tolist()) for partitions in sets) > MAX_WEIGHT:
        return None
    merged = build_problem(_merged_group(problem, [*by_topics.values()], consumers))
    sizes = [*map(len, sets)]
    merged_into = np.zeros(problem.partition_count, dtype=np.int64)
    merged_into[np.concatenate(sets)] = np.repeat(np.arange(len(sets)), sizes)
    apart = (
        evaluation.separated_partitions(problem, one)
        for one in rules
        if isinstance(one, constraints.Separated)
    )
    if any(len(np.unique(merged_into[each])) < len(each) for each in apart):
        return None
    found = MergedProblem(
        merged,
        problem,
        rules=(),
        lacks_rules=False,
        merged_into=merged_into,
        set_size=sizes[0] if len(set(sizes)) == 1 else None,
        has_equal_owners=np.array_equal(merged.owner[merged_into], problem.owner),
    )
    others = [rule for rule in rules if not isinstance(rule, constraints.Colocated)]
    merged_rules = [_merged_rules(rule, found) for rule in others]
    return replace(
        found,
        rules=tuple(chain.from_iterable(each or () for each in merged_rules)),
        lacks_rules=None in merged_rules,
    )


def _common_consumers(problem: Problem, topics: Sequence[int]) -> list[int]:
    table = problem.may_consume[problem.consumer_set_of_topic[[*topics]]]
    consumers: list[int] = np.flatnonzero(table.all(axis=0)).tolist()
    return consumers


def _merged_group(
    problem: Problem, topics: Sequence[Sequence[list[int]]], consumers: Sequence[Sequence[int]]
) -> Group:
    """Build the merged group; a merged partition gets its most frequent owner."""
    subscriptions: list[list[str]] = [[] for _ in range(problem.member_count)]
    owned: list[list[tuple[str, int]]] = [[] for _ in range(problem.member_count)]
    for topic, (sets, members) in enumerate(zip(topics, consumers, strict=True)):
        for member in members:
            subscriptions[member].append(str(topic))
        for number, partitions in enumerate(sets):
            ((owner, _),) = Counter(problem.owner[partitions].tolist()).most_common(1)
            if owner in members:
                owned[owner].append((str(topic), number))
    members_of_group = (problem.group.members[index] for index in problem.members)
    return Group(
        topics=tuple(_merged_topic(problem, str(topic), sets) for topic, sets in enumerate(topics)),
        members=tuple(
            Member(
                id=member.id,
                subscription=tuple(subscription),
                owned=Partitions.of(held),
                generation=1,
                capacity=member.capacity,
                speed=member.speed,
                client=member.client,
            )
            for member, subscription, held in zip(
                members_of_group, subscriptions, owned, strict=True
            )
        ),
        windows=problem.group.windows,
    )


def _merged_topic(problem: Problem, name: str, sets: Sequence[list[int]]) -> Topic:
    if problem.profiles is None:
        weights = tuple(sum(problem.weight[partitions].tolist()) for partitions in sets)
        return Topic(name, len(sets), weights=weights)
    factors = problem.group.window_factors
    rows = ((problem.profiles[partitions].sum(axis=0) // factors).tolist() for partitions in sets)
    return Topic(name, len(sets), profiles=tuple(map(tuple, rows)))


def _merged_rules(
    rule: constraints.Constraint, merged: MergedProblem
) -> list[constraints.Constraint] | None:
    """Convert a constraint for the merged group; return None if that is impossible."""
    names, original, size = [*merged.problem.partition_index], merged.original, merged.set_size

    def merged_names(topic: str, number: int | None) -> list[TopicPartition]:
        partitions = evaluation.topic_partitions(original, topic, number)
        return [names[at] for at in merged.merged_into[partitions].tolist()]

    found: list[constraints.Constraint] | None = None
    match rule:
        case constraints.Capacity():
            found = [rule]
        case constraints.MaxPartitions(limit) if size is not None:
            found = [replace(rule, limit=limit // size)]
        case constraints.MaxMoves(limit) if size is not None and merged.has_equal_owners:
            found = [replace(rule, limit=limit // size)]
        case constraints.Pinned(topic, number, member):
            found = [constraints.Pinned(*name, member) for name in merged_names(topic, number)]
        case constraints.Forbidden(member, topic, number):
            found = [constraints.Forbidden(member, *name) for name in merged_names(topic, number)]
        case constraints.Separated():
            apart = merged.merged_into[evaluation.separated_partitions(original, rule)]
            found = [constraints.Separated(tuple(names[at] for at in apart.tolist()))]
    return found
