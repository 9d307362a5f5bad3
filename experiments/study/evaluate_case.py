"""Evaluate one case of a study: run the assignors, and find the optimum.

The functions are pure; Spark only decides where they run.
"""

import json
import multiprocessing
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from kassay.experiments.comparison.compare import (
    LIMITS,
    CaseLimits,
    Comparer,
    comparison_without_values,
    fewest_moves_within,
    solve_optimum,
    without_capacities,
    without_racks,
)
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.implementations import run_assignor
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.client_libraries import NotInstalledError
from kassay.experiments.implementations.run_assignor import Ending, StableResult, run_until_stable
from kassay.experiments.kinds.registry import KINDS
from kassay.experiments.kinds.registry import run_until_stable as run_document_until_stable
from kassay.experiments.study import schemas
from kassay.experiments.study.cases import IMPORTED, Case
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES, FAMILIES
from kassay.experiments.study.families.base_family import random_even_assignment
from kassay.experiments.study.families.event_streams import (
    EVENT_STREAMS,
    EventStreamFamily,
    StreamStep,
)
from kassay.experiments.study.families.finite_families import KafkaGridFamily
from kassay.experiments.study.families.random_documents import DocumentFamily
from kassay.experiments.study.schemas import HINDSIGHT, OPTIMUM, MeasureRow, RebalanceRow
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.assignment import (
    Assignment,
    cached_per_group,
    movement,
    movement_count,
    ownership,
)
from kassay.reference.model.errors import InternalError, KassayError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.load_metrics import (
    Measure,
    has_racks,
    leximax,
    load_vector,
    makespan,
    measures,
    off_rack,
    sum_of_squares,
)
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.evaluation import level_value
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, TopicSpread
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import Solution, Status
from kassay.solver.solve import solve
from kassay.solver.trajectory.trajectory import optimal_trajectory

DRAWN_PARTITIONS = 60
DRAWN_MEMBERS = 12
SHOWN_LOADS = 64

_Value = TypeVar("_Value")
_LIMITS = CaseLimits(work=300, within_partitions=2 * EVENT_STREAMS.max_partitions)


class _AssignorRows(NamedTuple):
    assignment: schemas.AssignmentRow
    comparison: Comparison
    timing: schemas.TimingRow
    assigned: Assignment | None


def evaluate_case(
    case: Case, *, limits: CaseLimits = LIMITS, drawn: int | None = None
) -> schemas.CaseRecord:
    """Run the assignors and the solver on the group of a case, and record the results.

    Failures become rows, because one group must not end a study of a million groups. Documents and
    assignments are recorded for small groups with seeds below ``drawn`` (None: all seeds).
    """
    is_drawn = drawn is None or case.seed < drawn
    record, error = _attempt(partial(_evaluate, case, limits=limits, drawn=is_drawn))
    return record or failed_record(case, str(error))


def _evaluate(case: Case, *, limits: CaseLimits, drawn: bool) -> schemas.CaseRecord:
    documents = DOCUMENT_FAMILIES.get(case.family)
    if documents is not None:
        return _evaluate_document(case, documents, limits=limits, drawn=drawn)
    cold = [name for name in case.assignors if run_assignor.first_seconds(name) is None]
    group = case.build()
    # A family with own history runs the assignor before the measured rebalance.
    past = [
        schemas.TimingRow(contestant=shown_name(name), seconds=seconds, is_first=True)
        for name in cold
        if (seconds := run_assignor.first_seconds(name)) is not None
    ]
    drawn &= group.partition_count <= DRAWN_PARTITIONS and len(group.members) <= DRAWN_MEMBERS
    row = _group_row(case, group, drawn=drawn)
    family = FAMILIES.get(case.family)
    if isinstance(family, EventStreamFamily):
        return _evaluate_trajectories(case, family, row)
    has_goals = isinstance(family, KafkaGridFamily)
    # The discussed goals of assignors are balance, spread and few moves, not reads across racks.
    judged = without_racks(group) if has_goals else group
    start = time.perf_counter()
    optimum, optimum_row = _optimum(judged, limits, drawn=drawn)
    timing = _timing(schemas.OPTIMUM, start)
    comparer = None if optimum is None else Comparer(judged, optimum, limits=limits)
    found = [_evaluate_assignor(group, name, comparer, drawn=drawn) for name in case.assignors]
    prices = partial(_prices, found, judged, optimum, limits)
    measures = _attempt(prices)[0] if has_goals or case.family == IMPORTED else ()
    return schemas.CaseRecord(
        group=row,
        optimum=optimum_row,
        assignments=tuple(one.assignment for one in found),
        measures=measures or (),
        comparisons=tuple(one.comparison for one in found),
        timings=(timing, *past, *(one.timing for one in found)),
    )


