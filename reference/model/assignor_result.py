"""What came of an assignor's run: an assignment, a loop without end, or an exception."""

from dataclasses import dataclass
from typing import Literal

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import KassayError
from kassay.reference.model.topic_partitions import TopicPartition

JavaClass = Literal[
    "ArithmeticException",
    "ArrayIndexOutOfBoundsException",
    "IllegalArgumentException",
    "IllegalStateException",
    "NoSuchElementException",
    "NullPointerException",
    "PartitionAssignorException",
]


class UpstreamError(KassayError):
    """Real Kafka throws an exception on this group.

    Parameters
    ----------
    java_class
        Simple name of the exception's class.
    detail
        Where and why, in words.

    Examples
    --------
    >>> str(UpstreamError("IllegalStateException", "nobody may take t-3"))
    'IllegalStateException: nobody may take t-3'
    """

    def __init__(self, java_class: JavaClass, detail: str) -> None:
        super().__init__(java_class, detail)
        self.java_class = java_class
        self.detail = detail

    def __str__(self) -> str:
        """Name the class and the reason."""
        return f"{self.java_class}: {self.detail}"


class LivelockError(KassayError):
    """Real Kafka never returns on this group: its reassignment came back to a state it had.

    Parameters
    ----------
    state
        Assignment at the moment that the repetition was found.
    cycle_length
        Passes over the partitions from a state to its first repetition.
    circling
        Partitions that change hands within the cycle, by topic and number.

    Examples
    --------
    >>> print(LivelockError(Assignment({"a": [("t", 0)]}), 2, (TopicPartition("t", 0),)))
    the state repeats every 2 passes; circling partitions: t-0
    """

    def __init__(
        self, state: Assignment, cycle_length: int, circling: tuple[TopicPartition, ...]
    ) -> None:
        super().__init__(state, cycle_length, circling)
        self.state = state
        self.cycle_length = cycle_length
        self.circling = circling

    def __str__(self) -> str:
        """Tell the period and what moves in it."""
        names = ", ".join(str(tp) for tp in self.circling)
        passes = "pass" if self.cycle_length == 1 else "passes"
        return f"the state repeats every {self.cycle_length} {passes}; circling partitions: {names}"


@dataclass(frozen=True, slots=True)
class AssignorResult:
    """What an assignor did with a group; exactly one of the last three is not None.

    Parameters
    ----------
    assignor
        Name of the assignor.
    assignment
        What it assigned.
    livelock
        The state that repeats, where the real class would never return.
    failed
        The exception, where the real class throws.
    """

    assignor: str
    assignment: Assignment | None = None
    livelock: LivelockError | None = None
    failed: UpstreamError | None = None

    @property
    def terminated(self) -> bool:
        """Whether the real class comes to an end on this group, be it with an exception."""
        return self.livelock is None
