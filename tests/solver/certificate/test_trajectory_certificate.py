"""The checker of trajectories accepts the certificates of the solver and refuses edited ones."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import RebalanceEvidence, TrajectoryCertificate
from kassay.solver.certificate.check import trajectory_errors
from kassay.solver.certificate.documents import (
    parse_trajectory_certificate,
    trajectory_certificate_document,
)
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.trajectory.trajectory import optimal_trajectory

Document = dict[str, Any]


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


def errors(document: Document, assignments: list[Assignment] | None = None) -> list[str]:
    """Return the errors of a document of the strict levels, after a round trip through JSON."""
    certificate = parse_trajectory_certificate(json.loads(json.dumps(document)))
    return list(trajectory_errors(stream(), assignments or _assignments(), certificate))


def _assignments() -> list[Assignment]:
    return list(optimal_trajectory(stream()).assignments)


def _document() -> Document:
    return trajectory_certificate_document(optimal_trajectory(stream()).certificate)


def test_certificates_of_both_kinds_of_levels_are_accepted() -> None:
    assert errors(_document()) == []
    found = optimal_trajectory(stream(), levels=LEVELS)
    document = json.loads(json.dumps(trajectory_certificate_document(found.certificate)))
    certificate = parse_trajectory_certificate(document)
    assert certificate == found.certificate
    assert list(trajectory_errors(stream(), found.assignments, certificate)) == []


def _set(*path: str | int, value: Any) -> Callable[[Document], None]:
    def edit(document: Document) -> None:
        *parents, last = path
        for key in parents:
            document = document[key]
        document[last] = value(document[last]) if callable(value) else value

    return edit


def _drop(*path: str | int) -> Callable[[Document], None]:
    def edit(document: Document) -> None:
        *parents, last = path
        for key in parents:
            document = document[key]
        del document[last]

    return edit


REFUSED = {
    "higher bound": _set("bound", value=lambda bound: bound + 1),
    "bound above the value": _set("bound", value=100),
    "lower value": _set("value", value=lambda value: value - 1),
    "higher value": _set("value", value=lambda value: value + 1),
    "no prices": _set("rebalances", value=lambda rows: [row | {"prices": {}} for row in rows]),
    "price of an unknown member": _set("rebalances", 0, "prices", "z", value=1),
    "price out of range": _set("rebalances", 0, "prices", "p", value=2**70),
    "scale of zero": _set("scale", value=0),
    "negative scale": _set("scale", value=-1),
    "scale out of range": _set("scale", value=2**50),
    "smaller scale": _set("scale", value=1),
    "sets in the opposite order": _set("rebalances", 0, "member_sets", value=lambda s: s[::-1]),
    "sets merged": _set("rebalances", 0, "member_sets", value=lambda s: [[*chain(*s)]]),
    "a set is missing": _drop("rebalances", 0, "member_sets", 0),
    "a member in two sets": _set("rebalances", 0, "member_sets", value=lambda s: [*s, s[0]]),
    "an unknown member in a set": _set("rebalances", 0, "member_sets", 0, 0, value="z"),
    "members exchanged": _set("rebalances", 1, "member_sets", value=[["q"], ["p", "s"]]),
    "a rebalance is missing": _drop("rebalances", 1),
    "rebalances in the opposite order": _set("rebalances", value=lambda rows: rows[::-1]),
    "a further level": _set("levels", value=lambda rows: [*rows, {"level": "topic_spread"}]),
    "no level": _set("levels", value=[]),
    "another cost of moves": _set("levels", 1, "cost", value="weight"),
    "a measure that prices do not prove": _set("levels", 0, "level", value="spread"),
    "a tolerance of the sum of squares": _set("levels", 0, "tolerance", value=[1, 0, 1]),
}


@pytest.mark.parametrize("edit", REFUSED.values(), ids=REFUSED.keys())
def test_an_edited_certificate_is_refused(edit: Callable[[Document], None]) -> None:
    document = _document()
    edit(document)
    assert errors(document)


MALFORMED = {
    "version": _set("version", value=2),
    "unknown key": _set("color", value=1),
    "unknown key of a rebalance": _set("rebalances", 0, "color", value=1),
    "bound is a text": _set("bound", value="3"),
    "price is a fraction": _set("rebalances", 0, "prices", "p", value=0.5),
    "member is a number": _set("rebalances", 0, "member_sets", 0, 0, value=1),
    "scale is missing": _drop("scale"),
}


@pytest.mark.parametrize("edit", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_certificate_is_an_input_error(edit: Callable[[Document], None]) -> None:
    document = _document()
    edit(document)
    with pytest.raises(InputError, match="certificate"):
        errors(document)


def test_edited_assignments_are_refused() -> None:
    document, assignments = _document(), _assignments()
    first = dict(assignments[0])
    uneven = Assignment({**first, "p": (*first["p"], *first["q"]), "q": ()})
    missing = Assignment({**first, "p": first["p"][1:]})
    swapped = Assignment({**first, "p": first["q"], "q": first["p"]})
    for other in (uneven, missing, swapped, assignments[1]):
        assert errors(document, [other, *assignments[1:]])
    assert errors(document, assignments[:2])


def test_a_tolerance_requires_an_assignment_with_the_minimum_maximum() -> None:
    found = optimal_trajectory(stream(), levels=LEVELS)
    document = trajectory_certificate_document(found.certificate)
    edited = json.loads(json.dumps(document))
    dropped = [row.pop("best", None) for row in edited["rebalances"]]
    assert any(dropped)
    certificate = parse_trajectory_certificate(edited)
    assert any(
        "minimum makespan" in one
        for one in trajectory_errors(stream(), found.assignments, certificate)
    )


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
    assert optimal_trajectory([group], levels=levels).value == 0


def test_a_member_may_have_the_name_of_a_key():
    best = Assignment({"assignment": [("t", 0)], "b": [("t", 1)]})
    evidence = RebalanceEvidence((("assignment", "b"),), {}, best=best)
    levels = (Imbalance("makespan"), Movement())
    certificate = TrajectoryCertificate(levels, value=1, bound=1, scale=1, rebalances=(evidence,))
    document = trajectory_certificate_document(certificate)
    assert parse_trajectory_certificate(document).rebalances[0].best == best
