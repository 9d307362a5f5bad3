"""Result of an assignor: an assignment, a livelock, or an exception."""

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
    "IndexOutOfBoundsException",
    "NoSuchElementException",
    "NullPointerException",
    "PartitionAssignorException",
]


class UpstreamError(KassayError):
    """Error: Kafka's assignor throws an exception for this group.

    ``java_class`` is the simple name of the exception class, ``detail`` the reason. The class is
    None for an assignor of another library.
    """

    def __init__(self, java_class: JavaClass | None, detail: str) -> None:
        super().__init__(java_class, detail)
        self.java_class = java_class
        self.detail = detail

    def __str__(self) -> str:
        return self.detail if self.java_class is None else f"{self.java_class}: {self.detail}"


class LivelockError(KassayError):
    """Error: Kafka's assignor does not terminate, because its state repeats.

    Parameters
    ----------
    state
        Assignment when the repetition was detected.
    cycle_length
        Passes over the partitions from a state to its first repetition.
    circling
        Partitions that move within the cycle, by topic and number.
    """

    def __init__(
        self, state: Assignment, cycle_length: int, circling: tuple[TopicPartition, ...]
    ) -> None:
        super().__init__(state, cycle_length, circling)
        self.state = state
        self.cycle_length = cycle_length
        self.circling = circling

    def __str__(self) -> str:
        names = ", ".join(str(tp) for tp in self.circling)
        passes = "in every pass" if self.cycle_length == 1 else f"every {self.cycle_length} passes"
        return f"the state repeats {passes}; partitions that move back and forth: {names}"


@dataclass(frozen=True, slots=True)
class AssignorResult:
    """Result of an assignor for a group: an assignment, a livelock or an exception.

    Exactly one of the last three fields is not None. ``livelock`` is set if the real assignor does
    not terminate, ``failed`` if it throws.
    """

    assignor: str
    assignment: Assignment | None = None
    livelock: LivelockError | None = None
    failed: UpstreamError | None = None

    @property
    def terminated(self) -> bool:
        """Return whether Kafka's assignor terminates, possibly with an exception."""
        return self.livelock is None
