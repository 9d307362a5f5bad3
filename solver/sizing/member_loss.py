"""What the loss of one member costs, if nobody but its partitions moves."""

from dataclasses import dataclass

import numpy as np

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import MAX_WEIGHT, Group, Member, Topic
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.improvement.residual_network import require_valid
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Measure
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class MemberLoss:
    """The loss of one member.

    Parameters
    ----------
    member
        Who is lost.
    makespan
        Least greatest load of the others after they have taken over.
    unserved
        Partitions that nobody consumes any more.
    """

    member: str
    makespan: LevelValue
    unserved: int


@dataclass(frozen=True, slots=True)
class MemberLosses:
    """What the loss of any one member costs.

    Parameters
    ----------
    losses
        One for every member that consumes anything, in the order of the group.
    """

    losses: tuple[MemberLoss, ...]

    @property
    def worst(self) -> MemberLoss | None:
        """The first of the losses with the greatest makespan; None if there is no member."""
        return max(self.losses, key=lambda loss: loss.makespan.value, default=None)

    @property
    def makespan(self) -> LevelValue:
        """Worst makespan after the loss of any one member; 0 if there is no member."""
        return LevelValue(
            "makespan",
            max((loss.makespan.value for loss in self.losses), default=0),
            max((loss.makespan.bound for loss in self.losses), default=0),
        )


def member_loss(
    group: Group,
    assignment: Assignment | None = None,
    *,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> MemberLosses:
    """Find the least makespan after the loss of each member in turn.

    Only the partitions of the lost member are dealt out anew; all others stay. Capacities
    do not count: the question is what load the others would have to carry.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        Who has what. By default the ownership of today; partitions without an owner are
        then dealt out together with those of the lost member.
    limits, seed
        As in `solve`, per member.

    Raises
    ------
    ValueError
        If the assignment is not valid for the group.

    Examples
    --------
    >>> members = tuple(Member(id=name, subscription=("t",)) for name in "abc")
    >>> group = Group(topics=(Topic(name="t", partitions=6),), members=members)
    >>> assignment = Assignment({n: [("t", 2 * i), ("t", 2 * i + 1)] for i, n in enumerate("abc")})
    >>> member_loss(group, assignment).makespan.value
    3
    """
    problem = build_problem(group)
    placement: Placement | None = problem.owner
    if assignment is not None:
        require_valid(group, assignment)
        placement = problem.to_placement(assignment)
    if placement is None:
        raise ValueError("the assignment is not valid: a partition is with nobody")
    losses = []
    for lost in range(problem.width):
        rest, unserved = _without(problem, placement, lost)
        solution = solve(
            rest,
            levels=(Imbalance(Measure.MAKESPAN),),
            limits=limits,
            seed=seed,
        )
        name = group.members[problem.members[lost]].id
        losses.append(MemberLoss(name, solution.imbalance, unserved))
    return MemberLosses(tuple(losses))


def _without(problem: Problem, placement: Placement, lost: int) -> tuple[Group, int]:
    """Return a group in which only what the lost member had is free, and what nobody consumes.

    What stays with a member is a topic of its own; as one partition of all its load, unless
    weights are equal, which the flow needs, or that is beyond what one may weigh.
    """
    weight = problem.weight
    stays = placement.copy()
    stays[stays == lost] = NO_OWNER
    own: list[Topic] = []
    subscriptions: list[list[str]] = []
    for position in range(problem.width):
        kept = tuple(weight[stays == position].tolist())
        if problem.group.is_weighted and sum(kept) <= MAX_WEIGHT:
            kept = (sum(kept),)
        own.append(Topic(name=f"stays-{position}", partitions=len(kept), weights=kept))
        subscriptions.append([f"stays-{position}"] if position != lost else [])
    free: list[Topic] = []
    unserved = 0
    for index, consumers in enumerate(problem.sets):
        others = consumers[consumers != lost].tolist()
        rows = np.flatnonzero((problem.set_of_row == index) & (stays == NO_OWNER))
        if not others:
            unserved += len(rows)
            continue
        name = f"free-{index}"
        free.append(Topic(name=name, partitions=len(rows), weights=tuple(weight[rows].tolist())))
        for position in others:
            subscriptions[position].append(name)
    members = tuple(
        Member(id=str(position), subscription=tuple(topics))
        for position, topics in enumerate(subscriptions)
    )
    return Group(topics=(*own, *free), members=members), unserved
