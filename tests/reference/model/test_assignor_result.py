"""Outcomes as data."""

from kassay.reference import Assignment, TopicPartition
from kassay.reference.model.assignor_result import AssignorResult, LivelockError, UpstreamError


def test_an_exception_is_an_end_and_a_livelock_is_none() -> None:
    failed = UpstreamError("NullPointerException", "nobody is asked")
    endless = LivelockError(Assignment({}), 3, (TopicPartition("t", 1),))
    assert AssignorResult("sticky", failed=failed).terminated
    assert not AssignorResult("sticky", livelock=endless).terminated


def test_a_livelock_tells_its_period_and_what_circles() -> None:
    endless = LivelockError(Assignment({}), 3, (TopicPartition("t", 1), TopicPartition("u", 0)))
    assert str(endless) == "the state repeats every 3 passes; circling partitions: t-1, u-0"
