"""Groups on which the real sticky assignors never return."""

import time

import pytest

from kassay.reference import violations
from kassay.reference.assignors import assign, run_assignor
from kassay.reference.model.assignor_result import LivelockError
from tests.reference.assignors.notation import group

ENDLESS = group(
    "t0:5 t13:3 t2:5 t5:2 t6:6",
    c01="t13 t6 | t6-0 t6-1 t6-3 t6-5 @7",
    c02="t0 t5 | t0-0 t0-2 t0-4 @7",
    c07="t2 t6 | t6-2 t6-4 @7",
    c08="t0 t5 | t0-1 t0-3 @7",
    cNEW="t0 t6",
)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_loop_without_end_is_told_within_a_second(assignor: str) -> None:
    start = time.process_time()
    outcome = run_assignor(ENDLESS, assignor)
    assert time.process_time() - start < 1
    assert not outcome.terminated
    assert outcome.assignment is None
    assert outcome.livelock is not None
    assert outcome.livelock.cycle_length >= 1
    assert outcome.livelock.circling


def test_the_state_reached_is_a_valid_assignment() -> None:
    livelock = run_assignor(ENDLESS, "sticky").livelock
    assert livelock is not None
    assert list(violations(ENDLESS, livelock.state)) == []


def test_assigning_raises_what_attempting_returns() -> None:
    with pytest.raises(LivelockError, match="repeats every"):
        assign(ENDLESS, "sticky")


def test_one_partition_more_ends_the_loop() -> None:
    start = group(
        "t0:6 t13:3 t2:5 t5:2 t6:6",
        c01="t13 t6 | t6-0 t6-1 t6-3 t6-5 @7",
        c02="t0 t5 | t0-0 t0-2 t0-4 @7",
        c07="t2 t6 | t6-2 t6-4 @7",
        c08="t0 t5 | t0-1 t0-3 @7",
        cNEW="t0 t6",
    )
    outcome = run_assignor(start, "sticky")
    assert outcome.terminated
    assert outcome.assignment is not None
    assert list(violations(start, outcome.assignment)) == []
