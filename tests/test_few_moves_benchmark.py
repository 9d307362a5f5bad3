"""Open benchmark of few moves: instances, checker and contestants."""

import json
import random
import time

import pytest

from benchmarks.few_moves import certify
from benchmarks.few_moves.__main__ import run
from benchmarks.few_moves.check import assignment_of, check, main, proven_moves
from benchmarks.few_moves.contestants import CONTESTANTS
from benchmarks.few_moves.instances import instance, published_names
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.load_metrics import loads
from tests import brute_force
from tests.solver.random_cases import limited_problems, weighted_problems

SMALL = "two-speed/mixed/drifted/1%/40/4/3"


def test_a_name_gives_the_same_instance_again():
    assert instance(SMALL) == instance(SMALL)
    assert instance(SMALL) != instance(SMALL[:-1] + "4")
    assert all(instance(name).group.is_weighted for name in published_names())


def test_the_checker_counts_loads_and_moves():
    counted = 0
    for group, problem in weighted_problems(random.Random(3), 60):
        owner = brute_force.owners(group)
        for placement in list(brute_force.every_placement(group))[:20]:
            by_member = brute_force.by_member(group, placement)
            assignment = {member: list(map(list, tps)) for member, tps in by_member.items()}
            document = consumed_document(group)
            load, moves, reasons = check(document, assignment, problem.total)
            assert reasons == []
            assert load == max(brute_force.loads_of(group, placement), default=0)
            assert moves == sum(owner.get(tp, member) != member for tp, member in placement.items())
            counted += 1
    assert counted > 300


def test_no_prices_prove_more_moves_than_needed():
    rng = random.Random(4)
    strict = 0
    for group, _, max_load, moves in limited_problems(rng, 80, slack=4):
        document = consumed_document(group)
        for _turn in range(5):
            prices = {
                name: [rng.randint(1, 3) for _ in range(topic["partitions"])]
                for name, topic in document["topics"].items()
            }
            certificate = {"prices": prices, "scale": 2, "grain": rng.randint(1, 3)}
            bound = proven_moves(document, certificate, max_load)
            assert bound <= moves
            strict += bound > 0
    assert strict > 10


@pytest.mark.long
def test_a_new_certificate_is_never_worse_than_the_known_one(monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)
    one = instance("log-normal/identical/in-turn/1%/60/5/1")
    first = certify.improve(one, 2.0, None)
    values = certify.known_values(one, first)
    assert 0 < values["bound"] <= values["moves"]
    following = certify.known_values(one, certify.improve(one, 2.0, first))
    assert following["bound"] >= values["bound"]
    assert following["moves"] <= values["moves"]


def test_an_assignment_with_fewer_moves_replaces_that_of_a_certificate():
    one = instance("log-normal/identical/in-turn/1%/60/5/1")
    group = group_document(one.group)
    known = certify.improve(one, 0.0, None)
    owners = {member.id: list(member.owned) for member in one.group.members}
    best = certify.improve(one, 1.0, known)
    changed = certify.with_assignment(one, known, assignment_of(group, best))
    values = certify.known_values(one, changed)
    assert values["moves"] == certify.known_values(one, best)["moves"]
    assert values["bound"] == certify.known_values(one, known)["bound"]
    with pytest.raises(ValueError, match="the maximum load"):
        certify.with_assignment(one, known, owners)


def test_every_best_known_value_has_a_certificate():
    known = json.loads(certify.BEST_KNOWN.read_text())
    assert list(known) == list(published_names())
    for name, values in known.items():
        one, path = instance(name), certify.certificate_path(name)
        group, certificate = group_document(one.group), json.loads(path.read_text())
        load, moves, reasons = check(group, assignment_of(group, certificate), one.max_load)
        assert (moves, reasons) == (values["moves"], [])
        assert load <= one.max_load


@pytest.mark.long
@pytest.mark.parametrize("name", list(published_names()))
def test_the_prices_of_a_certificate_prove_the_best_known_bound(name):
    one, path = instance(name), certify.certificate_path(name)
    known = json.loads(certify.BEST_KNOWN.read_text())
    assert certify.known_values(one, json.loads(path.read_text())) == known[name]


def test_the_checker_prints_the_values_of_a_certificate(tmp_path, capsys, monkeypatch):
    one = instance("log-normal/identical/in-turn/1%/60/5/1")
    group, path = tmp_path / "group.json", tmp_path / "certificate.json"
    group.write_text(json.dumps(group_document(one.group)))
    certificate = certify.improve(one, 0.5, None)
    path.write_text(json.dumps(certificate))
    monkeypatch.setattr("sys.argv", ["check.py", str(group), str(path), str(one.max_load)])
    assert main() == 0
    values = certify.known_values(one, certificate)
    assignment = Assignment(assignment_of(group_document(one.group), certificate))
    assert capsys.readouterr().out == (
        f"maximum load {max(loads(one.group, assignment).values())}, {values['moves']} moves\n"
        f"at least {values['bound']} moves\n"
    )


def consumed_document(group):
    document = group_document(group)
    consumed = {topic for member in group.members for topic in member.subscription}
    topics = document["topics"].items()
    return document | {"topics": {name: topic for name, topic in topics if name in consumed}}


def test_the_checker_refuses_what_is_not_a_solution():
    one = instance("log-normal/identical/in-turn/1%/30/3/1")
    document = group_document(one.group)
    owned = {member.id: list(map(list, member.owned)) for member in one.group.members}
    greatest = max(loads(one.group, Assignment(owned)).values())
    assert check(document, owned, greatest) == (greatest, 0, [])
    assert check(document, owned, greatest - 1)[2] == [
        f"the maximum load {greatest} is above {greatest - 1}"
    ]
    first = next(iter(owned))
    assert check(document, {**owned, first: owned[first][1:]}, greatest)[2] == [
        "1 partitions are not assigned"
    ]
    twice = {**owned, first: [*owned[first], owned[first][0]]}
    assert "is assigned twice" in check(document, twice, greatest * 2)[2][0]
    unknown = {**owned, first: [*owned[first], ["x", 0]]}
    assert check(document, unknown, greatest)[2] == ["x-0 does not exist"]


@pytest.mark.parametrize("contestant", [name for name in CONTESTANTS if name != "Rebalancer"])
def test_the_result_of_each_contestant_is_checked(contestant):
    result = run(instance(SMALL), contestant, 20.0)
    if contestant in {"kassay", "plain CP-SAT", "HiGHS"}:
        assert result.moves is not None
        assert result.bound is None or result.bound <= result.moves
    assert result.note or result.moves is not None
