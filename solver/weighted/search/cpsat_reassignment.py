"""Reassign the partitions of a few members with CP-SAT, at minimum cost of moves."""

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from kassay.solver.cpsat.model import WORK_PER_DETERMINISTIC_TIME
from kassay.solver.limits import SearchBudget
from kassay.solver.number_ranges import Arithmetic, Scale, scale_to_fit
from kassay.solver.problem import Ints, Placement, Problem

_WORK, _WORK_OF_MODEL = 0.5, 0.01
"""Maximum work of one search, and work to build its model."""


def reassign(
    problem: Problem,
    costs: Ints,
    max_load: int,
    placement: Placement,
    *,
    members: Sequence[int],
    seed: int,
    budget: SearchBudget,
) -> Placement | None:
    """Reassign the partitions of some members among these members, at minimum cost of moves.

    Return None if the search fails.
    """
    scale = _scale(problem, len(members))
    model = cp_model.CpModel()
    loads: dict[int, list[tuple[cp_model.IntVar, int]]] = {at: [] for at in members}
    cost: list[tuple[cp_model.IntVar, int]] = []
    choice: dict[tuple[int, int], cp_model.IntVar] = {}
    for partition in np.flatnonzero(np.isin(placement, members)).tolist():
        owner = int(problem.owner[partition])
        weight = scale.quotient(int(problem.weight[partition]), rounds_up=True)
        allowed = problem.may_consume[problem.consumer_set[partition]]
        consumers = [at for at in members if allowed[at]]
        for at in consumers:
            choice[partition, at] = variable = model.new_bool_var("")
            model.add_hint(variable, int(placement[partition] == at))
            loads[at].append((variable, weight))
            if owner in members and at != owner:
                cost.append((variable, int(costs[partition])))
        model.add_exactly_one(choice[partition, at] for at in consumers)
    for terms in loads.values():
        model.add(_sum(terms) <= min(scale.quotient(max_load), Arithmetic.CP_SAT.value))
    model.minimize(_sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # A signal ends the caller's whole search.
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = min(_WORK, budget.left) / WORK_PER_DETERMINISTIC_TIME
    solver.parameters.max_time_in_seconds = budget.seconds
    status = solver.solve(model)
    work = solver.response_proto.deterministic_time * WORK_PER_DETERMINISTIC_TIME
    budget.spend(_WORK_OF_MODEL + work)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    reassigned = placement.copy()
    for (partition, at), variable in choice.items():
        if solver.value(variable):
            reassigned[partition] = at
    return reassigned


def _scale(problem: Problem, members: int) -> Scale:
    """Return the scale of the weights; weights rounded up keep the maximum load."""
    total = problem.total + problem.partition_count

    def fits(unit: int) -> bool:
        return Arithmetic.CP_SAT.represents(total // unit * members)

    return scale_to_fit(problem.weight.tolist(), fits)


def _sum(terms: list[tuple[cp_model.IntVar, int]]) -> cp_model.LinearExpr:
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [weight for _, weight in terms]
    )
    return total
