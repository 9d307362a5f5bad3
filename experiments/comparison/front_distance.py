"""Distance of an assignment to the front of three criteria: imbalance, off-rack reads and moves."""

from kassay.experiments.comparison.comparison_result import ComparedValue, FrontDistance
from kassay.experiments.comparison.optimum import without_capacities
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures, off_rack
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Level, Movement, Tolerance
from kassay.solver.solution import Solution
from kassay.solver.solve import solve


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
    >>> from kassay.experiments.comparison.optimum import solve_optimum
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
    (ComparedValue(value=2, best=0, bound=0), False)
    """
    unlimited = without_capacities(group)
    measure = Measure(optimum.imbalance.name)
    balance = measures(group, assignment)[measure]
    reads, moves = off_rack(group, assignment), movement(group, assignment)
    even = Imbalance(measure, Tolerance(up_to=balance))
    local, still = CrossRack(Tolerance(up_to=reads)), Movement(tolerance=Tolerance(up_to=moves))

    def minimise(*levels: Level, value: int, bound: int) -> ComparedValue:
        """Minimise the last level within the limits of the others, unless the bound is reached."""
        if value <= bound:
            return ComparedValue.with_optimum(value, value)
        solution = solve(unlimited, levels=levels, initial_assignment=assignment, limits=limits)
        found = solution.levels[-1]
        return ComparedValue(value, found.value, max(found.bound, min(bound, found.value)))

    return FrontDistance(
        imbalance=minimise(
            local, still, Imbalance(measure), value=balance, bound=optimum.imbalance.bound
        ),
        off_rack=minimise(even, still, CrossRack(), value=reads, bound=0),
        moves=minimise(even, local, Movement(), value=moves, bound=min_moves),
    )
