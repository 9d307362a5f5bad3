"""Figure that compares what-if scenarios: maximum load and moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kassay.experiments.plotting.save_figure import save_figure
from kassay.solver.solution import LevelValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioBars:
    """Bars of one what-if scenario: maximum load and movement, or None without a solution."""

    label: str
    makespan: LevelValue | None
    movement: LevelValue | None


def draw_scenarios(
    scenarios: Sequence[ScenarioBars], file: Path, *, title: str | None = None
) -> None:
    """Draw the maximum load and the moves of what-if scenarios, with their lower bounds."""
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(scenarios)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, label, colour, levels in (
        (panels[0], "maximum load", "#0b66a8", [one.makespan for one in scenarios]),
        (panels[1], "owned partitions moved", "#c2521b", [one.movement for one in scenarios]),
    ):
        known = [(row, level) for row, level in enumerate(levels) if level is not None]
        rows = [row for row, _ in known]
        axes.barh(rows, [level.value for _, level in known], color=colour, height=0.62)
        axes.plot([level.bound for _, level in known], rows, "|", color="black", markersize=8)
        axes.set_xlabel(f"{label} (mark: lower bound)")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(scenarios)), [one.label for one in scenarios], fontsize=8)
    panels[0].set_ylim(len(scenarios) - 0.4, -0.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    save_figure(figure, file)
