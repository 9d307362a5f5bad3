"""Convert constraints on the assignment to expressions of a CP-SAT model, and add them to it."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import assert_never

import numpy as np
from ortools.sat.python import cp_model

from kassay.solver import constraints
from kassay.solver.cpsat.model import AssignmentModel, Expression, weighted_sum
from kassay.solver.evaluation import colocated_partitions, separated_partitions, topic_partitions
from kassay.solver.problem import Problem

Range = tuple[Expression, int, int]  # an expression, its least and its greatest value


def add_constraint(
    model: AssignmentModel,
    constraint: constraints.Constraint,
    literal: cp_model.IntVar | None = None,
) -> None:
    """Add a constraint to the CP-SAT model, which enforces it only if ``literal`` is true.

    Without a literal, the constraint always applies.
    """
    for expression, least, most in _ranges(model, constraint):
        if not isinstance(expression, int):
            rule = model.cp.add_linear_constraint(expression, least, most)
            if literal is not None:
                rule.only_enforce_if(literal)
        elif not least <= expression <= most:
            model.cp.add_bool_or([] if literal is None else [literal.negated()])


def _ranges(model: AssignmentModel, constraint: constraints.Constraint) -> Iterator[Range]:
    problem = model.problem
    match constraint:
        case constraints.Capacity():
            most = min(model.scale.quotient(constraint.limit), model.total)
            for member in _members(problem, constraint.member):
                yield model.load[member], 0, most
        case constraints.MaxPartitions():
            most = min(constraint.limit, problem.partition_count)
            for member in _members(problem, constraint.member):
                yield model.partitions[member], 0, most
        case constraints.MaxMoves():
            ones = np.ones(problem.partition_count, dtype=np.int64)
            yield model.moves(ones), 0, min(constraint.limit, problem.partition_count)
        case (
            constraints.Pinned()
            | constraints.Forbidden()
            | constraints.Colocated()
            | constraints.Separated()
        ):
            yield from _partition_ranges(model, constraint)
        case _:
            assert_never(constraint)


def _partition_ranges(
    model: AssignmentModel, constraint: constraints.PartitionConstraint
) -> Iterator[Range]:
    problem = model.problem
    match constraint:
        case constraints.Pinned():
            partitions = topic_partitions(problem, constraint.topic, constraint.partition)
            members = _members(problem, constraint.member)
            choices = [_has(model, int(at), member) for at in partitions for member in members]
            yield choices[0] if choices else 0, 1, 1
        case constraints.Forbidden():
            partitions = topic_partitions(problem, constraint.topic, constraint.partition)
            classes = np.unique(model.classes.class_of[partitions]).tolist()
            for index, member in product(classes, _members(problem, constraint.member)):
                yield model.count[index].get(member, 0), 0, 0
        case constraints.Colocated():
            for first, *others in colocated_partitions(problem, constraint):
                for other, member in product(others, range(problem.member_count)):
                    yield _has(model, first, member) - _has(model, other, member), 0, 0
        case constraints.Separated():
            apart = separated_partitions(problem, constraint)
            for member in range(problem.member_count):
                yield weighted_sum([(_has(model, at, member), 1) for at in apart]), 0, 1
        case _:
            assert_never(constraint)


def _members(problem: Problem, name: str | None) -> Sequence[int]:
    """Return the member with this name, or all members if the name is None."""
    if name is None:
        return range(problem.member_count)
    return [problem.member_index[name]] if name in problem.member_index else []


def _has(model: AssignmentModel, partition: int, member: int) -> Expression:
    """Return the 0/1 expression that is 1 if a member has a partition.

    The partition must be the only one of its class.
    """
    return model.count[int(model.classes.class_of[partition])].get(member, 0)
