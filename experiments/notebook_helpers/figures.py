"""Draw results such as plans and frontiers as figures for notebooks."""

from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from kassay.experiments.planning.group_plan.plan_result import Plan
from kassay.experiments.planning.plan_output.page_values import frontier_curve
from kassay.experiments.plotting.frontier_drawing import FrontierCurve
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawing:
    """Wrapper of a Matplotlib figure that notebooks display."""

    figure: "Figure"

    def save(self, file: Path | str) -> None:
        """Save the figure as SVG or PNG, depending on the file suffix."""
        from kassay.experiments.plotting.matplotlib_figures import save_figure  # noqa: PLC0415

        save_figure(self.figure, Path(file))

    def _repr_svg_(self) -> str:
        """Return the figure as SVG text, which Jupyter notebooks display."""
        from kassay.experiments.plotting.matplotlib_figures import save_figure  # noqa: PLC0415

        text = StringIO()
        save_figure(self.figure, text)
        return text.getvalue()


def plot(value: Frontier | Plan | Solution | Assignment, *, title: str | None = None) -> Drawing:
    """Draw a frontier (also that of a plan), or the loads of an assignment or solution.

    The loads of an assignment are numbers of partitions.

    Raises
    ------
    UsageError
        If there is no figure of the value, or a solution has no assignment.
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
    return Drawing(_loads_figure(assignment.loads(), title))


def _loads_figure(loads: dict[str, int], title: str | None) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415 - loads for a second
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(6.4, 1 + 0.26 * max(1, len(loads))), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(loads)), list(map(float, loads.values())), color="#0b66a8", height=0.62)
    axes.set_yticks(range(len(loads)), list(loads), fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("partitions")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    return figure
