"""Plain CP-SAT models as baselines for benchmarks.

One search per level, without heuristics, counted bounds or warm starts.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from ortools.sat.python import cp_model

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Constraint,
    Forbidden,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.cpsat.expressions import level_terms
from kassay.solver.cpsat.model import AssignmentModel, load_scale, minimise, symmetry_classes
from kassay.solver.evaluation import RackTable, colocated_partitions, level_value, load_units
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import CrossRack, Level
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import LevelValue, Solution


def plain_solve(
    group: Group, *, levels: Sequence[Level], limits: SearchLimits = SearchLimits()
) -> Solution:
    """Solve a group with one CP-SAT search per level; leximax is not supported.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> from kassay.solver.objective import Imbalance, Movement
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> plain_solve(group, levels=(Imbalance(), Movement())).imbalance
    LevelValue(name='sum_of_squares', value=8, bound=8, slack=0)
    """
    start = time.monotonic()
    budget = SearchBudget.start(limits)
    problem = build_problem(group)
    best = keep_owned(problem)
    worst = [(level, level_value(problem, level, best)) for level in levels]
    scale = load_scale(problem, worst)
    model = AssignmentModel(problem, symmetry_classes(problem, levels, ()), scale)
    bounds: list[int] = []
    for index, level in enumerate(levels):
        terms = level_terms(model, level, level_value(problem, level, best))
        if terms is None or len(terms) > 1:
            raise UsageError(f"the plain model does not support {level.name}")
        found = minimise(model, terms[0].expression, budget.part(1 / (len(levels) - index)), 0)
        best = best if found.placement is None else found.placement
        bounds.append(0 if found.bound is None else terms[0].value(found.bound))
        limit = level.tolerance.limit(level_value(problem, level, best))
        model.cp.add(terms[0].expression + model.zero <= terms[0].scaled(limit))
    values = [level_value(problem, level, best) for level in levels]
    return Solution(
        assignment=problem.to_assignment(best),
        method="plain cp-sat",
        levels=tuple(
            LevelValue(level.name, value, bound, level.tolerance.limit(bound) - bound)
            for level, value, bound in zip(levels, values, bounds, strict=True)
        ),
        seconds=time.monotonic() - start,
    )


@dataclass(frozen=True, slots=True)
class FewestMoves:
    """Result of the plain model for moves: moves found, None if none, and their lower bound."""

    moves: int | None
    bound: int


def plain_fewest_moves(
    problem: Problem,
    limits: Iterable[tuple[Level, int]],
    *,
    rules: Iterable[Constraint] = (),
    seconds: float,
) -> FewestMoves:
    """Minimise the moves within limits, with a variable per partition and new member.

    The limits are about loads and racks.
    """
    model = cp_model.CpModel()
    moved: list[cp_model.IntVar] = []
    chosen: list[dict[int, cp_model.LinearExprT]] = []
    # Per partition: whether a member has it.
    for owner, index in zip(problem.owner.tolist(), problem.consumer_set.tolist(), strict=True):
        consumers = problem.consumer_sets[index].tolist()
        received = {at: model.new_bool_var("") for at in consumers if at != owner}
        if owner == NO_OWNER:
            model.add_exactly_one(received.values())
            chosen.append({**received})
        else:
            model.add_at_most_one(received.values())
            chosen.append({**received, owner: 1 - sum(received.values())})
            moved += received.values()
    _add_limits(model, problem, chosen, limits)
    for rule in rules:
        _add_rule(model, problem, chosen, rule)
    model.minimize(sum(moved))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    bound = max(int(solver.response_proto.inner_objective_lower_bound), 0)
    return FewestMoves(round(solver.objective_value) if found else None, bound)


def _add_limits(
    model: cp_model.CpModel,
    problem: Problem,
    chosen: Sequence[dict[int, cp_model.LinearExprT]],
    limits: Iterable[tuple[Level, int]],
) -> None:
    loads = _loads(problem, chosen)
    for level, limit in limits:
        if isinstance(level, CrossRack):
            is_far = RackTable(problem).is_cross_rack
            crossing = [
                term
                for partition, terms in enumerate(chosen)
                for member, term in terms.items()
                if is_far(partition, member)
            ]
            model.add(sum(crossing) <= limit)
            continue
        units = load_units(problem, level)
        for unit, factor in enumerate(units.factors):
            members = [at for at, its_unit in enumerate(units.unit_of) if its_unit == unit]
            model.add(sum(loads[at] for at in members) <= limit // factor)


def _add_rule(
    model: cp_model.CpModel,
    problem: Problem,
    chosen: Sequence[dict[int, cp_model.LinearExprT]],
    rule: Constraint,
) -> None:
    index, members = problem.partition_index, range(problem.member_count)
    match rule:
        case Capacity(limit, member) | MaxPartitions(limit, member):
            loads = _loads(problem, chosen, counted=isinstance(rule, MaxPartitions))
            for at in members if member is None else [problem.member_index[member]]:
                model.add(loads[at] <= limit)
        case Pinned(topic, partition, member):
            term = chosen[index[TopicPartition(topic, partition)]][problem.member_index[member]]
            model.add(term == 1)
        case Forbidden(member, topic, int(partition)):
            term = chosen[index[TopicPartition(topic, partition)]][problem.member_index[member]]
            model.add(term == 0)
        case Separated(partitions):
            for at in members:
                terms = [chosen[index[one]].get(at, 0) for one in partitions]
                model.add(sum(terms) <= 1)
        case Colocated():
            for first, *others in colocated_partitions(problem, rule):
                for one, at in product(others, members):
                    model.add(chosen[one].get(at, 0) == chosen[first].get(at, 0))
        case _:
            raise UsageError(f"the plain model does not support the constraint: {rule}")


def _loads(
    problem: Problem, chosen: Sequence[dict[int, cp_model.LinearExprT]], *, counted: bool = False
) -> list[cp_model.LinearExprT]:
    """Return the loads of the members, or their numbers of partitions."""
    loads: list[list[cp_model.LinearExprT]] = [[] for _ in range(problem.member_count)]
    for weight, terms in zip(problem.weight.tolist(), chosen, strict=True):
        for member, term in terms.items():
            loads[member].append(term if counted else term * weight)
    return [sum(terms) for terms in loads]
