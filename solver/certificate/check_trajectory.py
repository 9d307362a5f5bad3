"""Check the moves of a trajectory and the bound on them, without a solver."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.reference.model.ownership import rejoin
from kassay.solver.certificate.trajectory_bound import MAX_PRICE, price_bound
from kassay.solver.certificate.trajectory_certificate import TrajectoryCertificate
from kassay.solver.certificate.trajectory_model import LoadRange, Stream, build_stream
from kassay.solver.problem import Ints


def trajectory_errors(
    groups: Sequence[Group],
    assignments: Sequence[Assignment],
    certificate: TrajectoryCertificate,
) -> Iterator[str]:
    """Check the certificate of a trajectory without a solver, and yield a message per error.

    Without errors, the assignments reach the level of imbalance at each rebalance and need the
    claimed moves, and no assignments with this imbalance need fewer moves than the bound.

    Yields
    ------
    str
        One failed condition.
    """
    if not len(groups) == len(assignments) == len(certificate.rebalances):
        yield (
            f"the number of groups, {len(groups)}, differs from the number of assignments, "
            f"{len(assignments)}, or from that in the certificate, {len(certificate.rebalances)}"
        )
        return
    try:
        sets = [one.member_sets for one in certificate.rebalances]
        stream = build_stream(groups, certificate.levels, sets)
        prices = _prices(stream, certificate)
        bound = price_bound(stream, prices, certificate.scale)
    except (InputError, UsageError) as error:
        yield f"the evidence is wrong: {error}"
        return
    if certificate.bound > max(bound, 0):
        yield f"the prices prove the bound {bound}, not {certificate.bound}"
    if certificate.value < certificate.bound:
        yield f"the value {certificate.value} is less than the bound {certificate.bound}"
    yield from _assignment_errors(stream, groups, assignments, certificate)


def _assignment_errors(
    stream: Stream,
    groups: Sequence[Group],
    assignments: Sequence[Assignment],
    certificate: TrajectoryCertificate,
) -> Iterator[str]:
    moves = 0
    for number, assignment in enumerate(assignments):
        group = groups[number]
        if number:
            group = rejoin(group, assignments[number - 1])
        invalid = [f"assignment {number}: {one}" for one in violations(group, assignment)]
        if invalid:
            yield from invalid
            return
        moves += movement(group, assignment)
        rebalance = stream.rebalances[number]
        if not _is_permitted(stream, rebalance.ranges, assignment):
            yield f"assignment {number}: the imbalance is above the limit of its level"
        best = certificate.rebalances[number].best or assignment
        if any(violations(group, best)) or _makespan(best) > rebalance.least_makespan:
            yield f"rebalance {number}: no assignment has the minimum makespan of the evidence"
    if moves != certificate.value:
        yield f"the assignments need {moves} moves, not {certificate.value}"


def _prices(stream: Stream, certificate: TrajectoryCertificate) -> Ints:
    prices = np.zeros((len(stream.rebalances), len(stream.members)), dtype=np.int64)
    for number, one in enumerate(certificate.rebalances):
        for name, price in one.prices.items():
            if name not in stream.members or abs(price) > MAX_PRICE:
                raise InputError(f"rebalance {number}: unknown member or price: {name!r}, {price}")
            prices[number, stream.members[name]] = price
    return prices


def _is_permitted(stream: Stream, ranges: Sequence[LoadRange], assignment: Assignment) -> bool:
    """Return whether the loads of an assignment are within the proven ranges."""
    loads = np.zeros(len(stream.members), dtype=np.int64)
    for name, partitions in assignment.items():
        loads[stream.members[name]] = len(partitions)
    return all(one.contains(loads) for one in ranges)


def _makespan(assignment: Assignment) -> int:
    return max(map(len, assignment.values()), default=0)
