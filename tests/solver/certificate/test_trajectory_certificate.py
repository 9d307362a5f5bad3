"""The checker of trajectories accepts the certificates of the solver and refuses edited ones."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.solver.certificate.certificate import RebalanceEvidence, TrajectoryCertificate
from kassay.solver.certificate.check import trajectory_errors
from kassay.solver.objective import Imbalance, Movement, MovementCost, Tolerance, TopicSpread
from kassay.solver.trajectory.trajectory import optimal_trajectory


def stream() -> list[Group]:
    """Return three rebalances with two level sets; the second one loses a member."""
    topics = (Topic(name="a", partitions=6), Topic(name="b", partitions=3))

    def group(**subscriptions: str) -> Group:
        members = tuple(
            Member(id=name, subscription=tuple(own)) for name, own in subscriptions.items()
        )
        return Group(topics=topics, members=members)

    owned = (("a", 0), ("a", 1), ("a", 2), ("a", 3))
    first = group(p="a", q="ab", r="b", s="b")
    first = replace(first, members=(replace(first.members[0], owned=owned), *first.members[1:]))
    return [first, group(p="a", q="ab", s="b"), group(p="a", q="b", r="b", s="b")]


LEVELS = (Imbalance(Measure.MAKESPAN, Tolerance(absolute=1)), Movement())


Edit = Callable[[TrajectoryCertificate], TrajectoryCertificate]


def _certificate(**changes: Callable[[Any], Any]) -> Edit:
    """Return an edit that replaces fields by functions of their values."""
    return lambda one: replace(
        one, **{name: change(getattr(one, name)) for name, change in changes.items()}
    )


def _rebalance(at: int, **changes: Callable[[Any], Any]) -> Edit:
    """Return an edit that replaces fields of the evidence of a rebalance."""

    def edit(one: TrajectoryCertificate) -> TrajectoryCertificate:
        rows = list(one.rebalances)
        edited = {name: change(getattr(rows[at], name)) for name, change in changes.items()}
        rows[at] = replace(rows[at], **edited)
        return replace(one, rebalances=tuple(rows))

    return edit


@pytest.mark.parametrize("levels", [None, LEVELS])
def test_certificates_of_both_kinds_of_levels_are_accepted(levels) -> None:
    found = optimal_trajectory(stream(), levels=levels)
    assert list(trajectory_errors(stream(), found.assignments, found.certificate)) == []


REFUSED = {
    "higher bound": _certificate(bound=lambda bound: bound + 1),
    "bound above the value": _certificate(bound=lambda _: 100),
    "lower value": _certificate(value=lambda value: value - 1),
    "higher value": _certificate(value=lambda value: value + 1),
    "no prices": _certificate(rebalances=lambda rows: tuple(replace(o, prices={}) for o in rows)),
    "price of an unknown member": _rebalance(0, prices=lambda prices: {**prices, "z": 1}),
    "price out of range": _rebalance(0, prices=lambda prices: {**prices, "p": 2**70}),
    "scale of zero": _certificate(scale=lambda _: 0),
    "negative scale": _certificate(scale=lambda _: -1),
    "scale out of range": _certificate(scale=lambda _: 2**50),
    "smaller scale": _certificate(scale=lambda _: 1),
    "sets in the opposite order": _rebalance(0, member_sets=lambda sets: sets[::-1]),
    "sets merged": _rebalance(0, member_sets=lambda sets: (tuple(chain(*sets)),)),
    "a set is missing": _rebalance(0, member_sets=lambda sets: sets[1:]),
    "a member in two sets": _rebalance(0, member_sets=lambda sets: (*sets, sets[0])),
    "an unknown member in a set": _rebalance(
        0, member_sets=lambda sets: (("z", *sets[0][1:]), *sets[1:])
    ),
    "members exchanged": _rebalance(1, member_sets=lambda _: (("q",), ("p", "s"))),
    "a rebalance is missing": _certificate(rebalances=lambda rows: (rows[0], *rows[2:])),
    "rebalances in the opposite order": _certificate(rebalances=lambda rows: rows[::-1]),
    "a further level": _certificate(levels=lambda levels: (*levels, TopicSpread())),
    "no level": _certificate(levels=lambda _: ()),
    "another cost of moves": _certificate(
        levels=lambda levels: (levels[0], Movement(MovementCost.WEIGHT))
    ),
    "a measure that prices do not prove": _certificate(
        levels=lambda levels: (Imbalance(Measure.SPREAD), levels[1])
    ),
    "a tolerance of the sum of squares": _certificate(
        levels=lambda levels: (replace(levels[0], tolerance=Tolerance(absolute=1)), levels[1])
    ),
}


@pytest.mark.parametrize("edit", REFUSED.values(), ids=REFUSED.keys())
def test_an_edited_certificate_is_refused(edit: Edit) -> None:
    found = optimal_trajectory(stream())
    assert list(trajectory_errors(stream(), found.assignments, edit(found.certificate)))


def test_edited_assignments_are_refused() -> None:
    found = optimal_trajectory(stream())
    first, *following = found.assignments
    uneven = Assignment({**first, "p": (*first["p"], *first["q"]), "q": ()})
    missing = Assignment({**first, "p": first["p"][1:]})
    swapped = Assignment({**first, "p": first["q"], "q": first["p"]})
    for other in (uneven, missing, swapped, following[0]):
        assert list(trajectory_errors(stream(), [other, *following], found.certificate))
    assert list(trajectory_errors(stream(), found.assignments[:2], found.certificate))


def test_a_tolerance_requires_an_assignment_with_the_minimum_maximum() -> None:
    found = optimal_trajectory(stream(), levels=LEVELS)
    assert any(one.best is not None for one in found.certificate.rebalances)
    edit = _certificate(rebalances=lambda rows: tuple(replace(one, best=None) for one in rows))
    errors = trajectory_errors(stream(), found.assignments, edit(found.certificate))
    assert any("minimum makespan" in one for one in errors)


def test_an_assignment_above_a_capacity_proves_no_makespan():
    own, alone = [("t", at) for at in range(4)], [("u", 0)]
    members = (Member("a", ("t",), capacity=1), Member("b", ("t",), owned=own), Member("c", ("u",)))
    group = Group((Topic("t", 4), Topic("u", 1)), members)
    levels = (Imbalance("makespan", Tolerance(absolute=1)), Movement())
    best = Assignment({"a": own[:2], "b": own[2:], "c": alone})
    chosen = Assignment({"a": own[:1], "b": own[1:], "c": alone})
    evidence = RebalanceEvidence((("a", "b", "c"),), {"b": 1}, best=best)
    forged = TrajectoryCertificate(levels, value=1, bound=1, scale=1, rebalances=(evidence,))
    assert list(trajectory_errors([group], [chosen], forged)) != []
    assert optimal_trajectory([group], levels=levels).moves == 0
