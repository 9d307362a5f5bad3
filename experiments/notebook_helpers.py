"""Load captures in notebooks, and convert results to tables and figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.planning.plan import MOVE_COLUMNS, Plan
from kassay.experiments.planning.render_plans import frontier_curve
from kassay.experiments.plotting.svg_drawings import FrontierCurve
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import EmptyGroups, import_groups, with_named_data
from kassay.reference.model.assignment import NO_OWNER, Assignment, ownership
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import loads
from kassay.solver.frontier import Frontier
from kassay.solver.solution import Solution

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def load_captures(
    source: Path | str,
    *,
    subscriptions: Path | str | None = None,
    weights: str | Mapping[str, Sequence[int]] | None = None,
    missing_lag: int | None = None,
) -> tuple[Group, ...]:
    """Load all groups from a file or from a directory with captures.

    Parameters
    ----------
    subscriptions
        Replacement for subscriptions that the source does not show: ``assigned`` (the default),
        ``equal``, or a JSON file as in ``kassay import --subscriptions``.
    weights
        Weight of each partition. ``none``: 1, even if the source has weights; ``lag``: the lag of
        the partition; or a table with one integer per partition, by topic. The default is the
        weights of the group document, else 1.
    missing_lag
        Lag in messages of partitions for which the source shows no lag.

    Raises
    ------
    InputError
        If the source does not exist, if a group is not valid, or if no group has members.
    """
    path = Path(source).expanduser()
    name, table = (weights, None) if isinstance(weights, str) else (None, weights)
    options = ImportOptions(weight_table=table, missing_lag=missing_lag)
    options = with_named_data(options, subscriptions=subscriptions, weights=name)
    groups = []
    for imported in import_groups([path], options, empty=EmptyGroups.REJECT):
        if imported.error is not None:
            raise InputError(imported.error)
        if imported.group is not None:
            groups.append(imported.group)
    if not groups:
        raise InputError(f"{path}: the input contains no group with members")
    return tuple(groups)


Rows = Iterable[Mapping[str, object]]


def to_frame(value: object) -> "pd.DataFrame":
    """Convert a group, assignment or result to a pandas data frame.

    A group has one row per partition, an assignment one row per assigned partition. A solution has
    one row per level, a frontier one row per point, a plan one row per move. A comparison has one
    row per measure: ``greedy`` is the value of the assignor, ``optimum`` the proven minimum,
    ``gap`` their difference. A list gives the rows of all its elements.

    Raises
    ------
    UsageError
        If ``value`` has another type.

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
    for row in comparison.rows():
        values = dict(zip(("measure", "greedy", "optimum", "gap"), row, strict=True))
        yield {"case": comparison.case, "assignor": comparison.assignor, **values}


@_rows.register
def _(frontier: Frontier) -> Rows:
    measure = str(frontier.measure)
    for one in frontier.points:
        yield {
            "moves": one.movement.value,
            "moves bound": one.movement.bound,
            measure: one.imbalance.value,
            f"{measure} bound": one.imbalance.bound,
            "proven": one.is_proven,
        }


@_rows.register
def _(plan: Plan) -> Rows:
    return [dict(zip(MOVE_COLUMNS, row, strict=True)) for row in plan.move_rows()]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Figure that notebooks display as SVG."""

    figure: "Figure"

    def save(self, file: Path | str) -> None:
        """Save the figure as SVG or PNG, depending on the file suffix."""
        from kassay.experiments.plotting.matplotlib_figures import save_figure  # noqa: PLC0415

        save_figure(self.figure, Path(file))

    def _repr_svg_(self) -> str:
        """Return the figure as SVG text for notebooks."""
        from kassay.experiments.plotting.matplotlib_figures import save_figure  # noqa: PLC0415

        text = StringIO()
        save_figure(self.figure, text)
        return text.getvalue()


def plot(value: Frontier | Plan | Solution | Assignment, *, title: str | None = None) -> Drawing:
    """Draw a frontier, a plan, or the loads of an assignment.

    The loads of an `Assignment`, and of a solution without weights, are numbers of partitions.

    Raises
    ------
    UsageError
        If ``value`` has another type, or is a solution without assignment.
    """
    from kassay.experiments.plotting.matplotlib_figures import frontier_figure  # noqa: PLC0415

    if isinstance(value, Plan):
        curve, measure = frontier_curve(value), str(value.frontier.measure)
        return Drawing(frontier_figure(curve, measure=measure, title=title or value.group.id))
    if isinstance(value, Frontier):
        curve = FrontierCurve.of(value)
        return Drawing(frontier_figure(curve, measure=str(value.measure), title=title))
    assignment = value.assignment if isinstance(value, Solution) else value
    if not isinstance(assignment, Assignment):
        raise UsageError(
            "plot takes a frontier, plan, assignment or solution with an assignment, got "
            f"{type(value).__name__}"
        )
    values, label = assignment.counts(), "partitions"
    if isinstance(value, Solution) and value.group is not None:
        values, unit = loads(value.group, assignment), value.group.weight_unit
        if any(topic.weights is not None for topic in value.group.topics):
            label = f"load ({unit})" if unit else "load"
    return Drawing(_loads_figure(values, label, title))


def _loads_figure(loads: dict[str, int], label: str, title: str | None) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415 - loads for a second
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(6.4, 1 + 0.26 * max(1, len(loads))), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(loads)), list(map(float, loads.values())), color="#0b66a8", height=0.62)
    axes.set_yticks(range(len(loads)), list(loads), fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    return figure
