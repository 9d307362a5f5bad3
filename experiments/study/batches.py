"""Split a study into batches, which are committed one by one, and a batch into tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

from kassay.experiments.study.case import Case
from kassay.experiments.study.families.registry import FAMILIES

BATCH_CASES = 2_000
TASK_SECONDS = 1.0
_MIN_TASK_SHARE = 0.1
_REMAINING_TASKS = 16
_USUAL_ASSIGNORS = 9


@dataclass(frozen=True, slots=True)
class BatchedCase:
    """A case and its position in its batch."""

    place: int
    case: Case


def batches_of(cases: Sequence[Case], *, wave: int = BATCH_CASES) -> list[Sequence[Case]]:
    """Split a study into batches of up to ``wave`` cases, each a sample of the whole study.

    Examples
    --------
    >>> from kassay.experiments.study.case import cases_of
    >>> cases = list(cases_of(["mixed-join"], seeds=5, assignors=["range"]))
    >>> [[case.seed for case in batch] for batch in batches_of(cases, wave=2)]
    [[0, 3], [1, 4], [2]]
    """
    count = -(-len(cases) // wave)
    return [cases[first::count] for first in range(count)]


def tasks_of(
    cases: Sequence[Case], *, tasks: int | None = None, seconds: float = TASK_SECONDS
) -> list[tuple[BatchedCase, ...]]:
    """Split a batch into tasks, expensive cases first and small tasks last.

    Guided self-scheduling (Polychronopoulos and Kuck, IEEE Transactions on Computers 36(12),
    1987): small tasks at the end keep all cores busy.

    Parameters
    ----------
    cases
        The batch.
    tasks
        Number of tasks with nearly equal numbers of cases; by default as many as needed for
        tasks of about ``seconds``, and a tenth of that at the end.
    seconds
        Expected time per task. A longer case is a task of its own.

    Examples
    --------
    >>> from kassay.experiments.study.case import cases_of
    >>> cases = list(cases_of(["mixed-join"], seeds=3, assignors=["range"]))
    >>> [[batched.place for batched in task] for task in tasks_of(cases, tasks=2)]
    [[0, 2], [1]]
    """
    costs = [expected_seconds(case) for case in cases]
    ordered = [BatchedCase(place, case) for place, case in enumerate(cases)]
    ordered.sort(key=lambda batched: (-costs[batched.place], batched.place))
    if tasks is not None:
        return [tuple(ordered[first::tasks]) for first in range(min(tasks, len(ordered)))]
    result: list[tuple[BatchedCase, ...]] = []
    start, cost, remaining = 0, 0.0, sum(costs)
    for end, batched in enumerate(ordered, start=1):
        cost += costs[batched.place]
        limit = min(seconds, max(remaining / _REMAINING_TASKS, seconds * _MIN_TASK_SHARE))
        if cost >= limit or end == len(ordered):
            result.append(tuple(ordered[start:end]))
            start, cost, remaining = end, 0.0, remaining - cost
    return result


def expected_seconds(case: Case) -> float:
    """Estimate the time of a case. It affects order and tasks, never results."""
    family = FAMILIES.get(case.family)
    usual = 0.01 if family is None else family.expected_seconds(case.seed)
    return usual * (2 + len(case.assignors)) / (2 + _USUAL_ASSIGNORS)
