"""Distance of an assignment to the front of three criteria: imbalance, off-rack reads and moves.

An assignment is on the front if no assignment is better in one criterion and at least as good in
both others. Off-rack reads are partitions without a replica in the rack of their member.
"""

from dataclasses import dataclass, replace

from kassay.experiments.compare import without_capacities
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.external_metrics import off_rack
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures, movement
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Level, Movement, Tolerance
from kassay.solver.solution import Solution
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class CriterionDistance:
    """Value of one criterion, and its best value if both other criteria must not get worse.

    Parameters
    ----------
    value
        Value of the judged assignment.
    within, bound
        Best known value with both other criteria at most those of the assignment, and a proven
        lower bound on it.
    """

    value: int
    within: int
    bound: int

    @property
    def best(self) -> int | None:
        """Return the best value, or None if it is not proven."""
        return self.within if self.within == self.bound else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDistance:
    """Distance of an assignment to the front, one criterion at a time."""

    imbalance: CriterionDistance
    off_rack: CriterionDistance
    moves: CriterionDistance

    @property
    def is_on_front(self) -> bool | None:
        """Return whether the assignment is on the front, or None if this is not proven."""
        criteria = (self.imbalance, self.off_rack, self.moves)
        if any(criterion.within < criterion.value for criterion in criteria):
            return False
        return True if all(one.bound == one.value for one in criteria) else None


def front_distance(
    group: Group,
    assignment: Assignment,
    *,
    optimum: Solution,
    limits: SearchLimits,
    min_moves: int = 0,
) -> FrontDistance:
    """Minimise each criterion, with both others at most those of a valid assignment.

    Parameters
    ----------
    optimum
        The group's optimum of imbalance, then moves. Its measure of imbalance is the criterion.
    limits
        Limits per criterion. When one is reached, the distance has a value and a bound.
    min_moves
        Known lower bound on the moves to an assignment with at most this imbalance.

    Examples
    --------
    >>> from kassay.experiments.compare import solve_optimum
    >>> from kassay.reference import Member, Topic
    >>> topic = Topic(name="t", partitions=2, racks=(("x",), ("y",)))
    >>> members = (
    ...     Member(id="a", subscription=("t",), rack="x", owned=[("t", 0)]),
    ...     Member(id="b", subscription=("t",), rack="y", owned=[("t", 1)]),
    ... )
    >>> group = Group(topics=(topic,), members=members)
    >>> swapped = Assignment({"a": (("t", 1),), "b": (("t", 0),)})
    >>> found = front_distance(group, swapped, optimum=solve_optimum(group), limits=SearchLimits())
    >>> found.moves, found.is_on_front
    (CriterionDistance(value=2, within=0, bound=0), False)
    """
    unlimited = without_capacities(group)
    measure = Measure(optimum.imbalance.name)
    balance = measures(group, assignment)[measure]
    reads, moves = off_rack(group, assignment), movement(group, assignment)
    even = Imbalance(measure, Tolerance(up_to=balance))
    local, still = CrossRack(Tolerance(up_to=reads)), Movement(tolerance=Tolerance(up_to=moves))

    def minimise(*levels: Level, value: int, bound: int) -> CriterionDistance:
        """Minimise the last level within the limits of the others, unless the bound is reached."""
        if value <= bound:
            return CriterionDistance(value, value, value)
        solution = solve(unlimited, levels=levels, initial_assignment=assignment, limits=limits)
        found = solution.levels[-1]
        return CriterionDistance(value, found.value, max(found.bound, min(bound, found.value)))

    return FrontDistance(
        imbalance=minimise(
            local, still, Imbalance(measure), value=balance, bound=optimum.imbalance.bound
        ),
        off_rack=minimise(even, still, CrossRack(), value=reads, bound=0),
        moves=minimise(even, local, Movement(), value=moves, bound=min_moves),
    )


def without_racks(group: Group) -> Group:
    """Return a copy of a group in which no member and no replica has a known rack."""
    topics = tuple(replace(topic, racks=None) for topic in group.topics)
    members = tuple(replace(member, rack=None) for member in group.members)
    return replace(group, topics=topics, members=members)
