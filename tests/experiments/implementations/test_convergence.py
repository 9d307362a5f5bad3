import pytest
from kassay.experiments.implementations.convergence import (
    MAX_ROUNDS,
    Ending,
    rejoin,
    settle,
    withheld,
)
from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model.assignor_result import Livelock, Outcome, UpstreamFailure

GROUP = Group(
    topics=(Topic(name="t", partitions=2), Topic(name="alone", partitions=4)),
    members=(
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)], generation=4),
        Member(id="b", subscription=("t",)),
    ),
)
HALF = Assignment({"a": [("t", 0)], "b": []})
WHOLE = Assignment({"a": [("t", 0)], "b": [("t", 1)]})


@pytest.fixture
def answers(monkeypatch):
    seen: list[Group] = []

    def give(*outcomes: Outcome) -> list[Group]:
        remaining = list(outcomes)

        def attempt(group: Group, _: str) -> Outcome:
            seen.append(group)
            return remaining.pop(0) if len(remaining) > 1 else remaining[0]

        monkeypatch.setattr("kassay.experiments.implementations.runner.attempt", attempt)
        return seen

    return give


def test_partitions_of_topics_that_nobody_consumes_are_not_withheld():
    assert withheld(GROUP, HALF) == 1
    assert withheld(GROUP, WHOLE) == 0


def test_what_is_withheld_is_handed_out_in_the_rebalance_that_follows(answers):
    seen = answers(Outcome("x", assignment=HALF), Outcome("x", assignment=WHOLE))
    settled = settle(GROUP, "cooperative-sticky")
    assert (settled.ending, settled.assignment, settled.rounds) == (Ending.OK, WHOLE, 2)
    assert seen == [GROUP, rejoin(GROUP, HALF)]
    assert [member.generation for member in seen[1].members] == [5, 5]
    assert seen[1].members[0].owned == [("t", 0)]


def test_an_eager_assignor_that_leaves_partitions_out_is_invalid(answers):
    answers(Outcome("x", assignment=HALF))
    settled = settle(GROUP, "sticky")
    assert settled.ending is Ending.INVALID
    assert settled.detail == "t-1 is assigned to nobody"
    assert settled.assignment is None


def test_withholding_for_ever_is_not_an_end(answers):
    answers(Outcome("x", assignment=HALF))
    settled = settle(GROUP, "cooperative-sticky")
    assert (settled.ending, settled.rounds) == (Ending.NONTERMINATING, MAX_ROUNDS)


def test_a_livelock_and_an_exception_are_endings(answers):
    answers(Outcome("x", livelock=Livelock(HALF, 3, ())))
    assert settle(GROUP, "sticky").ending is Ending.NONTERMINATING
    answers(Outcome("x", failed=UpstreamFailure("NullPointerException", "nobody")))
    settled = settle(GROUP, "sticky")
    assert settled.ending is Ending.FAILED
    assert settled.detail == "NullPointerException: nobody"
