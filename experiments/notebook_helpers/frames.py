"""Convert groups, assignments and results to pandas data frames."""

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import TYPE_CHECKING

from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.planning.group_plan.plan_result import MOVE_COLUMNS, Plan
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.solution import Solution

if TYPE_CHECKING:
    import pandas as pd

Rows = Iterable[Mapping[str, object]]


def to_frame(value: object) -> "pd.DataFrame":
    """Convert a group, assignment or result to a pandas data frame.

    A group has one row per partition; an assignment one row per assigned partition; a solution
    one row per level; a comparison one row per measure; a frontier one row per point; a plan
    one row per move. A list gives the rows of all its elements.

    Raises
    ------
    UsageError
        If there is no table of the value.

    Examples
    --------
    >>> to_frame(Assignment({"a": [("t", 0), ("t", 1)]})).shape
    (2, 3)
    """
    import pandas as pd  # noqa: PLC0415 - loads for a second

    return pd.DataFrame(list(_rows(value)))


@singledispatch
def _rows(value: object) -> Rows:
    if not isinstance(value, list | tuple):
        raise UsageError(
            "to_frame takes a group, assignment, solution, comparison, frontier or plan, or a "
            f"list of them, got {type(value).__name__}"
        )
    return [row for element in value for row in _rows(element)]


@_rows.register
def _(group: Group) -> Rows:
    subscribers, owners = group.subscribers(), ownership(group).owners
    for topic in group.topics:
        for number in range(topic.partitions):
            owner = int(owners[topic.name][number])
            yield {
                "topic": topic.name,
                "partition": number,
                "weight": topic.weight(number),
                "owner": None if owner == NO_OWNER else group.members[owner].id,
                "subscribers": len(subscribers[topic.name]),
            }


@_rows.register
def _(assignment: Assignment) -> Rows:
    for member, partitions in assignment.items():
        for topic, number in partitions:
            yield {"member": member, "topic": topic, "partition": number}


@_rows.register
def _(solution: Solution) -> Rows:
    for level in solution.levels:
        yield {
            "level": level.name,
            "value": level.value,
            "bound": level.bound,
            "gap": level.gap,
            "proven": level.is_proven,
        }


@_rows.register
def _(comparison: Comparison) -> Rows:
    for measure, gap in (*comparison.imbalance.items(), ("movement", comparison.movement)):
        yield {
            "case": comparison.case,
            "assignor": comparison.assignor,
            "measure": str(measure),
            "greedy": gap.value,
            "optimum": gap.optimum,
            "gap": gap.gap,
        }


@_rows.register
def _(frontier: Frontier) -> Rows:
    measure = str(frontier.measure)
    columns = ("moves", "moves bound", measure, f"{measure} bound", "proven")
    return [dict(zip(columns, row, strict=True)) for row in frontier.table()]


@_rows.register
def _(plan: Plan) -> Rows:
    return [dict(zip(MOVE_COLUMNS, row, strict=True)) for row in plan.move_rows()]
