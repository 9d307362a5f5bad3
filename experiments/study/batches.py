"""How a study is cut: into waves, each kept once it is done, and a wave into tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

from kassay.experiments.study.case import Case
from kassay.experiments.study.families.registry import FAMILIES

BATCH_CASES = 2_000
TASK_SECONDS = 1.0
_LEAST_SHARE = 0.1
_TASKS_LEFT = 16
_USUAL_ASSIGNORS = 9


@dataclass(frozen=True, slots=True)
class BatchedCase:
    """A case and its place in its wave."""

    place: int
    case: Case


def batches_of(cases: Sequence[Case], *, wave: int = BATCH_CASES) -> list[Sequence[Case]]:
    """Cut a study into waves of nearly equal size, each a fair mix of the study.

    Examples
    --------
    >>> from kassay.experiments.study.case import cases_of
    >>> cases = list(cases_of(["mixed-join"], seeds=5, assignors=["range"]))
    >>> [[case.seed for case in wave] for wave in batches_of(cases, wave=2)]
    [[0, 3], [1, 4], [2]]
    """
    count = -(-len(cases) // wave)
    return [cases[first::count] for first in range(count)]


def tasks_of(
    cases: Sequence[Case], *, tasks: int | None = None, seconds: float = TASK_SECONDS
) -> list[tuple[BatchedCase, ...]]:
    """Cut a wave into tasks, costly groups first: what comes last is small.

    Tasks shrink as the wave comes to its end, so that no core waits long for the last one:
    guided self-scheduling (Polychronopoulos and Kuck, IEEE Transactions on Computers 36(12),
    1987).

    Parameters
    ----------
    cases
        The wave.
    tasks
        How many tasks, of nearly equal numbers of cases; by default as many as it takes
        for each to be expected to last about ``seconds``, towards the end a tenth of that.
    seconds
        How long a task is to last. A group that takes longer is a task of its own.

    Examples
    --------
    >>> from kassay.experiments.study.case import cases_of
    >>> cases = list(cases_of(["mixed-join"], seeds=3, assignors=["range"]))
    >>> [[placed.place for placed in task] for task in tasks_of(cases, tasks=2)]
    [[0, 2], [1]]
    """
    placed = [BatchedCase(place, case) for place, case in enumerate(cases)]
    costs = [expected_seconds(case) for case in cases]
    placed.sort(key=lambda here: (-costs[here.place], here.place))
    if tasks is not None:
        return [tuple(placed[first::tasks]) for first in range(min(tasks, len(placed)))]
    found: list[tuple[BatchedCase, ...]] = []
    begin, spent, left = 0, 0.0, sum(costs)
    for index, here in enumerate(placed):
        spent += costs[here.place]
        if spent >= min(seconds, max(left / _TASKS_LEFT, seconds * _LEAST_SHARE)):
            found.append(tuple(placed[begin : index + 1]))
            begin, spent, left = index + 1, 0.0, left - spent
    return [*found, tuple(placed[begin:])] if begin < len(placed) else found


def expected_seconds(case: Case) -> float:
    """Guess how long a case takes. It decides about order and tasks, never about results."""
    family = FAMILIES.get(case.family)
    usual = 0.01 if family is None else family.expected_seconds(case.seed)
    return usual * (2 + len(case.assignors)) / (2 + _USUAL_ASSIGNORS)
