"""Find the assignments of a sequence of rebalances with the fewest moves in total."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.group_checks import require_group
from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import rejoin
from kassay.solver.certificate.certificate import Proof
from kassay.solver.certificate.trajectory_certificate import (
    RebalanceEvidence,
    TrajectoryCertificate,
)
from kassay.solver.certificate.trajectory_model import (
    Stream,
    build_stream,
    check_groups,
    trajectory_imbalance,
)
from kassay.solver.constraints import group_constraints
from kassay.solver.flow.optimal_flow import optimal_counts
from kassay.solver.flow.optimal_loads_by_cuts import LevelSet, is_feasible, level_sets
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.problem import Ints, Placement, build_problem
from kassay.solver.solve import solve
from kassay.solver.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.trajectory.linear_program import total_moves
from kassay.solver.trajectory.placements import assignments_of, counts_of
from kassay.solver.trajectory.program_solvers import SCALE
from kassay.solver.trajectory.trajectory_search import TrajectorySearch


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Assignments of a sequence of rebalances, with the total of moves and a bound on it.

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
        ``bound``, which may rely on HiGHS.
    seconds
        Wall-clock time.
    """

    assignments: tuple[Assignment, ...]
    bound: int
    per_rebalance: tuple[int, ...]
    one_after_the_other: tuple[int, ...]
    certificate: TrajectoryCertificate = field(repr=False)
    seconds: float = 0.0

    @property
    def moves(self) -> int:
        """Return the moves over all rebalances."""
        return sum(self.per_rebalance)

    @property
    def is_optimal(self) -> bool:
        """Return whether no assignments with these levels need fewer moves."""
        return self.moves == self.bound

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the moves are the fewest."""
        if not self.is_optimal:
            return Proof.NONE
        return Proof.CERTIFICATE if self.certificate.bound == self.bound else Proof.HIGHS


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
        without a tolerance; by default `default_levels`.
    limits
        Limits of the search. When one is reached, the result is the best one found.

    Raises
    ------
    UsageError
        If there is no group, weights or speeds differ, or the levels are not supported.
    InputError
        If no assignment of a group meets the capacities of its members.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> def group(*names):
    ...     members = tuple(Member(id=name, subscription=("t",)) for name in names)
    ...     return Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> result = optimal_trajectory([group("a", "b"), group("a"), group("a", "b")])
    >>> result.moves, result.bound, result.per_rebalance
    (2, 2, (0, 0, 2))
    """
    start = time.monotonic()
    groups = tuple(groups)
    for group in groups:
        require_group(group)
    check_groups(groups)
    levels = default_levels(groups[0]) if levels is None else tuple(levels)
    trajectory_imbalance(levels)
    steps = [_Step.of(number, group) for number, group in enumerate(groups)]
    stream = build_stream(groups, levels, [step.member_sets() for step in steps])
    budget = SearchBudget.start(limits)
    placements = _one_after_the_other(steps, levels, stream, budget)
    counts = [counts_of(stream, at, placement) for at, placement in enumerate(placements)]
    search = TrajectorySearch(stream, budget, counts)
    search.run()
    assignments = assignments_of(stream, search.counts)
    moves = tuple(total_moves(stream, search.counts))
    evidence = tuple(
        step.evidence(dict(zip(stream.members, prices, strict=True)), assignment)
        for step, prices, assignment in zip(steps, search.prices.tolist(), assignments, strict=True)
    )
    return Trajectory(
        assignments=assignments,
        bound=search.bound,
        per_rebalance=moves,
        one_after_the_other=tuple(total_moves(stream, counts)),
        certificate=TrajectoryCertificate(levels, sum(moves), search.certified, SCALE, evidence),
        seconds=time.monotonic() - start,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """Network and level sets of the group at one rebalance."""

    group: Group
    network: SubscriptionNetwork
    levels: tuple[LevelSet, ...]

    @classmethod
    def of(cls, number: int, group: Group) -> "_Step":
        network = build_network(build_problem(group), group_constraints(group))
        if not is_feasible(network):
            raise InputError(f"groups[{number}]: no assignment meets the capacities of the members")
        levels = level_sets(network)
        if levels is None:
            raise InternalError("a search without a time limit returned no level sets")
        return cls(group, network, levels)

    def member_sets(self) -> tuple[tuple[str, ...], ...]:
        """Return the ids of the members of each level set, by descending load."""
        names = self.network.member_ids
        return tuple(tuple(names[member] for member in one.members) for one in self.levels)

    def evidence(self, prices: dict[str, int], assignment: Assignment) -> RebalanceEvidence:
        """Return the evidence for the certificate, with the prices of this group's members."""
        own = {name: prices[name] for name in self.network.member_ids}
        evidence = RebalanceEvidence(self.member_sets(), own)
        least = max((one.high for one in self.levels), default=0)
        if max(map(len, assignment.values()), default=0) <= least:
            return evidence
        best = self.network.problem.to_assignment(self.even_placement())
        return replace(evidence, best=best)

    def even_placement(self) -> Placement:
        """Return a placement with minimum imbalance."""
        counts = 0 * self.network.tail
        for one in self.levels:
            counts[one.arcs] = one.counts
        return self.network.place(counts)

    def fewest_moves(
        self, past: Assignment | None, levels: Sequence[Level], budget: SearchBudget
    ) -> Placement:
        """Return a placement within the levels, with the fewest moves from the past one."""
        group = self.group if past is None else rejoin(self.group, past)
        problem = build_problem(group)
        if trajectory_imbalance(levels).measure is not Measure.MAKESPAN:
            network = replace(self.network, problem=problem)
            counts = optimal_counts(network, levels=self.levels)
            if counts is None:
                raise InternalError("a search without a time limit returned no flow")
            return network.place(counts)
        limits = replace(budget.limits, time=budget.seconds)
        assignment = solve(group, levels=levels, limits=limits).assignment
        placement = None if assignment is None else problem.to_placement(assignment)
        return self.even_placement() if placement is None else placement


def _one_after_the_other(
    steps: Sequence[_Step], levels: Sequence[Level], stream: Stream, budget: SearchBudget
) -> list[Placement]:
    """Return placements with the fewest moves at each rebalance from the previous one."""
    past: Assignment | None = None
    placements = []
    for at, step in enumerate(steps):
        placement = step.fewest_moves(past, levels, budget)
        if not all(
            one.contains(_loads(stream, at, placement)) for one in stream.rebalances[at].ranges
        ):
            placement = step.even_placement()
        past = step.network.problem.to_assignment(placement)
        placements.append(placement)
    return placements


def _loads(stream: Stream, at: int, placement: Placement) -> Ints:
    loads: Ints = counts_of(stream, at, placement).sum(axis=0)
    return loads
