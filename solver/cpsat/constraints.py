"""Constraints as CP-SAT constraints, each behind a literal where a conflict is sought."""

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from kassay.reference.model.ownership import NO_OWNER
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.cpsat.model import AssignmentModel, Expression, weighted_sum
from kassay.solver.evaluation import bundles, separated_rows, topic_rows

Rule = tuple[Expression, int, int]  # an expression, its least and its greatest value


def add_constraint(
    model: AssignmentModel, constraint: Constraint, when: cp_model.IntVar | None = None
) -> None:
    """Add a constraint to the model, in force only when the literal is true, if given."""
    for expression, least, most in _rules(model, constraint):
        _add_range(model.cp, expression, least, most, when)


def _add_range(
    cp: cp_model.CpModel,
    expression: Expression,
    least: int,
    most: int,
    when: cp_model.IntVar | None,
) -> None:
    if isinstance(expression, int):
        if not least <= expression <= most:
            cp.add_bool_or([] if when is None else [when.negated()])
        return
    rule = cp.add_linear_constraint(expression, least, most)
    if when is not None:
        rule.only_enforce_if(when)


def _rules(model: AssignmentModel, constraint: Constraint) -> Sequence[Rule]:
    """Write a constraint as expressions with their least and greatest values."""
    match constraint:
        case Capacity():
            most = min(constraint.limit // model.unit, model.total)
            return [(load, 0, most) for load in _chosen(model, constraint.member, model.load)]
        case MaxPartitions():
            size = model.problem.size
            columns = _chosen(model, constraint.member, model.partitions)
            return [(count, 0, min(constraint.limit, size)) for count in columns]
        case MaxMoves():
            ones = np.ones(model.problem.size, dtype=np.int64)
            return [(model.moves(ones), 0, min(constraint.limit, model.problem.size))]
        case _:
            return _pair_rules(model, constraint)


def _pair_rules(
    model: AssignmentModel, constraint: Pinned | Forbidden | Colocated | Separated
) -> Sequence[Rule]:
    match constraint:
        case Pinned():
            return [_pin(model, constraint)]
        case Forbidden():
            return _forbid(model, constraint)
        case Colocated():
            return _together(model, constraint)
        case Separated():
            return _apart(model, constraint)


def _pin(model: AssignmentModel, constraint: Pinned) -> Rule:
    row = model.problem.row_of.get(TopicPartition(constraint.topic, constraint.partition))
    position = model.problem.position_of.get(constraint.member, NO_OWNER)
    return (0 if row is None else _has(model, row, position), 1, 1)


def _forbid(model: AssignmentModel, constraint: Forbidden) -> list[Rule]:
    position = model.problem.position_of.get(constraint.member, NO_OWNER)
    rows = topic_rows(model.problem, constraint.topic, constraint.partition)
    classes = np.unique(model.classes.of_row[rows]).tolist()
    return [(model.count[index].get(position, 0), 0, 0) for index in classes]


def _together(model: AssignmentModel, constraint: Colocated) -> list[Rule]:
    return [
        (_has(model, first, position) - _has(model, other, position), 0, 0)
        for first, *others in bundles(model.problem, constraint)
        for other in others
        for position in range(model.problem.width)
    ]


def _apart(model: AssignmentModel, constraint: Separated) -> list[Rule]:
    rows = separated_rows(model.problem, constraint)
    columns = [
        weighted_sum([(_has(model, row, position), 1) for row in rows])
        for position in range(model.problem.width)
    ]
    return [(column, 0, 1) for column in columns]


def _has(model: AssignmentModel, row: int, position: int) -> Expression:
    """Whether a row that is a class of its own is with a position."""
    return model.count[int(model.classes.of_row[row])].get(position, 0)


def _chosen(
    model: AssignmentModel, member: str | None, columns: Sequence[Expression]
) -> Sequence[Expression]:
    if member is None:
        return columns
    position = model.problem.position_of.get(member)
    return [] if position is None else [columns[position]]
