"""Compare assignors with the optimum over an event stream, each with its own past."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.runner import Ending, StableResult, run_until_stable
from kassay.experiments.study.families.event_streams import EventStreamFamily, StreamStep
from kassay.experiments.study.families.random_groups import random_even_assignment
from kassay.experiments.study.tables import HINDSIGHT, OPTIMUM, RebalanceRow
from kassay.reference.model.assignment import Assignment, movement, ownership
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import NO_GENERATION, Group
from kassay.reference.model.metrics import Measure, load_vector, makespan, sum_of_squares
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.limits import SearchLimits
from kassay.solver.network.level_network import SQUARES_AND_MOVES, placement_prices
from kassay.solver.network.optimal_flow import optimal_counts
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import Ints, build_problem
from kassay.solver.solve import solve
from kassay.solver.trajectory.trajectory import optimal_trajectory

_SEARCH_LIMITS = SearchLimits(work=300)


@dataclass(frozen=True, slots=True)
class Trajectories:
    """Results of all assignors on one event stream, and the seconds that each of them took."""

    rows: tuple[RebalanceRow, ...]
    seconds: dict[str, float]


@dataclass(frozen=True)
class _State:
    """Group at a rebalance, with the optimum from its owners."""

    network: SubscriptionNetwork

    @cached_property
    def counts(self) -> Ints:
        """Counts per arc with minimum imbalance and the fewest moves, proven by prices."""
        counts = optimal_counts(self.network)
        problem, placement = self.network.problem, self.network.place(counts)
        if placement_prices(problem, SQUARES_AND_MOVES, placement) is None:
            raise InternalError("the prices do not prove that the flow is optimal")
        return counts

    @cached_property
    def least_loads(self) -> Ints:
        """Optimal load per member."""
        return self.network.loads(self.counts)

    @property
    def least_squares(self) -> int:
        """Minimum sum of squared loads."""
        return sum_of_squares(self.least_loads.tolist())

    def optimum(self) -> Assignment:
        """Return an assignment with minimum imbalance and the fewest moves."""
        return self.network.problem.to_assignment(self.network.place(self.counts))

    def fewest_moves(self, moves: int, squares: int) -> tuple[int, int | None]:
        """Return the fewest moves to minimum imbalance, and to at most the given imbalance.

        The second number is None if it is not proven. ``moves`` lead to the sum of squares.
        """
        fewest = self.network.min_movement(self.counts)
        if squares == self.least_squares or fewest == 0:
            return fewest, fewest
        if moves == 0:
            return fewest, 0
        levels = (Imbalance(Measure.SUM_OF_SQUARES, Tolerance(up_to=squares)), Movement())
        found = solve(self.network.problem.group, levels=levels, limits=_SEARCH_LIMITS)
        is_proven = found.imbalance.value <= squares and found.movement.gap == 0
        return fewest, found.movement.value if is_proven else None


def compare_trajectories(
    family: EventStreamFamily, seed: int, assignors: Sequence[str]
) -> Trajectories:
    """Run each assignor and the optimum through the event stream of a seed.

    The members own the earlier results of the same assignor, or a random even assignment. If an
    assignor fails, its members keep their partitions until the next rebalance.

    Examples
    --------
    >>> family = EventStreamFamily(name="demo", rebalances=2)
    >>> rows = compare_trajectories(family, 1, ["range"]).rows
    >>> [(row.rebalance, row.assignor) for row in rows][:3]
    [(0, 'range'), (0, 'optimum'), (1, 'range')]
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
                state = _state(step, past[name], generation=number)
                states[past[name]] = state
            group = state.network.problem.group
            if name == OPTIMUM:
                result = StableResult(ending=Ending.OK, assignment=state.optimum(), rounds=1)
            else:
                result = run_until_stable(group, name)
            if family.random_past:
                rng = Random(f"{family.streams}/{seed}/{number}")  # noqa: S311
                past[name] = random_even_assignment(group, rng)
            elif result.assignment is not None:
                past[name] = result.assignment
            rows.append(_row(shown_name(name), number, step, state=state, result=result))
            seconds[shown_name(name)] += time.perf_counter() - start
    return Trajectories(tuple(rows), seconds)


def hindsight_trajectory(family: EventStreamFamily, seed: int) -> Trajectories:
    """Compute the hindsight optimum of an event stream.

    There are no rows if `EventStreamFamily.has_hindsight` is false, or the fewest moves are not
    proven within ``family.hindsight_work``.

    Examples
    --------
    >>> family = EventStreamFamily(name="demo", rebalances=2)
    >>> [row.moves for row in hindsight_trajectory(family, 3).rows]
    [0, 1, 0]
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
    return _State(build_network(build_problem(Group(topics=step.topics, members=members))))


def _row(
    assignor: str, number: int, step: StreamStep, *, state: _State, result: StableResult
) -> RebalanceRow:
    problem = state.network.problem
    group = problem.group
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
        least_sum_of_squares=state.least_squares,
        least_makespan=int(state.least_loads.max(initial=0)),
    )
    if result.assignment is None:
        return row
    loads = load_vector(group, result.assignment)
    squares, moves = sum_of_squares(loads), movement(group, result.assignment)
    fewest, within = state.fewest_moves(moves, squares)
    return replace(
        row,
        sum_of_squares=squares,
        makespan=makespan(loads),
        moves=moves,
        fewest_moves=fewest,
        fewest_moves_within=within,
    )
