"""Ids of the tasks of Kafka Streams."""

from typing import NamedTuple


class TaskId(NamedTuple):
    """Subtopology and partition of a task, upstream ``TaskId`` without a topology name."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


def parse_task(text: str) -> TaskId:
    """Parse the text of a task.

    Examples
    --------
    >>> parse_task("0_1")
    TaskId(subtopology=0, partition=1)
    """
    subtopology, _, partition = text.partition("_")
    return TaskId(int(subtopology), int(partition))