def _prices(
    found: Iterable[_AssignorRows], group: Group, optimum: Solution | None, limits: CaseLimits
) -> tuple[schemas.MeasureRow, ...]:
    """Return the rows of `GroupPrices`, or no rows for a group with weights."""
    if optimum is None or group.is_weighted or not group.participant_indices:
        return ()
    prices = GroupPrices(group, optimum, limits)
    rows = [*prices.of_group()]
    for one in found:
        if one.assigned is not None:
            rows += prices.of_assignment(one.assignment.assignor, one.assigned)
    return tuple(rows)


def _evaluate_document(
    case: Case, family: DocumentFamily, *, limits: SearchLimits, drawn: bool
) -> schemas.CaseRecord:
    """Compare the answers of assignors for the document of a case with the optimum.

    An application of Kafka Streams runs until no probing rebalance follows; this last answer is
    compared. If ``drawn`` is true, the record contains the document, so that reports can draw it.
    """
    document = family.document(case.seed)
    assignments, timings, measures = [], [], []
    for assignor in case.assignors:
        start = time.perf_counter()
        run = run_document_until_stable(document, assignor)
        name = shown_name(assignor)
        timings.append(_timing(name, start))
        ending, detail = run.ending, run.detail
        if run.compare is not None:
            compared = run.compare(limits)
            if compared.invalid:
                ending, detail = run_assignor.Ending.INVALID, compared.invalid[0]
            else:
                measures += [
                    schemas.MeasureRow(name, one.name, one.value, one.minimum, one.bound)
                    for one in (*compared.measures, *run.measures)
                ]
        assignments.append(
            schemas.AssignmentRow(
                assignor=name, ending=str(ending), detail=detail, rounds=run.rebalances
            )
        )
    return schemas.CaseRecord(
        group=_document_row(case, document, drawn=drawn),
        assignments=tuple(assignments),
        timings=tuple(timings),
        measures=tuple(measures),
    )


def _document_row(case: Case, document: KindDocument, *, drawn: bool) -> schemas.GroupRow:
    content = document.content
    kind = KINDS[document.kind]
    last = content.get("steps", (content,))[-1]
    topics = last[kind.topics]
    counts = [one if isinstance(one, int) else one["partitions"] for one in topics.values()]
    return replace(
        _key_columns(case),
        group_id=document.id,
        members=len(last[kind.places]),
        topics=len(topics),
        partitions=sum(counts),
        document=_json(content) if drawn else None,
    )


def _evaluate_trajectories(
    case: Case, family: EventStreamFamily, row: schemas.GroupRow
) -> schemas.CaseRecord:
    found = (
        compare_trajectories(family, case.seed, case.assignors),
        hindsight_trajectory(family, case.seed),
    )
    timings = (
        schemas.TimingRow(contestant=name, seconds=seconds)
        for one in found
        for name, seconds in one.seconds.items()
    )
    rows = tuple(row for one in found for row in one.rows)
    return schemas.CaseRecord(group=row, timings=tuple(timings), rebalances=rows)


