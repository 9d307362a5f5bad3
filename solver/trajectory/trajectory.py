"""Find the assignments of a sequence of rebalances with the fewest moves in total."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import (
    Proof,
    TrajectoryCertificate,
    TrajectoryObjective,
    weakest_proof,
)
from kassay.solver.certificate.rebalance_sequence import (
    Stream,
    build_stream,
    check_groups,
    is_weighted,
    trajectory_imbalance,
)
from kassay.solver.limits import SearchBudget, SearchLimits, now
from kassay.solver.objective import EXACT, Imbalance, Level, Movement, Tolerance
from kassay.solver.problem import Ints
from kassay.solver.solution import LevelValue
from kassay.solver.trajectory.assignment_counts import assignments_of, counts_of
from kassay.solver.trajectory.linear_program import total_moves
from kassay.solver.trajectory.rebalance_steps import RebalanceStep, rebalance_steps
from kassay.solver.trajectory.trajectory_search import TrajectorySearch


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Assignments of a sequence of rebalances, with the value of the objective and a bound on it.

    Parameters
    ----------
    bound
        Proven lower bound on the value of the objective.
    per_rebalance
        Moves of each rebalance.
    one_after_the_other
        Moves of each rebalance if each one makes the fewest moves from the previous assignment.
    certificate
        Evidence that `trajectory_errors` checks without a solver. Its bound can be lower than
        ``bound``, which may rely on HiGHS or CP-SAT.
    load_limits
        Maximum load that the level permits at each rebalance, and a lower bound on it, if weights
        or speeds differ. The bound on the value refers to these limits.
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
        """Return the moves over all rebalances."""
        return sum(self.per_rebalance)

    @property
    def objective(self) -> TrajectoryObjective:
        """Return the objective that the assignments minimise."""
        return self.certificate.objective

    @property
    def value(self) -> int:
        """Return the value of the objective: all moves, or the maximum per rebalance."""
        return self.objective.of(self.per_rebalance)

    @property
    def is_optimal(self) -> bool:
        """Return whether no assignments with these levels have a lower value."""
        return self.value == self.bound and all(one.is_proven for one in self.load_limits)

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the value is the lowest."""
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
    objective: TrajectoryObjective | str = TrajectoryObjective.TOTAL,
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
    objective
        ``total`` minimises the moves over all rebalances, ``largest`` the maximum
        number of moves of one rebalance.
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
    >>> from kassay.reference.model.group import Member, Topic
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
    level, objective = trajectory_imbalance(levels), TrajectoryObjective(objective)
    check_groups(groups, level)
    budget = SearchBudget.start(limits)
    steps = rebalance_steps(groups, level, budget, weighted=is_weighted(groups))
    stream = build_stream(groups, levels, [step.loads() for step in steps])
    counts = _one_after_the_other(steps, stream, budget)
    search = TrajectorySearch(stream, objective, budget, counts)
    search.run()
    assignments = assignments_of(stream, search.counts)
    moves = tuple(total_moves(stream, search.counts))
    prices = search.prices
    evidence = tuple(
        step.evidence(dict(zip(stream.members, own, strict=True)), assignment, budget)
        for step, own, assignment in zip(steps, prices.loads.tolist(), assignments, strict=True)
    )
    certificate = TrajectoryCertificate(
        levels,
        value=objective.of(moves),
        bound=search.certified,
        scale=prices.scale,
        rebalances=evidence,
        objective=objective,
        move_costs=() if objective is TrajectoryObjective.TOTAL else prices.moves,
    )
    return Trajectory(
        assignments=assignments,
        bound=search.bound,
        per_rebalance=moves,
        one_after_the_other=tuple(total_moves(stream, counts)),
        certificate=certificate,
        load_limits=tuple(step.limit for step in steps if step.limit is not None),
        seconds=now() - start,
    )


def default_trajectory_levels(
    groups: Sequence[Group], *, measure: Measure | None = None, tolerance: Tolerance = EXACT
) -> tuple[Level, ...]:
    """Return the default levels of a sequence of groups.

    The default measure is the makespan if there is a tolerance, or if weights or speeds differ in
    a group.
    """
    if measure is None:
        measure = Measure.MAKESPAN if is_weighted(groups) or tolerance else Measure.SUM_OF_SQUARES
    return (Imbalance(measure, tolerance), Movement())


def _one_after_the_other(
    steps: Sequence[RebalanceStep], stream: Stream, budget: SearchBudget
) -> list[Ints]:
    """Return counts with the fewest moves at each rebalance from the previous one."""
    past: Assignment | None = None
    result = []
    for at, step in enumerate(steps):
        problem = stream.rebalances[at].problem
        part = budget.part(0.3 / (len(steps) - at)) if stream.is_weighted else budget
        past = step.fewest_moves(past, part)
        counts = counts_of(stream, at, problem.valid_placement(past))
        loads = stream.loads(at, counts)
        if not all(one.contains(loads) for one in stream.rebalances[at].ranges):
            past = step.any_assignment()
            counts = counts_of(stream, at, problem.valid_placement(past))
        result.append(counts)
    return result
