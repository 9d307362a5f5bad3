"""Contestants of the benchmark: functions that solve an instance within a time limit."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.few_moves.instances import Instance
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import group_document, parse_assignment
from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.solver.constraints import Capacity
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.cpsat.expressions import add_constraint
from kassay.solver.cpsat.model import AssignmentModel, load_scale, minimise, symmetry_classes
from kassay.solver.evaluation import movement_costs
from kassay.solver.greedy_placements import keep_owned, longest_processing_time
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solve import solve

_RUNNER = Path(__file__).with_name("rebalancer_process.py")
_GRACE = 30.0  # seconds to build a model and to read the result


@dataclass(frozen=True, slots=True)
class Entry:
    """Result of a contestant: an assignment, and an optional lower bound on the moves."""

    assignment: Assignment | None
    bound: int | None = None
    note: str = ""


def kassay(instance: Instance, seconds: float) -> Entry:
    """Solve an instance with kassay: minimise moves within the maximum load."""
    slack = instance.max_load - makespan_bound(build_problem(instance.group))
    levels = (Imbalance("makespan", Tolerance(absolute=slack)), Movement())
    found = solve(instance.group, levels=levels, limits=SearchLimits(time=seconds))
    movement = found.movement
    return Entry(found.assignment, None if movement is None else movement.bound)


def plain_cp_sat(instance: Instance, seconds: float) -> Entry:
    """Solve an instance with one CP-SAT model; the owned partitions are the warm start."""
    problem = build_problem(instance.group)
    model = AssignmentModel(
        problem, symmetry_classes(problem, (Movement(),), ()), load_scale(problem)
    )
    add_constraint(model, Capacity(instance.max_load))
    model.hint(keep_owned(problem))
    limits = SearchLimits(time=seconds)
    budget = SearchBudget.start(limits)
    found = minimise(model, model.moves(movement_costs(problem, Movement())), budget, 0)
    if found.placement is None:
        return Entry(None, found.bound, "no solution")
    return Entry(problem.to_assignment(found.placement), found.bound)


def highs(instance: Instance, seconds: float) -> Entry:
    """Solve an instance with HiGHS, with one binary variable per partition and member."""
    problem = build_problem(instance.group)
    allowed = problem.may_consume[problem.consumer_set]
    partition, member = np.nonzero(allowed)
    count = len(partition)
    cost = (problem.owner[partition] != NO_OWNER) & (problem.owner[partition] != member)
    once = sparse.csr_matrix((np.ones(count), (partition, np.arange(count))))
    loads = sparse.csr_matrix(
        (problem.weight[partition].astype(np.float64), (member, np.arange(count)))
    )
    result = milp(
        cost.astype(np.float64),
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(once, 1, 1),
            LinearConstraint(loads, -np.inf, instance.max_load),
        ],
        options={"time_limit": seconds},
    )
    bound = None
    if getattr(result, "mip_dual_bound", None) is not None and np.isfinite(result.mip_dual_bound):
        bound = max(0, int(np.ceil(result.mip_dual_bound - 1e-6)))
    if result.x is None:
        return Entry(None, bound, "no solution")
    placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
    chosen = result.x > 0.5
    placement[partition[chosen]] = member[chosen]
    return Entry(problem.to_assignment(placement), bound)


def rebalancer(instance: Instance, seconds: float) -> Entry:
    """Solve an instance with the local search of Meta's Rebalancer, in a separate process.

    The process needs Python 3.12 or newer.
    """
    python = os.environ.get("REBALANCER_PYTHON") or shutil.which("python3.12")
    if python is None:
        return Entry(None, note="REBALANCER_PYTHON is not set")
    task = {
        "group": group_document(instance.group),
        "max_load": instance.max_load,
        "seconds": seconds,
    }
    with tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(
                [python, str(_RUNNER)],
                input=json.dumps(task),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                timeout=seconds + _GRACE,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return Entry(None, note=f"rebalancer failed: {type(error).__name__}")
    return Entry(parse_assignment(json.loads(done.stdout)))


def lpt(instance: Instance, _: float) -> Entry:
    """Assign the heaviest partitions first, to the least loaded member; ignore owners."""
    problem = build_problem(instance.group)
    return Entry(problem.to_assignment(longest_processing_time(problem)))


def _assignor(name: str) -> Callable[[Instance, float], Entry]:
    return lambda instance, _: Entry(assign(instance.group, name))


CONTESTANTS: dict[str, Callable[[Instance, float], Entry]] = {
    "kassay": kassay,
    "plain CP-SAT": plain_cp_sat,
    "HiGHS": highs,
    "Rebalancer": rebalancer,
    "LPT": lpt,
    "sticky": _assignor("sticky"),
    "cooperative-sticky": _assignor("cooperative-sticky"),
    "uniform": _assignor("uniform"),
}
