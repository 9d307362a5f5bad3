"""Survey groups: the gain of a plan for each, within shared limits, on several processes."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import chain, islice

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.kinds.registry import current_state
from kassay.experiments.planning.plan_verdict import (
    StreamsApplicationError,
    check_planning_start,
    makespan_of,
    other_verdict,
    verdict_of,
)
from kassay.experiments.planning.survey_result import (
    LoadSummary,
    MoveHistory,
    SurveyedGroup,
    SurveyResult,
    UnsurveyedGroup,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import other_reading
from kassay.reference.model.metrics import load_vector, member_units
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import default_levels
from kassay.solver.sizing import limiting_partition
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


def survey_group(
    group: Group,
    *,
    history: MoveHistory | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> SurveyResult:
    """Compute the gain of a plan for one group.

    The plan has the objective of `plan`. Its searches stop at the time limit; the result then
    has the best plan found and its bounds.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> result = survey_group(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.planned.makespan, float(result.gap)
    (11, 10, 0.1)
    """
    try:
        check_planning_start(group)
        return _surveyed(group, history, limits, seed)
    except StreamsApplicationError as error:
        return UnsurveyedGroup(id=group.id, reason=str(error), is_other_type=True)
    except KassayError as error:
        return UnsurveyedGroup(id=group.id, reason=str(error))
    except Exception as error:  # noqa: BLE001 - one bad group must not end the survey
        reason = f"internal error: {type(error).__name__}: {error}"
        return UnsurveyedGroup(id=group.id, reason=reason)


def survey_other_kind(
    document: KindDocument, *, limits: SearchLimits = SearchLimits()
) -> SurveyResult:
    """Compare the current state of a group of another kind than consumers with the optimum."""
    try:
        return current_state(document, limits=limits)
    except KassayError as error:
        return UnsurveyedGroup(id=document.id, reason=str(error), is_other_type=True)


def _surveyed(
    group: Group, history: MoveHistory | None, limits: SearchLimits, seed: int
) -> SurveyResult:
    levels = default_levels(group)
    other = other_reading(group)
    share = limits if other is None else replace(limits, work=limits.work / 2)
    solution = solve(group, levels=levels, limits=share, seed=seed)
    makespan = makespan_of(group, solution)
    if solution.assignment is None or makespan is None:
        reason = "; ".join(solution.conflict) or "no assignment found within the time limit"
        return UnsurveyedGroup(id=group.id, reason=reason)
    current, planned = keep_owners(group), LoadSummary.of(group, solution.assignment)
    relative = member_units(group).relative_loads(load_vector(group, current))
    verdict = verdict_of(group, solution, makespan, levels)
    return SurveyedGroup(
        group=group,
        current=LoadSummary.of(group, current),
        planned=planned,
        moves=LevelValue("movement", verdict.moves, min(verdict.moves, solution.movement.bound)),
        hot=sum(load > planned.makespan for load in relative),
        history=history,
        verdict=verdict,
        other_reading=other_verdict(group, levels, (), limits=share, seed=seed),
        limiting_partition=limiting_partition(group, limits=share, seed=seed),
    )


Progress = Callable[[int, int], None]
"""Function that is called with the number of finished groups and of all groups."""
_MIN_GROUPS_PER_PROCESS = 20
"""Minimum number of groups for which the start of a further process saves time."""
_LIGHT_PARTITIONS = 2_000
"""Maximum number of partitions of equal weight for which a plan takes only milliseconds."""
_STOP_SECONDS = 0.2
"""Time between two checks of the event that stops the survey."""


_ISOLATED_WORK = 1.0
"""Work for a group that is surveyed again, alone in a process."""


def survey_groups(
    groups: Sequence[Group],
    *,
    histories: Mapping[str, MoveHistory] | None = None,
    limits: SearchLimits = SearchLimits(),
    processes: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Iterator[SurveyResult]:
    """Survey groups, and yield each result as soon as it is found.

    Groups with equal weights come first, because their optimum takes milliseconds. The other
    groups share the work that is left equally, on several processes. A group that ends its process
    yields an `UnsurveyedGroup`; the survey continues with the other groups. ``limits`` apply to all
    groups together.
    """
    heavy = [group for group in groups if not _is_light(group)]
    light = [group for group in groups if _is_light(group)]
    budget = SearchBudget.start(limits, seed)
    surveyor = _Surveyor(histories or {}, processes, budget)
    is_parallel = min(processes, len(heavy) // _MIN_GROUPS_PER_PROCESS) > 1
    survey = surveyor.in_processes if is_parallel else surveyor.in_this_process
    for done, result in enumerate(chain(surveyor.in_this_process(light), survey(heavy)), 1):
        if progress is not None:
            progress(done, len(groups))
        yield result


def _is_light(group: Group) -> bool:
    return not group.is_weighted and group.partition_count <= _LIGHT_PARTITIONS


@dataclass(frozen=True, slots=True)
class _Surveyor:
    """Surveyor of groups, which share the work."""

    histories: Mapping[str, MoveHistory]
    processes: int
    budget: SearchBudget

    def in_this_process(self, groups: Sequence[Group]) -> Iterator[SurveyResult]:
        share = self._share(len(groups))
        for group in groups:
            if self.budget.limits.is_stopped:
                return
            limits = replace(self.budget.rest(), work=share)
            yield survey_group(
                group, history=self._history(group), limits=limits, seed=self.budget.seed
            )

    def _share(self, groups: int) -> float:
        """Return the work per group: the same for any number of processes."""
        return self.budget.left / max(groups, 1)

    def in_processes(self, groups: Sequence[Group]) -> Iterator[SurveyResult]:
        """Survey groups in child processes, with at most two waiting groups per process."""
        processes, share = self.processes, self._share(len(groups))
        waiting, left = iter(groups), len(groups)
        running: dict[Future[SurveyResult], Group] = {}
        pool = _new_pool(processes)
        try:
            while left and not self.budget.limits.is_stopped:
                for group in islice(waiting, 2 * processes - len(running)):
                    running[self._submit(pool, group, share)] = group
                finished = wait(running, timeout=_STOP_SECONDS, return_when=FIRST_COMPLETED).done
                lost = []
                for task in finished:
                    group = running.pop(task)
                    if isinstance(task.exception(), BrokenProcessPool):
                        lost.append(group)
                    else:
                        left -= 1
                        yield task.result()
                if lost:
                    pool, left = _new_pool(processes), left - len(lost) - len(running)
                    yield from map(self._isolated, (*lost, *running.values()))
                    running.clear()
        finally:
            _end(pool)

    def _isolated(self, group: Group) -> SurveyResult:
        """Survey one group alone in a new process, because it may have ended the previous one."""
        pool = _new_pool(1)
        try:
            return self._submit(pool, group, _ISOLATED_WORK).result()
        except BrokenProcessPool:
            reason = "the process that surveyed this group ended, possibly without memory"
            return UnsurveyedGroup(id=group.id, reason=reason)
        finally:
            _end(pool)

    def _submit(self, pool: ProcessPoolExecutor, group: Group, work: float) -> Future[SurveyResult]:
        seconds = None if self.budget.limits.time is None else self.budget.seconds
        limits, history = SearchLimits(work=work, time=seconds), self._history(group)
        return pool.submit(
            survey_group, group, history=history, limits=limits, seed=self.budget.seed
        )

    def _history(self, group: Group) -> MoveHistory | None:
        return self.histories.get(group.id or "")


def _new_pool(processes: int) -> ProcessPoolExecutor:
    # A forked child of this process, which can have threads, could wait forever for a lock.
    # The fork server has no threads, and imports the solver only once for all child processes.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which ends its child processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool without waiting for running searches."""
    processes = list((pool._processes or {}).values())  # noqa: SLF001 - kill_workers: Python 3.14
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
