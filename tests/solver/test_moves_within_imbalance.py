from hypothesis import given

from kassay.experiments.comparison.optimum import solve_optimum
from kassay.reference.model.metrics import loads, sum_of_squares
from kassay.solver.flow.convex_hull import fewest_moves
from kassay.solver.frontier.frontier import frontier
from tests.strategies import groups


def squares(group, assignment):
    return sum_of_squares(tuple(loads(group, assignment).values()))


@given(group=groups())
def test_the_bounds_enclose_the_fewest_moves_of_the_frontier(group):
    """The frontier searches points that are not on the hull, so it is an independent check."""
    optimum = solve_optimum(group)
    if optimum.imbalance.name != "sum_of_squares" or optimum.imbalance.value == 0:
        return
    points = [
        (p.movement.value, p.imbalance.value)
        for p in frontier(group, measure="sum_of_squares").points
    ]
    for cap in {value + extra for _, value in points for extra in (0, 1)}:
        expected = min(moves for moves, value in points if value <= cap)
        found = fewest_moves(group, cap)
        if found is not None:
            assert found.bound <= expected <= found.value


@given(group=groups())
def test_no_assignment_is_below_the_minimum_imbalance(group):
    optimum = solve_optimum(group)
    if optimum.imbalance.name == "sum_of_squares":
        assert fewest_moves(group, optimum.imbalance.value - 1) is None
