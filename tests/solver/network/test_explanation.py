"""Texts of the explanations of named small groups."""

from kassay import solve
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.assignors import assign
from kassay.solver.network.improving_chains import explain


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


def test_an_optimal_assignment_has_no_explanation():
    group = NAMED_GROUPS["D"].group
    assert explain(group, solve(group).assignment) == ()
