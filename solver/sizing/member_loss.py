"""Maximum load after the loss of one member."""

from dataclasses import dataclass
from math import lcm

import numpy as np

from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.reference.model.group import MAX_WEIGHT, Group, Member, Topic
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import Measure
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance
from kassay.solver.problem import Placement, Problem, build_problem, exact_column
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class MemberLoss:
    """Effect of losing one member: minimum makespan of the others, and unserved partitions.

    If speeds differ, the makespan is the maximum relative load in the whole group. Unserved are
    partitions without subscribers among the other members.
    """

    member: str
    makespan: LevelValue
    unserved: int


@dataclass(frozen=True, slots=True)
class MemberLosses:
    """Effects of losing each member that consumes a topic, in group order.

    If the search was stopped, only the losses before the stop.
    """

    losses: tuple[MemberLoss, ...]

    @property
    def worst(self) -> MemberLoss | None:
        """Return the loss that leads to the highest makespan, or None if there is no loss."""
        return max(self.losses, key=lambda loss: loss.makespan.value, default=None)

    @property
    def makespan(self) -> LevelValue:
        """Makespan after the worst loss, or 0 if there are no losses."""
        return LevelValue(
            "makespan",
            max((loss.makespan.value for loss in self.losses), default=0),
            max((loss.makespan.bound for loss in self.losses), default=0),
        )


def member_loss(
    group: Group,
    assignment: Assignment | None = None,
    *,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> MemberLosses:
    """Find the minimum makespan after the loss of each member.

    Only partitions of the lost member are reassigned. Capacities are ignored.

    Parameters
    ----------
    assignment
        The assignment before the loss. By default the current ownership; partitions without
        an owner are then reassigned with those of the lost member.
    limits, seed
        As in `solve`. The limit applies to all members together. If the search is stopped,
        further members have no result.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group, or partitions can have several members.

    Examples
    --------
    >>> members = tuple(Member(id=name, subscription=("t",)) for name in "abc")
    >>> group = Group(topics=(Topic(name="t", partitions=6),), members=members)
    >>> assignment = Assignment({n: [("t", 2 * i), ("t", 2 * i + 1)] for i, n in enumerate("abc")})
    >>> member_loss(group, assignment).makespan.value
    3
    """
    require_group(group)
    require_single_copies(group)
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    problem = build_problem(group)
    placement = problem.owner if assignment is None else problem.valid_placement(assignment)
    losses = []
    for lost in range(problem.member_count):
        if budget.limits.is_stopped:
            break
        name = group.members[problem.members[lost]].id
        if not budget.has_work:
            losses.append(_without_search(problem, placement, lost))
            continue
        rest, unserved = _after_loss(problem, placement, lost)
        within = budget.part(1 / (problem.member_count - lost)).rest()
        solution = solve(rest, levels=(Imbalance(Measure.MAKESPAN),), limits=within, seed=seed)
        # Members that neither keep nor can take a partition are no participants of the rest.
        speeds = [rest.members[index].speed for index in rest.participant_indices]
        factor = lcm(*problem.member_units.speeds) // lcm(*speeds)
        found = solution.imbalance
        makespan = LevelValue(found.name, found.value * factor, found.bound * factor)
        losses.append(MemberLoss(name, makespan, unserved))
    return MemberLosses(tuple(losses))


def _without_search(problem: Problem, placement: Placement, lost: int) -> MemberLoss:
    """Return the makespan of longest processing time first, with a bound by counting."""
    speeds, factors = problem.member_units.speeds, problem.member_units.factors
    most = max(problem.total, 1) * max(factors)
    weight = exact_column(problem.weight, most)
    factor = exact_column(np.array(factors, dtype=object), most)
    is_free = (placement == lost) | (placement == NO_OWNER)
    loads = np.zeros(problem.member_count, dtype=weight.dtype)
    np.add.at(loads, placement[~is_free], weight[~is_free])
    bound, unserved = max((loads * factor).tolist()), 0
    for partition in sorted(np.flatnonzero(is_free).tolist(), key=lambda at: -weight[at]):
        consumers = problem.consumer_sets[problem.consumer_set[partition]]
        others = consumers[consumers != lost]
        if not len(others):
            unserved += 1
            continue
        relative = (loads[others] + weight[partition]) * factor[others]
        loads[others[np.argmin(relative)]] += weight[partition]
        bound = max(bound, int(weight[partition] * factor[others].min()))
    speed = max(sum(speeds) - speeds[lost], 1)
    mean = -(-sum(loads.tolist()) * lcm(*speeds) // speed)
    makespan = LevelValue("makespan", max((loads * factor).tolist()), max(bound, mean))
    return MemberLoss(problem.member_id(lost), makespan, unserved)


def _after_loss(problem: Problem, placement: Placement, lost: int) -> tuple[Group, int]:
    """Return the group without the lost member, and the number of unserved partitions.

    The partitions that a member keeps are a topic of its own. In weighted groups it has one
    partition with the whole load, unless that exceeds the maximum weight.
    """
    weight = problem.weight
    stays = placement.copy()
    stays[stays == lost] = NO_OWNER
    topics: list[Topic] = []
    subscriptions: list[list[str]] = []
    for member in range(problem.member_count):
        kept = tuple(weight[stays == member].tolist())
        if problem.group.is_weighted and sum(kept) <= MAX_WEIGHT:
            kept = (sum(kept),)
        topics.append(Topic(name=f"kept-{member}", partitions=len(kept), weights=kept))
        subscriptions.append([f"kept-{member}"] if member != lost else [])
    unserved = 0
    for index, consumers in enumerate(problem.consumer_sets):
        others = consumers[consumers != lost].tolist()
        free = np.flatnonzero((problem.consumer_set == index) & (stays == NO_OWNER))
        if not others:
            unserved += len(free)
            continue
        name, weights = f"free-{index}", tuple(weight[free].tolist())
        topics.append(Topic(name=name, partitions=len(free), weights=weights))
        for member in others:
            subscriptions[member].append(name)
    members = tuple(
        Member(id=str(member), subscription=tuple(names), speed=problem.member_units.speeds[member])
        for member, names in enumerate(subscriptions)
    )
    return Group(topics=tuple(topics), members=members), unserved
