"""Draw the moves found and the bound proven by kassay over time, for one instance.

Run ``python -m benchmarks.few_moves.progress_figure NAME SECONDS FILE``.
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.few_moves.instances import instance
from kassay.solver.bounds import makespan_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve


def progress_figure(solution: Solution) -> Figure:
    """Draw the moves found and the proven lower bound over the time of a search."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    seconds = [point.seconds for point in solution.progress]
    for label, values in (
        ("moves", [point.value for point in solution.progress]),
        ("proven lower bound", [point.bound for point in solution.progress]),
    ):
        axes.step([*seconds, solution.seconds], [*values, *values[-1:]], where="post", label=label)
    axes.set_xlabel("seconds")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def main(name: str, seconds: str, path: str) -> None:
    """Solve a benchmark instance, and write the figure to a file."""
    one = instance(name)
    slack = one.max_load - makespan_bound(build_problem(one.group))
    levels = (Imbalance("makespan", Tolerance(absolute=slack)), Movement())
    solution = solve(one.group, levels=levels, limits=SearchLimits(time=float(seconds)))
    progress_figure(solution).savefig(Path(path))


if __name__ == "__main__":
    main(*sys.argv[1:4])
