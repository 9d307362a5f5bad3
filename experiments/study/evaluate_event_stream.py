"""Compare assignors with the optimum over an event stream, each with its own past."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from kassay.experiments.comparison.compare import CaseLimits, fewest_moves_within, solve_optimum
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.runner import Ending, StableResult, run_until_stable
from kassay.experiments.study.families.event_streams import (
    EVENT_STREAMS,
    EventStreamFamily,
    StreamStep,
)
from kassay.experiments.study.families.random_groups import random_even_assignment
from kassay.experiments.study.tables import HINDSIGHT, OPTIMUM, RebalanceRow
from kassay.reference.model.assignment import Assignment, movement, ownership
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.metrics import load_vector, makespan, sum_of_squares
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution, Status
from kassay.solver.trajectory.trajectory import optimal_trajectory

_LIMITS = CaseLimits(work=300, within_partitions=2 * EVENT_STREAMS.max_partitions)


@dataclass(frozen=True, slots=True)
class Trajectories:
    """Results of all assignors on one event stream, and the seconds that each of them took."""

    rows: tuple[RebalanceRow, ...]
    seconds: dict[str, float]


class _State(NamedTuple):
    """Group at a rebalance, with the proven optimum from its owners."""

    group: Group
    optimum: Solution


def compare_trajectories(
    family: EventStreamFamily, seed: int, assignors: Sequence[str]
) -> Trajectories:
    """Run each assignor and the optimum through the event stream of a seed.

    The members own the earlier results of the same assignor, or a random even assignment. If an
    assignor fails, its members keep their partitions until the next rebalance.
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

    There are no rows if `EventStreamFamily.has_hindsight` is false, or the fewest moves are not
    proven within ``family.hindsight_work``.
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
        raise InternalError("the optimum of a rebalance of an event stream is not proven")
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
