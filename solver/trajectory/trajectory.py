"""Find the assignments of a sequence of rebalances with the fewest moves in total."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kassay.reference.model.assignment import NO_OWNER, Assignment, rejoin
from kassay.reference.model.errors import InputError, InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.reference.model.load_metrics import Measure
from kassay.solver.certificate.certificate import (
    Proof,
    RebalanceEvidence,
    TrajectoryCertificate,
    weakest_proof,
)
from kassay.solver.certificate.trajectory_evidence import (
    Mask,
    Stream,
    build_stream,
    check_groups,
    is_weighted,
    trajectory_imbalance,
)
from kassay.solver.certify import certify
from kassay.solver.evaluation import group_constraints
from kassay.solver.limits import SearchBudget, SearchLimits, now
from kassay.solver.network.optimal_flow import is_feasible, level_sets, optimal_counts
from kassay.solver.network.subscription_network import build_network
from kassay.solver.objective import EXACT, Imbalance, Level, Movement, Tolerance
from kassay.solver.problem import Ints, Placement, build_problem
from kassay.solver.solution import LevelValue, Solution, Status
from kassay.solver.solve import solve
from kassay.solver.trajectory.linear_program import total_moves
from kassay.solver.trajectory.trajectory_search import TrajectorySearch


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Assignments of a sequence of rebalances with few moves, and a bound on the moves.

    Parameters
    ----------
    bound
        Proven lower bound on the moves over all rebalances.
    per_rebalance
        Moves of each rebalance.
    one_after_the_other
        Moves of each rebalance if each one makes the fewest moves from the previous assignment.
    certificate
        Evidence that `trajectory_errors` checks without a solver. Its bound can be lower than
        ``bound``, which may rely on HiGHS or CP-SAT.
    load_limits
        Maximum load that the level permits at each rebalance, and a lower bound on it, if weights
        or speeds differ. The bound on the moves refers to these limits.
    seconds
        Wall-clock time.
    """

    assignments: tuple[Assignment, ...]
    bound: int
    per_rebalance: tuple[int, ...]
    one_after_the_other: tuple[int, ...]
    certificate: TrajectoryCertificate = field(repr=False)
    load_limits: tuple[LevelValue, ...] = ()
    seconds: float = 0.0

    @property
    def moves(self) -> int:
        """Return the total number of moves."""
        return sum(self.per_rebalance)

    @property
    def is_optimal(self) -> bool:
        """Return whether the number of moves is proven to be the minimum."""
        return self.moves == self.bound and all(one.is_proven for one in self.load_limits)

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the moves are the fewest."""
        if not self.is_optimal:
            return Proof.NONE
        by_search = Proof.CP_SAT if self.load_limits else Proof.HIGHS
        is_checked = self.certificate.bound == self.bound
        proofs = [Proof.CERTIFICATE if is_checked else by_search]
        if self.certificate.trusted:
            proofs += [one.proof for one in self.load_limits]
        return weakest_proof(proofs)


def optimal_trajectory(
    groups: Sequence[Group],
    *,
    levels: Iterable[Level] | None = None,
    limits: SearchLimits = SearchLimits(),
) -> Trajectory:
    """Find assignments of a sequence of rebalances with the fewest moves in total.

    At each rebalance, the imbalance is minimum, or within its tolerance. A partition moves if the
    previous owner is in the group and subscribed, and another member receives the partition.

    Parameters
    ----------
    groups
        The group at each rebalance. Owned partitions matter in the first group only.
    levels
        Imbalance, then movement: ``sum_of_squares`` or ``leximax``, or ``makespan`` with or
        without a tolerance; by default without a tolerance. If weights or speeds differ in a group,
        only ``makespan``.
    limits
        Limits of the search. When one is reached, the result is the best one found.

    Raises
    ------
    UsageError
        If there is no group, a group has several members per partition, or the levels are not
        supported.
    InputError
        If no assignment of a group meets the capacities of its members.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> def group(*names):
    ...     members = tuple(Member(id=name, subscription=("t",)) for name in names)
    ...     return Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> result = optimal_trajectory([group("a", "b"), group("a"), group("a", "b")])
    >>> result.moves, result.bound, result.per_rebalance
    (2, 2, (0, 0, 2))
    """
    start = now()
    groups = tuple(groups)
    for group in groups:
        require_group(group)
    levels = default_trajectory_levels(groups) if levels is None else tuple(levels)
    level = trajectory_imbalance(levels)
    check_groups(groups, level)
    budget = SearchBudget.start(limits)
    steps = _steps(groups, level, budget)
    stream = build_stream(
        groups, levels, [step.best if step.solution else step.sets for step in steps]
    )
    counts = _one_after_the_other(steps, stream, budget)
    search = TrajectorySearch(stream, budget, counts)
    search.run()
    assignments = _assignments_of(stream, search.counts)
    moves = tuple(total_moves(stream, search.counts))
    prices = search.prices
    evidence = tuple(
        _evidence(step, dict(zip(stream.members, own, strict=True)), assignment, budget)
        for step, own, assignment in zip(steps, prices.loads.tolist(), assignments, strict=True)
    )
    certificate = TrajectoryCertificate(
        levels, value=sum(moves), bound=search.certified, scale=prices.scale, rebalances=evidence
    )
    return Trajectory(
        assignments=assignments,
        bound=search.bound,
        per_rebalance=moves,
        one_after_the_other=tuple(total_moves(stream, counts)),
        certificate=certificate,
        load_limits=tuple(
            LevelValue(
                "limit",
                level.tolerance.limit(step.solution.imbalance.value),
                level.tolerance.limit(step.solution.imbalance.bound),
                origin=step.solution.imbalance.origin,
            )
            for step in steps
            if step.solution is not None
        ),
        seconds=now() - start,
    )


def default_trajectory_levels(
    groups: Sequence[Group], *, tolerance: Tolerance = EXACT
) -> tuple[Level, ...]:
    """Return the default levels of a sequence of rebalances."""
    measure = Measure.MAKESPAN if is_weighted(groups) or tolerance else Measure.SUM_OF_SQUARES
    return (Imbalance(measure, tolerance), Movement())


@dataclass(frozen=True, slots=True)
class _Step:
    """Group at one rebalance, and an assignment with permitted loads."""

    group: Group
    level: Imbalance  # permitted imbalance
    best: Assignment
    sets: tuple[tuple[str, ...], ...] = ()  # level sets, if weights and speeds are equal
    solution: Solution | None = None  # with the minimum makespan otherwise


def _steps(groups: Sequence[Group], level: Imbalance, budget: SearchBudget) -> list[_Step]:
    if not is_weighted(groups):
        return [_equal_step(number, group, level) for number, group in enumerate(groups)]
    return [
        _weighted_step(number, group, level, budget.part(0.3 / (len(groups) - number)))
        for number, group in enumerate(groups)
    ]


def _equal_step(number: int, group: Group, level: Imbalance) -> _Step:
    network = build_network(build_problem(group), group_constraints(group))
    if not is_feasible(network):
        raise InputError(f"groups[{number}]: no assignment meets the capacities; increase them")
    counts = optimal_counts(network)
    names = network.member_ids
    sets = tuple(tuple(names[at] for at in one) for one in level_sets(network, counts))
    return _Step(group, level, network.problem.to_assignment(network.place(counts)), sets)


def _weighted_step(number: int, group: Group, level: Imbalance, budget: SearchBudget) -> _Step:
    free = rejoin(group, Assignment({}))
    solution = solve(free, levels=(Imbalance(Measure.MAKESPAN),), limits=budget.rest())
    if solution.assignment is None:
        if solution.status is Status.INFEASIBLE:
            reason = "no assignment meets the capacities of the members; increase them"
        else:
            reason = "no assignment within the capacities was found; increase the work limit"
        raise InputError(f"groups[{number}]: {reason}")
    limit = level.tolerance.limit(solution.imbalance.value)
    within = Imbalance(Measure.MAKESPAN, Tolerance(up_to=limit))
    return _Step(group, within, solution.assignment, solution=solution)


def _evidence(
    step: _Step, prices: Mapping[str, int], assignment: Assignment, budget: SearchBudget
) -> RebalanceEvidence:
    own = {name: prices[name] for name in build_problem(step.group).member_index}
    if step.solution is not None:
        free = rejoin(step.group, Assignment({}))
        least = certify(free, step.solution) if budget.has_work else None
        return RebalanceEvidence((), own, best=step.best, least=least)
    found, least_makespan = (
        max(map(len, one.values()), default=0) for one in (assignment, step.best)
    )
    return RebalanceEvidence(step.sets, own, best=step.best if found > least_makespan else None)


def _one_after_the_other(
    steps: Sequence[_Step], stream: Stream, budget: SearchBudget
) -> list[Ints]:
    past: Assignment | None = None
    result = []
    for at, step in enumerate(steps):
        problem = stream.rebalances[at].problem
        part = budget.part(0.3 / (len(steps) - at)) if stream.is_weighted else budget
        found = solve(
            step.group if past is None else rejoin(step.group, past),
            levels=(step.level, Movement()),
            initial_assignment=None if step.solution is None else step.best,
            limits=part.rest(),
        )
        past = found.assignment or step.best
        counts = _counts_of(stream, at, problem.valid_placement(past))
        if not stream.rebalances[at].permits(stream.loads(at, counts)):
            past = step.best
            counts = _counts_of(stream, at, problem.valid_placement(past))
        result.append(counts)
    return result


def _assignments_of(stream: Stream, counts: Sequence[Ints]) -> tuple[Assignment, ...]:
    problems = [one.problem for one in stream.rebalances]
    placements = [np.full(one.partition_count, NO_OWNER, dtype=np.int32) for one in problems]
    own_numbers = []  # of each member of the stream, in the problem
    for rebalance in stream.rebalances:
        own = np.zeros(len(stream.members), dtype=np.int32)
        own[rebalance.members] = np.arange(len(rebalance.members))
        own_numbers.append(own)
    for row, count in enumerate(stream.count.tolist()):
        unowned = current = np.full(count, NO_OWNER, dtype=np.int64)
        for at, rebalance in enumerate(stream.rebalances):
            if not stream.assigned(at)[row]:
                current = unowned
                continue
            partitions = stream.partitions(row, at)
            if at == 0:
                owners = rebalance.problem.owner[partitions]
                current = np.append(rebalance.members, NO_OWNER)[owners]
            subscribed = rebalance.subscribed[stream.consumer_set[row, at]]
            current = _next_members(current, counts[at][row], subscribed)
            placements[at][partitions] = own_numbers[at][current]
    pairs = zip(problems, placements, strict=True)
    return tuple(problem.to_assignment(placement) for problem, placement in pairs)


def _next_members(current: Ints, counts: Ints, subscribed: Mask) -> Ints:
    """Return the next member of each partition, with the fewest changes of owner."""
    if int(counts.sum()) != len(current):
        raise InternalError("internal error: wrong partition counts; report these group documents")
    order = np.argsort(current, kind="stable")
    members = current[order]
    rank = np.arange(len(order)) - np.searchsorted(members, members)
    kept = (members != NO_OWNER) & subscribed[members] & (rank < counts[members])
    result = np.full(len(current), NO_OWNER, dtype=np.int64)
    result[order[kept]] = members[kept]
    rest = counts - np.bincount(members[kept], minlength=len(counts))
    result[result == NO_OWNER] = np.repeat(np.arange(len(counts)), rest)
    return result


def _counts_of(stream: Stream, at: int, placement: Placement) -> Ints:
    counts = np.zeros(stream.start.shape, dtype=np.int64)
    number = stream.rebalances[at].members
    for row in np.flatnonzero(stream.assigned(at)).tolist():
        members = number[placement[stream.partitions(row, at)]]
        counts[row] = np.bincount(members, minlength=len(stream.members))
    return counts
