"""Convex hull of the imbalance-movement frontier for equal weights, by network flows."""

from dataclasses import dataclass
from itertools import pairwise

from kassay.reference.model.group import Group, cached
from kassay.solver.flow.hull_search import HullSearch, MayContinue, with_chain
from kassay.solver.flow.priced_flow import FlowPoint
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import LevelValue
from kassay.solver.subscription_network import SubscriptionNetwork, build_network

# Larger networks take too long for one flow per corner.
_MAX_ARCS = 40_000


@dataclass(frozen=True, slots=True)
class ConvexHull:
    """Lower convex hull of the points (moves, sum of squared loads)."""

    network: SubscriptionNetwork
    corners: tuple[FlowPoint, ...]  # by ascending moves
    points: dict[int, FlowPoint]  # by moves; each is non-dominated

    def placement(self, moves: int) -> Placement:
        """Return the placement of the hull point with the given number of moves."""
        return self.network.place(self.points[moves].counts)

    def min_squares(self, moves: int) -> int:
        """Return a lower bound on the sum of squared loads for a number of moves."""
        for left, right in pairwise(self.corners):
            if left.moves <= moves <= right.moves:
                drop = (left.squares - right.squares) * (moves - left.moves)
                return left.squares - drop // (right.moves - left.moves)
        return self.corners[-1 if moves >= self.corners[-1].moves else 0].squares


def convex_hull(problem: Problem, may_continue: MayContinue) -> ConvexHull | None:
    """Find the convex hull of the frontier of a group with equal weights.

    Return None if the network is too large, or the search may not continue.
    """
    search = _hull_search(problem)
    if search is None:
        return None
    corners = {point.moves: point for point in search.ends}
    points = dict(corners)
    waiting = [search.ends]
    while waiting:
        if not may_continue():
            return None
        left, right = waiting.pop()
        if right.moves <= left.moves + 1:
            continue
        corner = search.corner_between(left, right)
        if corner is not None:
            corners[corner.moves] = points[corner.moves] = corner
            waiting += [(left, corner), (corner, right)]
            continue
        point = left
        for chain in search.chains(left, right):
            point = with_chain(point, chain)
            points.setdefault(point.moves, point)
    return ConvexHull(
        search.network,
        tuple(corners[moves] for moves in sorted(corners)),
        {moves: points[moves] for moves in sorted(points)},
    )


def fewest_moves(group: Group, sum_of_squares: int) -> LevelValue | None:
    """Bound the fewest moves of assignments with at most the given sum of squared loads.

    The value is the number of moves of such an assignment, and the bound is a proven lower bound.
    Return None if weights differ, if the group is too large, or if there is no such assignment.
    Capacities are ignored.
    """
    search = _search_of(group)
    weight = group.uniform_weight
    if search is None or not weight:
        return None
    found = search.within_squares(sum_of_squares // weight**2, lambda: True)
    return None if found is None else LevelValue("movement", found.point.moves, found.bound)


@cached
def _search_of(group: Group) -> HullSearch | None:
    return _hull_search(build_problem(group)) if group.uniform_weight else None


def _hull_search(problem: Problem) -> HullSearch | None:
    network = build_network(problem)
    if not problem.partition_count or int(network.max_counts.sum()) > _MAX_ARCS:
        return None
    return HullSearch.of(network)
