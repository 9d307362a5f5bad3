import pytest

from kassay import Assignment, Group
from kassay.experiments.implementations.run_assignor import (
    Ending,
    count_withheld_partitions,
    is_repeatable,
    run_until_stable,
)
from kassay.reference.assignors import AssignorResult
from kassay.reference.model.assignment import LivelockError, rejoin
from kassay.reference.model.errors import UpstreamError
from tests.notation import group

GROUP = group("t:2 alone:4", a="t | t-0..1 @4", b="t")
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

        monkeypatch.setattr("kassay.experiments.implementations.run_assignor.run_assignor", attempt)
        return seen

    return give


def test_a_partition_without_a_subscriber_withholds_no_other_partition(answers):
    unsubscribed = Assignment({"a": [("t", 0), ("alone", 0), ("gone", 7)], "b": [("t", 1)]})
    assert count_withheld_partitions(GROUP, unsubscribed) == 0
    answers(AssignorResult(assignment=unsubscribed))
    result = run_until_stable(GROUP, "cooperative-sticky")
    assert (result.ending, result.rounds) == (Ending.INVALID, 1)


def test_the_next_rebalance_assigns_the_withheld_partitions(answers):
    seen = answers(AssignorResult(assignment=HALF), AssignorResult(assignment=WHOLE))
    result = run_until_stable(GROUP, "cooperative-sticky")
    assert (result.ending, result.assignment, result.rounds) == (Ending.OK, WHOLE, 2)
    assert seen == [GROUP, rejoin(GROUP, HALF)]
    assert [member.generation for member in seen[1].members] == [5, 5]
    assert seen[1].members[0].owned == [("t", 0)]


def test_an_eager_assignor_that_omits_partitions_is_invalid(answers):
    answers(AssignorResult(assignment=HALF))
    result = run_until_stable(GROUP, "sticky")
    assert result.ending is Ending.INVALID
    assert result.detail == "t-1 is not assigned"
    assert result.assignment is None


def test_a_repeated_assignment_that_withholds_partitions_does_not_terminate(answers):
    other = Assignment({"a": [("t", 1)], "b": []})
    answers(*(AssignorResult(assignment=each) for each in (HALF, other, HALF)))
    result = run_until_stable(GROUP, "cooperative-sticky")
    assert (result.ending, result.rounds) == (Ending.NONTERMINATING, 3)
    assert "round 3 repeats the assignment of round 1" in result.detail


def test_livelocks_and_exceptions_are_endings(answers):
    answers(AssignorResult(livelock=LivelockError(HALF, 3, ())))
    assert run_until_stable(GROUP, "sticky").ending is Ending.NONTERMINATING
    answers(AssignorResult(failed=UpstreamError("no owner", "NullPointerException")))
    result = run_until_stable(GROUP, "sticky")
    assert result.ending is Ending.FAILED
    assert result.detail == "NullPointerException: no owner"


def test_the_time_that_a_program_reports_is_the_run_time(answers):
    answers(AssignorResult(assignment=WHOLE, seconds=0.25))
    assert run_until_stable(GROUP, "range").seconds == 0.25


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        (AssignorResult(assignment=WHOLE), True),
        (AssignorResult(assignment=HALF), False),
        (AssignorResult(failed="crash"), False),
        (AssignorResult(livelock="no assignment within 10 seconds"), True),
    ],
)
def test_a_second_run_without_end_is_no_other_answer(monkeypatch, again, expected):
    monkeypatch.setattr("kassay.experiments.implementations.run_assignor.run", lambda *_: again)
    assert is_repeatable(GROUP, "python:own.py:assign", WHOLE) is expected
