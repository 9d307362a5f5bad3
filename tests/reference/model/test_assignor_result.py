"""Results of assignors."""

from kassay.reference import Assignment, TopicPartition
from kassay.reference.model.assignor_result import AssignorResult, LivelockError, UpstreamError


def test_an_assignor_terminates_with_an_exception_but_not_in_a_livelock() -> None:
    failed = UpstreamError("NullPointerException", "no member is subscribed")
    livelock = LivelockError(Assignment({}), 3, (TopicPartition("t", 1),))
    assert AssignorResult("sticky", failed=failed).terminated
    assert not AssignorResult("sticky", livelock=livelock).terminated


def test_a_livelock_has_its_cycle_length_and_partitions_in_the_message() -> None:
    livelock = LivelockError(Assignment({}), 3, (TopicPartition("t", 1), TopicPartition("u", 0)))
    assert (
        str(livelock)
        == "the state repeats every 3 passes; partitions that move back and forth: t-1, u-0"
    )
