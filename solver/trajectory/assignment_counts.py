"""Convert between assignments and counts per class of partitions and member."""

from collections.abc import Mapping, Sequence

import numpy as np

from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.errors import InternalError
from kassay.reference.model.topic_partitions import Column
from kassay.solver.certificate.rebalance_sequence import Block, Mask, Stream
from kassay.solver.problem import Ints, Placement, Problem, first_partitions


def assignments_of(stream: Stream, counts: Sequence[Ints]) -> tuple[Assignment, ...]:
    """Choose partitions for the counts, with the fewest moves between rebalances."""
    problems = [one.problem for one in stream.rebalances]
    placements = [np.full(one.partition_count, NO_OWNER, dtype=np.int32) for one in problems]
    first = [first_partitions(problem) for problem in problems]
    for row, blocks in enumerate(stream.blocks):
        current = _owners(stream, blocks, first[0])
        for at, placement in enumerate(placements):
            rebalance = stream.rebalances[at]
            history = stream.consumer_set[row, at]
            if history == len(rebalance.subscribed) - 1:
                current = np.full(len(current), NO_OWNER, dtype=np.int64)
                continue
            current = _next_members(current, counts[at][row], rebalance.subscribed[history])
            own = np.zeros(len(stream.members), dtype=np.int32)
            own[member_numbers(stream, problems[at])] = np.arange(problems[at].member_count)
            _write(placement, blocks, first[at], own[current])
    pairs = zip(problems, placements, strict=True)
    return tuple(problem.to_assignment(placement) for problem, placement in pairs)


def counts_of(stream: Stream, at: int, placement: Placement) -> Ints:
    """Return the counts per class and member of a placement at one rebalance."""
    problem = stream.rebalances[at].problem
    number, first = member_numbers(stream, problem), first_partitions(problem)
    counts = np.zeros(stream.start.shape, dtype=np.int64)
    for row in np.flatnonzero(stream.assigned(at)).tolist():
        for topic, low, end in stream.blocks[row]:
            members = number[placement[first[topic] + low : first[topic] + end]]
            counts[row] += np.bincount(members, minlength=len(stream.members))
    return counts


def member_numbers(stream: Stream, problem: Problem) -> Ints:
    """Return the number in the stream of each member of a problem."""
    return np.array([stream.members[name] for name in problem.member_index], dtype=np.int64)


def _owners(stream: Stream, blocks: Sequence[Block], first: Mapping[str, int]) -> Ints:
    """Return the owner of each partition of a class at the start."""
    problem = stream.rebalances[0].problem
    number = np.append(member_numbers(stream, problem), NO_OWNER)
    owners = []
    for topic, low, end in blocks:
        known = np.full(end - low, NO_OWNER, dtype=np.int64)
        if topic in first:
            own = problem.owner[first[topic] : first[topic] + end][low:]
            known[: len(own)] = own
        owners.append(number[known])
    return np.concatenate(owners)


def _next_members(current: Ints, counts: Ints, subscribed: Mask) -> Ints:
    """Return the next member of each partition; as many as possible keep their owner."""
    if int(counts.sum()) != len(current):
        raise InternalError("the counts of a class differ from its partitions")
    order = np.argsort(current, kind="stable")
    members = current[order]
    rank = np.arange(len(order)) - np.searchsorted(members, members)
    kept = (members != NO_OWNER) & subscribed[members] & (rank < counts[members])
    result = np.full(len(current), NO_OWNER, dtype=np.int64)
    result[order[kept]] = members[kept]
    rest = counts - np.bincount(members[kept], minlength=len(counts))
    result[result == NO_OWNER] = np.repeat(np.arange(len(counts)), rest)
    return result


def _write(
    placement: Placement, blocks: Sequence[Block], first: Mapping[str, int], members: Column
) -> None:
    start = 0
    for topic, low, end in blocks:
        size = end - low
        placement[first[topic] + low : first[topic] + end] = members[start : start + size]
        start += size