def _evaluate_assignor(
    group: Group, assignor: str, comparer: Comparer | None, *, drawn: bool
) -> _AssignorRows:
    is_first = run_assignor.first_seconds(assignor) is None
    result, error = _attempt(partial(run_assignor.run_until_stable, group, assignor))
    if result is None:
        result = run_assignor.StableResult(
            ending=run_assignor.Ending.ERROR, assignment=None, rounds=0, detail=error
        )
    shown, assigned = shown_name(assignor), result.assignment
    timing = schemas.TimingRow(contestant=shown, seconds=result.seconds, is_first=is_first)
    row = schemas.AssignmentRow(
        assignor=shown,
        ending=str(result.ending),
        detail=result.detail,
        rounds=result.rounds,
        assignment=_assignment_text(assigned) if drawn else None,
        **({} if assigned is None else _metric_columns(group, assigned)),
    )
    comparison = None
    if comparer is not None:
        comparison, error = _attempt(partial(comparer.compare, assignor, result, with_front=True))
        if error is not None:
            result = replace(result, ending=run_assignor.Ending.ERROR, detail=error)
    if comparison is None:
        comparison = comparison_without_values(group, assignor, result)
    return _AssignorRows(row, comparison, timing, assigned)


def failed_record(case: Case, error: str) -> schemas.CaseRecord:
    """Return the record of a case that could not be evaluated."""
    return schemas.CaseRecord(group=replace(_key_columns(case), error=error))


def _attempt(function: Callable[[], _Value]) -> tuple[_Value | None, str | None]:
    """Call a function, and return its value or the text of its exception.

    If the driver of a library does not start, the study fails, because each group would fail.
    """
    try:
        return function(), None
    except (NotInstalledError, run_assignor.NotReadyError):
        raise
    except Exception as error:  # noqa: BLE001 - a failure on one group becomes a row
        return None, f"{type(error).__name__}: {error}"


def _timing(contestant: str, start: float) -> schemas.TimingRow:
    return schemas.TimingRow(contestant=contestant, seconds=time.perf_counter() - start)


def _optimum(
    group: Group, limits: CaseLimits, *, drawn: bool
) -> tuple[Solution | None, schemas.OptimumRow]:
    solution, error = _attempt(partial(solve_optimum, group, limits=limits))
    if solution is None:
        return None, schemas.OptimumRow(status="error", detail=error)
    row = schemas.OptimumRow(
        status=str(solution.status),
        method=str(solution.method),
        measure=solution.imbalance.name,
        imbalance_value=solution.imbalance.value,
        imbalance_bound=solution.imbalance.bound,
        movement_value=solution.movement.value,
        movement_bound=solution.movement.bound,
        proof=str(solution.proof),
        loads=_loads_text(group, solution.assignment),
        assignment=_assignment_text(solution.assignment) if drawn else None,
    )
    return solution, row


def _key_columns(case: Case) -> schemas.GroupRow:
    return schemas.GroupRow(case=case.name, family=case.family, seed=case.seed, start=case.start)


def _group_row(case: Case, group: Group, *, drawn: bool) -> schemas.GroupRow:
    owners = ownership(group)
    subscribers = group.subscribers()
    partitions = {topic.name: topic.partitions for topic in group.topics}
    participants = group.participant_indices
    # Thousands of members can share one subscription of thousands of topics.
    sizes = Counter(group.members[index].subscription for index in participants)
    sets = {names: frozenset(filter(partitions.get, names)) for names in sizes}
    return replace(
        _key_columns(case),
        group_id=group.id,
        members=len(group.members),
        topics=len(group.topics),
        participants=len(participants),
        partitions=sum(partitions[topic] for topic, members in subscribers.items() if members),
        consumed=len(frozenset().union(*sets.values())),
        subscriptions=sum(count * len(sets[names]) for names, count in sizes.items()),
        owned=owners.owned_count,
        stale=len(owners.stale),
        contested=len(owners.contested),
        mixed=len({*sets.values()}) > 1,
        weighted=group.is_weighted,
        racks=has_racks(group),
        forced=all(len(members) <= 1 for members in subscribers.values()),
        renaming_hash=schemas.renaming_hash(group),
        document=_json(group_document(group)) if drawn else None,
    )


