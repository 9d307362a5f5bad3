"""Minimise the makespan of groups with identical members in each connected component."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.identical_members.makespan_search import MakespanSearch
from kassay.solver.identical_members.packing_heuristics import Packing, makespan_of
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Placement, Problem, connected_components

_MAX_MATCHED_MEMBERS = 400


@dataclass(frozen=True, slots=True)
class PackingResult:
    """Placement found, and a lower bound on the makespan of all placements.

    With ``is_bound_by_highs``, the bound depends on the floating-point arithmetic of HiGHS.
    """

    placement: Placement
    bound: int
    is_bound_by_highs: bool


def minimise_makespan(
    problem: Problem, start: Placement, budget: SearchBudget, rng: np.random.Generator
) -> PackingResult | None:
    """Minimise the makespan; return None if the members of a component are not identical.

    Components with a makespan below the bound of another one need no search.
    """
    parts = [part for part in connected_components(problem) if len(part[1])]
    for members, partitions in parts:
        sets = np.unique(problem.consumer_set[partitions]).tolist()
        if any(len(problem.consumer_sets[at]) < len(members) for at in sets):
            return None
    packings = [_packing(problem, start, *part) for part in parts]
    searches = [
        MakespanSearch(sorted(problem.weight[partitions].tolist(), reverse=True), len(members), rng)
        for members, partitions in parts
    ]
    bound = max((search.bound for search in searches), default=0)
    is_bound_by_highs = False
    placement = start.copy()
    for index, search in enumerate(searches):
        search.packing = min(packings[index], search.packing, key=makespan_of)
        search.bound, search.is_bound_by_highs = bound, is_bound_by_highs
        search.run(budget.part(1 / (len(parts) - index)))
        bound, is_bound_by_highs = search.bound, search.is_bound_by_highs
        if search.packing is not packings[index]:
            members, partitions = parts[index]
            placement[partitions] = _place(problem, members, partitions, search.packing)
    return PackingResult(placement, bound, is_bound_by_highs)


def _packing(
    problem: Problem, start: Placement, members: Sequence[int], partitions: NDArray[np.intp]
) -> Packing:
    packing: dict[int, list[int]] = {member: [] for member in members}
    weights = problem.weight[partitions].tolist()
    for weight, member in zip(weights, start[partitions].tolist(), strict=True):
        packing[member].append(weight)
    return list(packing.values())


def _place(
    problem: Problem, members: Sequence[int], partitions: NDArray[np.intp], packing: Packing
) -> Placement:
    """Convert a packing of weights to a placement that keeps owned partitions where possible."""
    waiting: dict[tuple[int, int], list[int]] = {}
    for at, (weight, owner) in enumerate(
        zip(problem.weight[partitions].tolist(), problem.owner[partitions].tolist(), strict=True)
    ):
        waiting.setdefault((weight, owner), []).append(at)
    placed = np.full(len(partitions), NO_OWNER, dtype=np.int32)
    missing: dict[int, list[int]] = {}
    for member, weights in zip(_matched(waiting, members, packing), packing, strict=True):
        for weight in weights:
            own = waiting.get((weight, member))
            if own:
                placed[own.pop()] = member
            else:
                missing.setdefault(weight, []).append(member)
    left = np.flatnonzero(placed == NO_OWNER).tolist()
    for at, weight in zip(left, problem.weight[partitions[left]].tolist(), strict=True):
        placed[at] = missing[weight].pop()
    return placed


def _matched(
    waiting: Mapping[tuple[int, int], Sequence[int]], members: Sequence[int], packing: Packing
) -> list[int]:
    """Match each list of weights to a member so that many partitions stay at their owners."""
    if len(members) > _MAX_MATCHED_MEMBERS or all(owner == NO_OWNER for _, owner in waiting):
        return list(members)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    kept = np.zeros((len(packing), len(members)))
    owned = {(weight, owner): len(own) for (weight, owner), own in waiting.items()}
    for row, weights in enumerate(packing):
        for weight, count in Counter(weights).items():
            kept[row] += [min(count, owned.get((weight, member), 0)) for member in members]
    rows, columns = linear_sum_assignment(kept, maximize=True)
    return [members[column] for _, column in sorted(zip(rows, columns, strict=True))]
