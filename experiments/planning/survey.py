"""Survey groups, and rank them by the improvement that a plan of each group gives."""

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import chain, islice

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.planning import plan_result
from kassay.experiments.planning.cause_evidence import Cause
from kassay.experiments.planning.kind_plan import KindPlan, plan_kind
from kassay.experiments.planning.recommended_action import NOTHING, ToDo, other_text, read_group
from kassay.experiments.planning.scale import MoreMembers, more_members
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.assignment import Assignment, consumed_partitions
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import (
    assignor_caveat,
    hides_idle_members,
    other_reading,
    rebalance_caveat,
    target_assignment,
)
from kassay.reference.model.load_metrics import Measure, load_vector, measures, member_units
from kassay.solver import capacity_planning
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import default_levels
from kassay.solver.solution import LevelValue, value_and_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """Maximum load, spread and number of idle members of an assignment."""

    makespan: int
    spread: int
    idle: int

    @classmethod
    def of(cls, group: Group, assignment: Assignment) -> "LoadSummary":
        """Compute the load summary of an assignment.

        Members without a consumed topic are idle, and do not count in the spread.
        """
        values = measures(group, assignment)
        return cls(
            makespan=values[Measure.MAKESPAN],
            spread=values[Measure.SPREAD],
            idle=len(group.members) - sum(load > 0 for load in load_vector(group, assignment)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveHistory:
    """Numbers of moves in the recorded rebalances of a group."""

    rebalances: int
    moves: int
    unnecessary_moves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedGroup:
    """Loads of a group before and after a plan, with the number of moves.

    Parameters
    ----------
    current, planned
        Loads before and after the plan. Partitions without an owner count for their least loaded
        subscriber.
    moves
        Number of moves of the plan, with a lower bound for equal or lower imbalance.
    hot
        Members with a load above the planned maximum load.
    lag
        Number of messages that the group has not consumed yet, or None if unknown.
    other_reading
        Result under the other assumption about unknown subscriptions; None if both are equal.
    more_members
        First useful number of members above the current one, as in `scale`.
    """

    group: Group
    current: LoadSummary
    planned: LoadSummary
    moves: LevelValue
    hot: int
    history: MoveHistory | None
    verdict: plan_result.Verdict
    lag: int | None
    other_reading: "SurveyedGroup | None"
    limiting_partition: capacity_planning.LimitingPartition | None
    more_members: MoreMembers
    cause: Cause | None
    finding: Cause | None
    to_do: ToDo

    @property
    def id(self) -> str | None:
        """Return the id of the group."""
        return self.group.id

    @property
    def state(self) -> str | None:
        """Return the state of the group."""
        return self.group.status.state

    @property
    def members(self) -> int:
        """Return the number of members."""
        return len(self.group.members)

    @property
    def partitions(self) -> int:
        """Return the number of partitions of subscribed topics."""
        return int(consumed_partitions(self.group).sum())

    @property
    def makespan(self) -> LevelValue:
        """Return the planned maximum load, with a lower bound."""
        return self.verdict.makespan

    @property
    def gap(self) -> Fraction:
        """Return the decrease of the maximum load by the plan, relative to the planned load."""
        after = self.planned.makespan
        return _share(max(0, self.current.makespan - after), after)

    @property
    def gap_limit(self) -> Fraction:
        """Return an upper bound on `gap` for any assignment instead of the planned one."""
        bound = self.makespan.bound
        return _share(max(0, self.current.makespan - bound), bound)

    @property
    def unnecessary_moves(self) -> int | None:
        """Return the number of unnecessary moves in the recorded rebalances, or None."""
        return None if self.history is None else self.history.unnecessary_moves

    @property
    def has_gain(self) -> bool:
        """Return whether the plan lowers the maximum load, spread or number of idle members."""
        now, then = self.current, self.planned
        return then.makespan < now.makespan or then.spread < now.spread or then.idle < now.idle

    @property
    def idle(self) -> int | None:
        """Return the number of idle members, or None if it is unknown."""
        return None if hides_idle_members(self.group) else self.current.idle

    @property
    def remarks(self) -> str:
        """Return remarks on the result: its condition, the other reading and caveats."""
        condition = self.verdict.condition
        parts = (
            None if self.group.members else plan_result.no_members(self.group),
            None if condition is None or self.cause_text else f"if {condition}",
            other_text(self, self.other_reading),
            None if self.caveat == str(self.cause) else self.caveat,
            self.limiting_partition,
        )
        return "; ".join(str(part).rstrip(".") for part in parts if part is not None)

    @property
    def cause_text(self) -> str:
        """Return the cause (or finding) and the action, or an empty text without both."""
        found = str(self.cause or self.finding or "")
        if not found and self.to_do == NOTHING:
            return ""
        text = plan_result.under(self.verdict.condition, f"{found} To do: {self.to_do}".strip())
        return plan_result.shorten(text, plan_result.short_names(self.group.members))

    @property
    def cause_words(self) -> str:
        """Return the cause (or finding) in few words, or an empty text without both."""
        found = self.cause or self.finding
        return "" if found is None else found.kind.replace("-", " ")

    @property
    def caveat(self) -> str | None:
        """Return a warning about a rebalance or a contradictory assignor name, or None."""
        return rebalance_caveat(self.group) or assignor_caveat(self.group)

    def shown(self, load: int) -> int | float:
        """Convert a relative load to the load of the fastest member."""
        return member_units(self.group).shown(load)

    def values(self) -> dict[str, Fraction | float | None]:
        """Return the values for conditions, metrics and CSV, by name."""
        return {
            "gap": self.gap,
            "gap_limit": self.gap_limit,
            "maximum_load": self.shown(self.current.makespan),
            "planned_maximum_load": self.shown(self.planned.makespan),
            "maximum_load_bound": self.shown(self.makespan.bound),
            "spread": self.shown(self.current.spread),
            "planned_spread": self.shown(self.planned.spread),
            "idle": self.idle,
            "planned_idle": None if self.idle is None else self.planned.idle,
            "hot": self.hot,
            "moves": self.moves.value,
            "placed": self.verdict.placed,
            "unnecessary_moves": self.unnecessary_moves,
            "lag": self.lag,
            "members": self.members,
            "members_that_help": self.more_members.value,
            "partitions": self.partitions,
        }

    def rank_key(self) -> tuple[object, ...]:
        """Return the sort key of the group in the ranking."""
        before, after = self.current, self.planned
        return (
            -self.gap,
            -_share(before.spread - after.spread, after.makespan),
            -(self.unnecessary_moves or 0),
            after.idle - before.idle,
            -self.hot,
            self.id or "",
        )

    def record(self) -> dict[str, object]:
        """Convert the result to JSON."""
        group, values = self.group, self.values()
        target, other = target_assignment(group), self.other_reading
        weights, limiting = group.weight_source, self.limiting_partition
        return {
            "id": self.id,
            **({} if self.state is None else {"state": self.state}),
            "assignor": group.status.assignor,
            "weights": None if weights is None else str(weights),
            "lag": self.lag,
            "members": self.members,
            "members_that_help": self.more_members._asdict(),
            "partitions": self.partitions,
            "gap": round(float(self.gap), 4),
            "gap_limit": round(float(self.gap_limit), 4),
            "makespan": {
                "current": values["maximum_load"],
                "planned": values["planned_maximum_load"],
                "bound": values["maximum_load_bound"],
            },
            "spread": {"current": values["spread"], "planned": values["planned_spread"]},
            "idle": {"current": values["idle"], "planned": values["planned_idle"]},
            "hot": self.hot,
            "moves": value_and_bound(self.moves),
            "placed": self.verdict.placed,
            "verdict": " ".join(filter(None, (str(self.verdict), self.caveat))),
            "condition": self.verdict.condition,
            "other_reading": None
            if other is None
            else other.verdict.record() | {"gap": round(float(other.gap), 4)},
            **({} if target is None else {"target": target._asdict()}),
            "limiting_partition": None if limiting is None else limiting.record(),
            "cause": None if self.cause is None else self.cause.record(),
            "to_do": self.to_do.text,
            "history": None if self.history is None else asdict(self.history),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsurveyedGroup:
    """Group without a plan, and the reason.

    ``is_other_type`` is true for other kinds than consumer groups, such as Kafka Streams
    applications. These are not errors.
    """

    id: str | None
    reason: str
    is_other_type: bool = False

    def record(self) -> dict[str, object]:
        """Convert the reason to JSON."""
        return {"id": self.id, "skipped" if self.is_other_type else "error": self.reason}


SurveyResult = SurveyedGroup | KindPlan | UnsurveyedGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Ranked results of a survey, with unplanned groups at the end."""

    groups: tuple[SurveyedGroup, ...]
    unsurveyed: tuple[UnsurveyedGroup, ...]
    states: tuple[KindPlan, ...] = ()
    interrupted: bool = False

    @classmethod
    def of(cls, results: Iterable[SurveyResult]) -> "Survey":
        """Rank the results of a survey."""
        listed = list(results)
        surveyed = [one for one in listed if isinstance(one, SurveyedGroup)]
        failed = [one for one in listed if isinstance(one, UnsurveyedGroup)]
        return cls(
            groups=tuple(sorted(surveyed, key=SurveyedGroup.rank_key)),
            unsurveyed=tuple(sorted(failed, key=lambda one: one.id or "")),
            states=tuple(one for one in listed if isinstance(one, KindPlan)),
        )

    @property
    def errors(self) -> tuple[UnsurveyedGroup, ...]:
        """Return the consumer groups without a result."""
        return tuple(one for one in self.unsurveyed if not one.is_other_type)

    def record(self) -> dict[str, object]:
        """Convert the survey to JSON, with totals."""
        return {
            **({"interrupted": True} if self.interrupted else {}),
            "totals": self.totals(),
            "groups": list(self.records()),
        }

    def records(self) -> Iterator[dict[str, object]]:
        """Convert each result to JSON."""
        for rank, group in enumerate(self.groups, 1):
            yield {"rank": rank, **group.record()}
        yield from (state.record() for state in self.states)
        yield from (one.record() for one in self.unsurveyed)

    def metric_rows(self) -> Iterator[dict[str, object]]:
        """Yield the metric values of each group."""
        for group in self.groups:
            values = group.values() | {"gap": round(float(group.gap), 6)}
            yield {
                "group": group.id,
                **values,
                "topic_spread": topic_spreads(group.group),
                "failed": 0,
            }
        for failed in self.errors:
            yield {"group": failed.id, "failed": 1}

    def totals(self) -> dict[str, int]:
        """Count the groups by kind of result, and add up their values."""
        groups = self.groups
        return {
            "groups": len(groups) + len(self.states) + len(self.unsurveyed),
            "errors": len(self.errors),
            "groups_of_other_types": len(self.states) + len(self.unsurveyed) - len(self.errors),
            "groups_with_gain": sum(one.has_gain for one in groups),
            "groups_with_gap": sum(one.gap > 0 for one in groups),
            "not_proven": sum(one.makespan.gap > 0 for one in groups),
            "members": sum(one.members for one in groups),
            "partitions": sum(one.partitions for one in groups),
            "idle_members": sum(one.current.idle for one in groups),
            "idle_members_planned": sum(one.planned.idle for one in groups),
            "hot_members": sum(one.hot for one in groups),
            "moves": sum(one.moves.value for one in groups),
            "placed": sum(one.verdict.placed for one in groups),
            "unnecessary_moves": sum(one.unnecessary_moves or 0 for one in groups),
        }


def topic_spreads(group: Group) -> dict[str, int]:
    """Return, for each topic, the spread of the subscribers' partition counts."""
    counts = Counter((member.id, topic) for member in group.members for topic, _ in member.owned)
    owned = {
        topic: [counts[group.members[index].id, topic] for index in subscribers]
        for topic, subscribers in group.subscribers().items()
    }
    return {topic: max(each) - min(each) for topic, each in owned.items() if len(each) > 1}


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def survey_group(
    group: Group,
    *,
    history: MoveHistory | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> SurveyResult:
    """Compute the improvement that a plan gives for a group.

    The plan has the objective of `plan`. Its searches stop at the time limit; the result then
    has the best plan found and its bounds.
    """
    try:
        plan_result.check_planning_start(group)
        return _surveyed(group, history, limits, seed)
    except (KassayError, LookupError) as error:
        is_streams = isinstance(error, plan_result.StreamsApplicationError)
        return UnsurveyedGroup(id=group.id, reason=str(error), is_other_type=is_streams)
    except Exception as error:  # noqa: BLE001 - one bad group must not end the survey
        reason = f"internal error: {type(error).__name__}: {error}"
        return UnsurveyedGroup(id=group.id, reason=reason)


def survey_other_kind(
    document: KindDocument, *, limits: SearchLimits = SearchLimits()
) -> SurveyResult:
    """Compare a share group, Streams application or Connect cluster with the optimum."""
    try:
        return plan_kind(document, limits=limits)
    except KassayError as error:
        return UnsurveyedGroup(id=document.id, reason=str(error), is_other_type=True)


def _surveyed(
    group: Group, history: MoveHistory | None, limits: SearchLimits, seed: int
) -> SurveyResult:
    """Survey a group, also under the other assumption if its subscriptions are assumed."""
    other = other_reading(group)
    if other is None:
        return _surveyed_reading(group, history, limits, seed)
    share = replace(limits, work=limits.work / 2)
    first = _surveyed_reading(group, history, share, seed)
    with suppress(LookupError):
        return replace(first, other_reading=_surveyed_reading(other, history, share, seed))
    return first


def _surveyed_reading(
    group: Group, history: MoveHistory | None, limits: SearchLimits, seed: int
) -> SurveyedGroup:
    found = read_group(group, default_levels(group), limits=limits, seed=seed)
    solution, verdict, current = found.solution, found.verdict, keep_owners(group)
    planned = LoadSummary.of(group, found.assignment)
    relative = member_units(group).relative_loads(load_vector(group, current))
    return SurveyedGroup(
        group=group,
        current=LoadSummary.of(group, current),
        planned=planned,
        moves=LevelValue("movement", verdict.moves, min(verdict.moves, solution.movement.bound)),
        hot=sum(load > planned.makespan for load in relative),
        history=history,
        verdict=verdict,
        lag=group.status.lag,
        other_reading=None,
        limiting_partition=found.limiting,
        more_members=more_members(group, limits=limits),
        cause=found.cause,
        finding=found.finding,
        to_do=found.to_do,
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
    progress: Progress = lambda _done, _all: None,
) -> Iterator[SurveyResult]:
    """Survey groups, and yield each result when it is available.

    Groups with equal weights come first, because their optimum takes milliseconds. The other
    groups share the remaining work equally, on several processes. A group whose process crashes
    yields an `UnsurveyedGroup`; the survey continues with the other groups. ``limits`` apply to all
    groups together.
    """
    heavy = [group for group in groups if not _is_light(group)]
    light = [group for group in groups if _is_light(group)]
    budget = SearchBudget.start(limits)
    surveyor = _Surveyor(histories or {}, processes, budget)
    is_parallel = min(processes, len(heavy) // _MIN_GROUPS_PER_PROCESS) > 1
    survey = surveyor.in_processes if is_parallel else surveyor.in_this_process
    for done, result in enumerate(chain(surveyor.in_this_process(light), survey(heavy)), 1):
        progress(done, len(groups))
        yield result


def _is_light(group: Group) -> bool:
    return not group.is_weighted and group.partition_count <= _LIGHT_PARTITIONS


@dataclass(frozen=True, slots=True)
class _Surveyor:
    histories: Mapping[str, MoveHistory]
    processes: int
    budget: SearchBudget

    def in_this_process(self, groups: Sequence[Group]) -> Iterator[SurveyResult]:
        share = self.budget.left / max(len(groups), 1)
        for group in groups:
            if self.budget.limits.is_stopped:
                return
            limits = replace(self.budget.rest(), work=share)
            history = self.histories.get(group.id or "")
            yield survey_group(group, history=history, limits=limits, seed=self.budget.seed)

    def in_processes(self, groups: Sequence[Group]) -> Iterator[SurveyResult]:
        """Survey groups in child processes."""
        processes, share = self.processes, self.budget.left / max(len(groups), 1)
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
        """Survey one group alone in a new process, after another process has crashed."""
        pool = _new_pool(1)
        try:
            return self._submit(pool, group, _ISOLATED_WORK).result()
        except BrokenProcessPool:
            reason = "the process that surveyed this group ended, possibly because memory ran out"
            return UnsurveyedGroup(id=group.id, reason=reason)
        finally:
            _end(pool)

    def _submit(self, pool: ProcessPoolExecutor, group: Group, work: float) -> Future[SurveyResult]:
        seconds = None if self.budget.limits.time is None else self.budget.seconds
        limits, history = SearchLimits(work=work, time=seconds), self.histories.get(group.id or "")
        return pool.submit(
            survey_group, group, history=history, limits=limits, seed=self.budget.seed
        )


def _new_pool(processes: int) -> ProcessPoolExecutor:
    # A forked child of this process, which can have threads, could wait forever for a lock.
    # The fork server has no threads, and imports the solver only once for all child processes.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    # Ctrl-C is left to the parent process, which ends its child processes.
    ignored = (signal.SIGINT, signal.SIG_IGN)
    return ProcessPoolExecutor(
        processes, mp_context=context, initializer=signal.signal, initargs=ignored
    )


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool without waiting for running searches."""
    processes = list((pool._processes or {}).values())  # noqa: SLF001 - kill_workers: Python 3.14
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