@cached_per_group
def _metric_columns(group: Group, assignment: Assignment) -> dict[str, Any]:
    moves = movement_count(group, assignment)
    return {
        **{str(name): value for name, value in measures(group, assignment).items()},
        "kept": moves.kept,
        "moved": moves.moved,
        "placed": moves.placed,
        "off_rack": off_rack(group, assignment),
        "loads": _loads_text(group, assignment),
    }


def _loads_text(group: Group, assignment: Assignment | None) -> str | None:
    if assignment is None or len(group.members) > SHOWN_LOADS:
        return None
    return "/".join(map(str, leximax(load_vector(group, assignment))))


def _assignment_text(assignment: Assignment | None) -> str | None:
    return None if assignment is None else _json(assignment_document(assignment))


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


Evaluator = Callable[[Case], schemas.CaseRecord]
_LINUX_MEMORY = Path("/proc/self/statm")


@contextmanager
def memory_limit(mebibytes: int | None) -> Iterator[None]:
    """Limit the memory (MiB) that a ``with`` block adds to this process.

    The limit is on added address space. None means no limit. An existing lower limit remains.
    """
    if mebibytes is None:
        yield
        return
    pa.allocate_buffer(1)  # The first allocation of Arrow reserves 1 GiB of address space.
    limit = mebibytes << 20
    if _LINUX_MEMORY.exists():
        pages = int(_LINUX_MEMORY.read_text(encoding="ascii").split()[0])
        limit += pages * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    finite = [value for value in (soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([limit, *finite]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Kill this process if a ``with`` block takes more than ``seconds``."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_isolated(evaluate: Evaluator, case: Case, *, limits: CaseLimits) -> schemas.CaseRecord:
    """Evaluate a case in a child process with a time limit and a memory limit.

    If the child process dies, the record contains the reason. A `KassayError` in it is raised.
    """
    # A forked child needs no import of the solver, and the evaluator need not be pickled.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run_child, args=(evaluate, case, sender, limits))
    child.start()
    sender.close()
    try:
        if receiver.poll(limits.group):
            answer: schemas.CaseRecord | KassayError = receiver.recv()
            if isinstance(answer, KassayError):
                raise answer
            record = answer
        else:
            record = failed_record(case, f"the evaluation took more than {limits.group:g} s")
    except EOFError:
        child.join()
        code = child.exitcode or 0
        death = f"ended with exit code {code}"
        if code < 0:
            death = f"was killed by {signal.Signals(-code).name}"
        record = failed_record(case, f"the process that evaluated this group {death}")
    finally:
        receiver.close()
        child.kill()
        child.join()
    return record


def _run_child(evaluate: Evaluator, case: Case, sender: Connection, limits: CaseLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with memory_limit(limits.memory):
        try:
            sender.send(evaluate(case))
        except KassayError as error:
            sender.send(error)


_SPREAD, _SQUARES, _MOVES = TopicSpread(), Imbalance(), Movement()
_LOAD = Imbalance(Measure.MAKESPAN)


@dataclass
class GroupPrices:
    """Optima of a group with equal weights for different orders of the levels, as prices of goals.

    ``optimum`` has the minimum sum of squared loads, then the fewest moves.
    """

    group: Group
    optimum: Solution
    limits: CaseLimits
    _problem: Problem = field(init=False)
    _solved: dict[tuple[Level, ...], Solution] = field(init=False)

    def __post_init__(self) -> None:
        self._problem = build_problem(without_capacities(self.group))
        self._solved = {(_SQUARES, _MOVES): self.optimum}

    def _solve(self, *levels: Level) -> Solution:
        if levels not in self._solved:
            group = without_capacities(self.group)
            self._solved[levels] = solve(group, levels=levels, limits=self.limits)
        return self._solved[levels]

    def _value(self, level: Level, *order: Level) -> int | None:
        """Return the value of a level in the proven optimum of the levels ``order``, or None.

        A minimum sum of squares implies a minimum maximum load, also for the minimum topic spread.
        """
        solution = self._solve(*order)
        if solution.assignment is None or not all(one.gap == 0 for one in solution.levels):
            return None
        return self._measure(level, self._problem.valid_placement(solution.assignment))

    def _measure(self, level: Level, placement: Placement) -> int:
        return level_value(self._problem, level, placement)

    def of_group(self) -> Iterator[MeasureRow]:
        """Yield, for pairs of goals, the minimum of one goal with and without the other goal.

        The value of a row is that with the other goal first, the minimum that without it.
        """
        balance, spread = (_SQUARES, _MOVES), (_SPREAD, _SQUARES, _MOVES)
        still = (_MOVES, _SQUARES)
        for name, level, order, free in (
            ("price of spread: maximum load", _LOAD, spread, balance),
            ("price of stickiness: maximum load", _LOAD, still, balance),
            ("price of balance: moves", _MOVES, balance, still),
            ("price of spread: moves", _MOVES, spread, still),
        ):
            value, least = self._value(level, *order), self._value(level, *free)
            if value is not None and least is not None:
                yield MeasureRow(OPTIMUM, name, value, least, least)

    def of_assignment(self, assignor: str, assignment: Assignment) -> Iterator[MeasureRow]:
        """Yield the value of an assignment and the minimum value, for each goal.

        If the assignment has the minimum topic spread, two more rows compare it with assignments of
        minimum spread: by maximum load, and by moves at an equal or lower sum of squared loads.
        """
        placement = self._problem.valid_placement(assignment)
        spread: tuple[Level, ...] = (_SPREAD, _SQUARES, _MOVES)
        for name, level, order in (
            ("topic spread", _SPREAD, spread),
            ("maximum load", _LOAD, (_SQUARES, _MOVES)),
        ):
            value, least = self._measure(level, placement), self._value(level, *order)
            if least is not None:
                yield MeasureRow(assignor, name, value, least, least)
        if self._measure(_SPREAD, placement) != self._value(_SPREAD, *spread):
            return
        value, least = self._measure(_LOAD, placement), self._value(_LOAD, *spread)
        if least is not None:
            yield MeasureRow(assignor, "maximum load within spread", value, least, least)
        moves, squares = (self._measure(one, placement) for one in (_MOVES, _SQUARES))
        known = {moves}
        still: tuple[Level, ...] = (_SPREAD, _MOVES, _SQUARES)
        is_balanced = squares == self._value(_SQUARES, *spread)
        for within in (spread,) if is_balanced else (spread, still):
            found, other = self._value(_MOVES, *within), self._value(_SQUARES, *within)
            if found is not None and other is not None and other <= squares:
                known.add(found)
        bound = self._value(_MOVES, *(spread if is_balanced else still)) or 0
        yield MeasureRow(assignor, "moves within spread and balance", moves, min(known), bound)


@dataclass(frozen=True, slots=True)
class Trajectories:
    """Results of all assignors on one event stream, and their run times in seconds."""

    rows: tuple[RebalanceRow, ...]
    seconds: dict[str, float]


class _State(NamedTuple):
    group: Group
    optimum: Solution


def compare_trajectories(
    family: EventStreamFamily, seed: int, assignors: Sequence[str]
) -> Trajectories:
    """Run each assignor, and compute the optimum, at each rebalance of an event stream.

    Before each rebalance, the members own the previous result of the assignor, or a random even
    assignment. If an assignor fails, the members keep their partitions until the next rebalance.
    """
    names = (*assignors, OPTIMUM)
    past = dict.fromkeys(names, Assignment({}))
    seconds = dict.fromkeys(map(shown_name, names), 0.0)
    rows = []
    for number, step in enumerate(family.stream(seed)):
        states: dict[Assignment, _State] = {}  # assignors with equal results share a state
        for name in names:
            start = time.perf_counter()
            state = states.get(past[name])
            if state is None:
                state = states[past[name]] = _state(step, past[name], generation=number)
            if name == OPTIMUM:
                best = state.optimum.assignment
                result = StableResult(ending=Ending.OK, assignment=best, rounds=1)
            else:
                result = run_until_stable(state.group, name)
            if family.random_past:
                rng = Random(f"{family.streams}/{seed}/{number}")  # noqa: S311
                past[name] = random_even_assignment(state.group, rng)
            elif result.assignment is not None:
                past[name] = result.assignment
            rows.append(_row(shown_name(name), number, step, state=state, result=result))
            seconds[shown_name(name)] += time.perf_counter() - start
    return Trajectories(tuple(rows), seconds)


def hindsight_trajectory(family: EventStreamFamily, seed: int) -> Trajectories:
    """Compute the hindsight optimum of an event stream.

    The result has no rows if `EventStreamFamily.has_hindsight` is false, or if the fewest moves are
    not proven within the limit ``family.hindsight_work``.
    """
    start = time.perf_counter()
    if not family.has_hindsight(seed):
        return Trajectories((), {})
    steps = list(family.stream(seed))
    groups = [Group(topics=step.topics, members=step.members) for step in steps]
    found = optimal_trajectory(groups, limits=SearchLimits(work=family.hindsight_work))
    rows = []
    past = Assignment({})
    for number, (step, best) in enumerate(zip(steps, found.assignments, strict=True)):
        state = _state(step, past, generation=number)
        result = StableResult(ending=Ending.OK, assignment=best, rounds=1)
        rows.append(_row(HINDSIGHT, number, step, state=state, result=result))
        past = best
    seconds = {HINDSIGHT: time.perf_counter() - start}
    return Trajectories(tuple(rows) if found.is_optimal else (), seconds)


def _state(step: StreamStep, past: Assignment, *, generation: int) -> _State:
    members = tuple(
        replace(
            member,
            owned=past.get(member.id, NO_PARTITIONS),
            generation=generation if member.id in past else NO_GENERATION,
        )
        for member in step.members
    )
    group = Group(topics=step.topics, members=members)
    optimum = solve_optimum(group, limits=_LIMITS)
    if optimum.status is not Status.OPTIMAL:
        raise InternalError("internal error: the optimum is not proven; report a bug")
    return _State(group, optimum)


def _row(
    assignor: str, number: int, step: StreamStep, *, state: _State, result: StableResult
) -> RebalanceRow:
    (group, optimum), assignment = state, result.assignment
    problem, best = build_problem(group), optimum.assignment or Assignment({})
    row = RebalanceRow(
        rebalance=number,
        event=str(step.event),
        assignor=assignor,
        ending=str(result.ending),
        rounds=result.rounds,
        members=problem.member_count,
        partitions=problem.partition_count,
        mixed=not bool(problem.may_consume.all()),
        owned=ownership(group).owned_count,
        least_sum_of_squares=optimum.imbalance.value,
        least_makespan=makespan(load_vector(group, best)),
    )
    if assignment is None:
        return row
    loads = load_vector(group, assignment)
    squares, moves = sum_of_squares(loads), movement(group, assignment)
    within: int | None = 0
    if moves or squares == optimum.imbalance.value:
        within = fewest_moves_within(group, squares, optimum=optimum, limits=_LIMITS)
    return replace(
        row,
        sum_of_squares=squares,
        makespan=makespan(loads),
        moves=moves,
        fewest_moves=optimum.movement.value,
        fewest_moves_within=within,
    )
