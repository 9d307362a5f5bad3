"""Groups on which Kafka's sticky assignors do not terminate."""

from dataclasses import replace

import pytest

from kassay import violations
from kassay.reference.assignors import assign, run_assignor
from kassay.reference.model.assignment import LivelockError
from tests.notation import group

NONTERMINATING = group(
    "t0:5 t13:3 t2:5 t5:2 t6:6",
    c01="t13 t6 | t6-0 t6-1 t6-3 t6-5 @7",
    c02="t0 t5 | t0-0 t0-2 t0-4 @7",
    c07="t2 t6 | t6-2 t6-4 @7",
    c08="t0 t5 | t0-1 t0-3 @7",
    cNEW="t0 t6",
)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_nontermination_of_the_sticky_assignor_is_detected(assignor: str) -> None:
    outcome = run_assignor(NONTERMINATING, assignor)
    assert not outcome.terminated
    assert outcome.assignment is None
    assert outcome.livelock is not None
    assert outcome.livelock.cycle_length >= 1
    assert outcome.livelock.circling


def test_repeated_state_of_a_livelock_is_a_valid_assignment() -> None:
    livelock = run_assignor(NONTERMINATING, "sticky").livelock
    assert livelock is not None
    assert list(violations(NONTERMINATING, livelock.state)) == []


def test_assign_raises_the_error_that_run_assignor_returns() -> None:
    with pytest.raises(LivelockError, match="the state repeats"):
        assign(NONTERMINATING, "sticky")


def test_sticky_terminates_if_the_livelock_group_has_one_more_partition() -> None:
    topics = tuple(
        replace(topic, partitions=6) if topic.name == "t0" else topic
        for topic in NONTERMINATING.topics
    )
    start = replace(NONTERMINATING, topics=topics)
    outcome = run_assignor(start, "sticky")
    assert outcome.terminated
    assert outcome.assignment is not None
    assert list(violations(start, outcome.assignment)) == []
