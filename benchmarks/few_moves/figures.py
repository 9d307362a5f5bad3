"""Draw figures of the few-moves benchmark.

``python -m benchmarks.few_moves.figures progress NAME SECONDS FILE`` solves an instance with
kassay, and draws the moves found and the bound proven over time. ``... profile RESULTS FILE`` draws
the performance profile of a file that ``--results`` wrote.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.few_moves.__main__ import Result, profile
from benchmarks.few_moves.instances import instance
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

_MAX_RATIO = 40.0
_TICKS = (1, 1.25, 1.5, 2, 4, 10, 40)


def progress_figure(solution: Solution) -> Figure:
    """Draw the moves found and the proven lower bound over the work of a search."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    work = [point.work for point in solution.progress]
    for label, values in (
        ("moves", [point.value for point in solution.progress]),
        ("proven lower bound", [point.bound for point in solution.progress]),
    ):
        axes.step([*work, solution.work], [*values, *values[-1:]], where="post", label=label)
    axes.set_xlabel("counted work")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def profile_figure(results: Sequence[Result]) -> Figure:
    """Draw the share of instances that each contestant solves within a ratio of the best."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    ratios = np.geomspace(1, _MAX_RATIO, 400).tolist()
    solved = {name: shares for name, shares in profile(results, ratios).items() if any(shares)}
    for at, (name, shares) in enumerate(solved.items()):
        axes.step(ratios, shares, where="post", label=name, color=f"C{at}")
    axes.set_xscale("log")
    axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axes.minorticks_off()
    axes.set_xlabel("moves / fewest moves of all solvers")
    axes.set_ylabel("share of instances")
    axes.set_ylim(0, 1.02)
    axes.legend()
    return figure


def main(kind: str, *arguments: str) -> None:
    """Draw a figure, and write it to a file."""
    if kind == "profile":
        results, path = arguments
        lines = Path(results).read_text().splitlines()
        profile_figure([Result(**json.loads(line)) for line in lines]).savefig(path)
        return
    name, seconds, path = arguments
    one = instance(name)
    slack = one.max_load - makespan_bound(build_problem(one.group))
    levels = (Imbalance("makespan", Tolerance(absolute=slack)), Movement())
    solution = solve(one.group, levels=levels, limits=SearchLimits(time=float(seconds)))
    progress_figure(solution).savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
