import pytest

from kassay.experiments.implementations.convergence import (
    MAX_ROUNDS,
    Ending,
    run_until_stable,
    withheld_partitions,
)
from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model.assignor_result import AssignorResult, LivelockError, UpstreamError
from kassay.reference.model.ownership import rejoin

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

    def give(*outcomes: AssignorResult) -> list[Group]:
        remaining = list(outcomes)

        def attempt(group: Group, _: str) -> AssignorResult:
            seen.append(group)
            return remaining.pop(0) if len(remaining) > 1 else remaining[0]

        monkeypatch.setattr("kassay.experiments.implementations.runner.run_assignor", attempt)
        return seen

    return give


def test_partitions_of_topics_that_nobody_consumes_are_not_withheld():
    assert withheld_partitions(GROUP, HALF) == 1
    assert withheld_partitions(GROUP, WHOLE) == 0


def test_what_is_withheld_is_handed_out_in_the_rebalance_that_follows(answers):
    seen = answers(AssignorResult("x", assignment=HALF), AssignorResult("x", assignment=WHOLE))
    settled = run_until_stable(GROUP, "cooperative-sticky")
    assert (settled.ending, settled.assignment, settled.rounds) == (Ending.OK, WHOLE, 2)
    assert seen == [GROUP, rejoin(GROUP, HALF)]
    assert [member.generation for member in seen[1].members] == [5, 5]
    assert seen[1].members[0].owned == [("t", 0)]


def test_an_eager_assignor_that_leaves_partitions_out_is_invalid(answers):
    answers(AssignorResult("x", assignment=HALF))
    settled = run_until_stable(GROUP, "sticky")
    assert settled.ending is Ending.INVALID
    assert settled.detail == "t-1 is assigned to nobody"
    assert settled.assignment is None


def test_withholding_for_ever_is_not_an_end(answers):
    answers(AssignorResult("x", assignment=HALF))
    settled = run_until_stable(GROUP, "cooperative-sticky")
    assert (settled.ending, settled.rounds) == (Ending.NONTERMINATING, MAX_ROUNDS)


def test_a_livelock_and_an_exception_are_endings(answers):
    answers(AssignorResult("x", livelock=LivelockError(HALF, 3, ())))
    assert run_until_stable(GROUP, "sticky").ending is Ending.NONTERMINATING
    answers(AssignorResult("x", failed=UpstreamError("NullPointerException", "nobody")))
    settled = run_until_stable(GROUP, "sticky")
    assert settled.ending is Ending.FAILED
    assert settled.detail == "NullPointerException: nobody"
