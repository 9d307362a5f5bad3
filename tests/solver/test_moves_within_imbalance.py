"""Bounds on the fewest moves within a limit on the imbalance, from convex flows."""

from hypothesis import given

from kassay.experiments.comparison.compare import solve_optimum
from kassay.solver.frontier import frontier
from kassay.solver.network.optimal_flow import ConvexHull
from kassay.solver.network.subscription_network import build_network
from kassay.solver.problem import build_problem
from tests.strategies import groups


@given(group=groups())
def test_the_bounds_enclose_the_fewest_moves_of_the_frontier(group):
    """The frontier searches points that are not on the hull, so it is an independent check."""
    optimum = solve_optimum(group)
    if not group.uniform_weight or optimum.imbalance.value == 0:
        return
    points = [
        (p.movement.value, p.imbalance.value)
        for p in frontier(group, measure="sum_of_squares").points
    ]
    hull, unit = ConvexHull.of(build_network(build_problem(group))), group.uniform_weight**2
    for cap in {value + extra for _, value in points for extra in (0, 1)}:
        expected = min(moves for moves, value in points if value <= cap)
        found = hull.within_squares(cap // unit)
        assert found.bound <= expected <= found.point.moves
        assert found.point.squares * unit <= cap
    assert hull.within_squares(optimum.imbalance.value // unit - 1) is None
