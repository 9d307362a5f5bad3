"""The method as a whole."""

from solver.flow.keep import keep_most
from solver.flow.levels import level_sets
from solver.flow.network import build_network
from solver.flow.placing import place
from solver.problem import Placement, Problem


def solve_flow(problem: Problem) -> Placement:
    """Place every row with the least majorised loads and, among those, the least movement.

    Equal weights are taken for granted: only counts are looked at.

    Raises
    ------
    SolverError
        If OR-Tools breaks its word; never for a legal problem.

    Examples
    --------
    >>> from reference.group import Group, Member, Topic
    >>> from solver.problem import build_problem
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=3),),
    ...     members=(
    ...         Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
    ...         Member(id="b", subscription=("t",)),
    ...     ),
    ... )
    >>> solve_flow(build_problem(group)).tolist()
    [0, 0, 1]
    """
    network = build_network(problem)
    return place(network, keep_most(network, level_sets(network)))
