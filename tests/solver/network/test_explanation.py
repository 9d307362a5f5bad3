"""Named small groups: optima by both methods, and explanations."""

import pytest

from kassay import Assignment, Method, loads, solve
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from kassay.reference.assignors import assign
from kassay.solver.network.improving_chains import explain

NAMES = ["A", "B", "C", "D", "E"]
SQUARES = {"A": 3, "B": 3, "C": 6, "D": 91, "E": 300}


@pytest.mark.parametrize("method", [Method.FLOW, Method.CP_SAT])
@pytest.mark.parametrize("name", NAMES)
def test_both_methods_find_and_prove_the_known_optima(name, method):
    known = NAMED_GROUPS[name]
    solution = solve(known.group, method=method)
    assert solution.status == "optimal"
    assert (solution.imbalance.value, solution.movement.value) == (SQUARES[name], known.moves)
    assert (
        tuple(sorted(loads(known.group, solution.assignment).values(), reverse=True)) == known.loads
    )


def explanation_texts(name, assignment):
    return [str(step) for step in explain(NAMED_GROUPS[name].group, assignment)]


def test_sticky_misses_a_chain_of_two_transfers_in_group_a():
    sticky = assign(NAMED_GROUPS["A"].group, "sticky")
    (step,) = explain(NAMED_GROUPS["A"].group, sticky)
    assert str(step) == (
        "c0 gives t1-0 to c1, c1 gives t0-0 to c2: c0 drops from 2 to 1, "
        "c2 rises from 0 to 1, as many moves as without this step"
    )


def test_the_chain_of_group_b_costs_two_moves():
    sticky = assign(NAMED_GROUPS["B"].group, "sticky")
    (text,) = explanation_texts("B", sticky)
    assert text == (
        "c2 gives t1-0 to c1, c1 gives t0-0 to c0: c2 drops from 2 to 1, "
        "c0 rises from 0 to 1, 2 moves more than without this step"
    )


def test_an_unnecessary_move_of_group_c_is_reversed():
    sticky = assign(NAMED_GROUPS["C"].group, "sticky")
    (step,) = explain(NAMED_GROUPS["C"].group, sticky)
    assert (step.moves, step.imbalance) == (-1, (6, 6))


def test_group_e_needs_a_chain_of_two_transfers():
    owned = {m.id: m.owned for m in NAMED_GROUPS["E"].group.members}
    (step,) = explain(NAMED_GROUPS["E"].group, Assignment(owned))
    assert len(step.transfers) == 2
    assert step.moves == 2
    assert step.loads == (("M3", 11, 10), ("M1", 9, 10))


def test_a_direct_transfer_balances_two_loads():
    group = NAMED_GROUPS["A"].group
    lopsided = Assignment({"c0": [], "c1": [("t0", 0), ("t1", 0), ("t1", 1)], "c2": []})
    steps = explain(group, lopsided)
    assert [len(step.transfers) for step in steps] == [1, 1]
    assert "no load changes" not in str(steps[0])


def test_an_optimal_assignment_has_no_explanation():
    group = NAMED_GROUPS["D"].group
    assert explain(group, solve(group).assignment) == ()
