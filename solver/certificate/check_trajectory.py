"""Check the moves of a trajectory and the bound on them, without a solver."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.reference.model.assignment import Assignment, movement, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import rejoin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.certificate.rebalance_sequence import (
    PermittedAssignments,
    Stream,
    build_stream,
    greatest_price,
    price_bound,
)
from kassay.solver.certificate.trajectory_certificate import (
    TrajectoryCertificate,
    TrajectoryObjective,
)
from kassay.solver.constraints import group_constraints
from kassay.solver.evaluation import violated
from kassay.solver.objective import Imbalance
from kassay.solver.problem import Ints, build_problem


def trajectory_errors(
    groups: Sequence[Group],
    assignments: Sequence[Assignment],
    certificate: TrajectoryCertificate,
) -> Iterator[str]:
    """Check the certificate of a trajectory without a solver, and yield a message per error.

    Without errors, the assignments reach the level of imbalance at each rebalance and have the
    claimed value, and no assignments with this imbalance have a value below the bound. If weights
    or speeds differ, `TrajectoryCertificate.trusted` lists the rebalances whose minimum is not
    proven.

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
        evidence = [one.loads for one in certificate.rebalances]
        stream = build_stream(groups, certificate.levels, evidence)
        prices = _prices(stream, certificate)
        bound = price_bound(stream, prices, _move_costs(certificate), certificate.scale)
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
    moves: list[int] = []
    for number, assignment in enumerate(assignments):
        group = groups[number]
        if number:
            group = rejoin(group, assignments[number - 1])
        invalid = [f"assignment {number}: {one}" for one in violations(group, assignment)]
        if invalid:
            yield from invalid
            return
        moves.append(movement(group, assignment))
        rebalance = stream.rebalances[number]
        loads = _loads(stream, group, assignment)
        if not all(one.contains(loads) for one in rebalance.ranges):
            yield f"assignment {number}: the imbalance is above the limit of its level"
        yield from (
            f"rebalance {number}: {error}"
            for error in _least_errors(certificate, number, group, assignment, rebalance)
        )
    value = certificate.objective.of(moves)
    if value != certificate.value:
        yield f"the assignments have the value {value}, not {certificate.value}"


def _least_errors(
    certificate: TrajectoryCertificate,
    number: int,
    group: Group,
    assignment: Assignment,
    rebalance: PermittedAssignments,
) -> Iterator[str]:
    """Check that the minimum makespan of the evidence is reached, and its certificate."""
    evidence = certificate.rebalances[number]
    best = evidence.best or assignment
    if rebalance.least_makespan is not None:
        if not _is_permitted(group, best) or _makespan(best) > rebalance.least_makespan:
            yield "no assignment has the minimum makespan of the evidence"
    elif evidence.least is not None:
        levels = [claim.level for claim in evidence.least.claims]
        if levels != [Imbalance(Measure.MAKESPAN)] or evidence.least.constraints:
            yield "the certificate of the minimum makespan is about other levels or constraints"
        else:
            free = rejoin(group, Assignment({}))
            yield from certificate_errors(free, best, evidence.least)


def _is_permitted(group: Group, assignment: Assignment) -> bool:
    """Return whether an assignment is valid and within the capacities of the members."""
    if any(violations(group, assignment)):
        return False
    problem = build_problem(group)
    placement = problem.valid_placement(assignment)
    return not any(violated(problem, group_constraints(group), placement))


def _move_costs(certificate: TrajectoryCertificate) -> Sequence[int]:
    """Return the cost of a move per rebalance. Raise InputError if they prove no bound."""
    number, costs = len(certificate.rebalances), certificate.move_costs
    if certificate.objective is TrajectoryObjective.TOTAL:
        return [certificate.scale] * number
    if len(costs) != number or sum(costs) > certificate.scale:
        raise InputError(
            f"the costs of moves must be {number} numbers with a sum of at most "
            f"{certificate.scale}, got {len(costs)} with the sum {sum(costs)}"
        )
    return costs


def _prices(stream: Stream, certificate: TrajectoryCertificate) -> Ints:
    prices = np.zeros((len(stream.rebalances), len(stream.members)), dtype=np.int64)
    for number, one in enumerate(certificate.rebalances):
        for name, price in one.prices.items():
            if name not in stream.members:
                raise InputError(f"rebalance {number}: unknown member {name!r}")
            if abs(price) > (limit := greatest_price(stream)):
                raise InputError(
                    f"rebalance {number}: prices must be from -{limit} to {limit}, got {price}"
                )
            prices[number, stream.members[name]] = price
    return prices


def _loads(stream: Stream, group: Group, assignment: Assignment) -> Ints:
    """Return the load of each member of the stream."""
    topics = group.topic_table()
    loads = np.zeros(len(stream.members), dtype=np.int64)
    for name, partitions in assignment.items():
        weights = (topics[tp.topic].weight(tp.partition) for tp in partitions)
        loads[stream.members[name]] = sum(weights) if stream.is_weighted else len(partitions)
    return loads


def _makespan(assignment: Assignment) -> int:
    return max(map(len, assignment.values()), default=0)
