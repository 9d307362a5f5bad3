"""Improve the best known values of the few-moves benchmark, and write their certificates.

``python -m benchmarks.few_moves.certify SECONDS [NAME ...]`` searches for fewer moves and a
greater bound per instance (default: the published instances). The search starts from the
certificate in ``certificates``. `check` checks the result before it is written, and
``best_known.json`` is updated.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.few_moves.check import assignment_of, check, proven_moves
from benchmarks.few_moves.instances import Instance, instance, published_names
from kassay.reference.documents.json_codec import group_document, parse_assignment
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.weighted.few_moves import FewMovesSearch
from kassay.solver.weighted.knapsack_subproblems import SCALE
from kassay.solver.weighted.movement_bound import PricedMoves, price_and_branch

FOLDER = Path(__file__).with_name("certificates")
BEST_KNOWN = Path(__file__).with_name("best_known.json")
_SHARES = 0.4, 0.9  # of the time, at the end of the first search and of the pricing


def certificate_path(name: str, folder: Path = FOLDER) -> Path:
    """Return the path of the certificate of an instance."""
    return folder / f"{name.replace('/', '_')}.json"


def known_values(one: Instance, certificate: Mapping[str, Any]) -> dict[str, int]:
    """Return the moves and the bound that a certificate proves.

    Raises
    ------
    ValueError
        If the assignment is not a solution.
    """
    group = group_document(one.group)
    _, moves, reasons = check(group, assignment_of(group, certificate), one.max_load)
    if reasons:
        raise ValueError(f"{one.name}: {'; '.join(reasons)}")
    return {"moves": moves, "bound": proven_moves(group, certificate, one.max_load)}


def improve(one: Instance, seconds: float, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a certificate of the best assignment and bound found, or of those known."""
    problem = build_problem(one.group)
    costs = np.ones(problem.partition_count, dtype=np.int64)
    begin = time.monotonic()

    def left(share: float = 1.0) -> float:
        return begin + share * seconds - time.monotonic()

    search = FewMovesSearch(problem, one.max_load, costs, np.random.default_rng(0))
    start = search.initial_solution(keep_owned(problem)) if known is None else None
    if known is not None:
        document = assignment_of(group_document(one.group), known)
        start = problem.to_placement(parse_assignment(document))
    if start is None:
        raise SystemExit(f"{one.name}: found no assignment with a maximum load of {one.max_load}")
    best = search.improve(start, 0, lambda: left(_SHARES[0]) > 0)
    priced = price_and_branch(
        problem,
        [one.max_load] * problem.member_count,
        costs,
        start=best,
        may_continue=lambda: left(_SHARES[1]) > 0,
        seconds=lambda: max(left(_SHARES[1]), 1.0) / 3,
    )
    best = search.improve(priced.placement, priced.bound, lambda: left() > 0)
    found = {"received": _received(problem, best), **_prices(one, problem, priced)}
    if known is not None and known_values(one, known)["bound"] >= priced.bound:
        return {**known, "received": found["received"]}
    return found


def _received(problem: Problem, placement: Placement) -> dict[str, list[tuple[str, int]]]:
    received: dict[str, list[tuple[str, int]]] = {}
    members = list(problem.member_index)
    for partition, at in problem.partition_index.items():
        if placement[at] != problem.owner[at]:
            received.setdefault(members[placement[at]], []).append(tuple(partition))
    return received


def _prices(one: Instance, problem: Problem, priced: PricedMoves) -> dict[str, Any]:
    prices = {topic.name: [0] * topic.partitions for topic in one.group.topics}
    for (topic, number), at in problem.partition_index.items():
        prices[topic][number] = int(priced.prices[at])
    return {"grain": max(1, one.max_load // priced.grid), "scale": SCALE, "prices": prices}


def main(seconds: str, *names: str) -> None:
    """Improve the certificates of instances, and update the best known values."""
    values = json.loads(BEST_KNOWN.read_text())
    FOLDER.mkdir(exist_ok=True)
    for name in names or published_names():
        one, path = instance(name), certificate_path(name)
        known = json.loads(path.read_text()) if path.exists() else None
        certificate = improve(one, float(seconds), known)
        values[name] = known_values(one, certificate)
        values = {one: values[one] for one in published_names() if one in values}
        path.write_text(json.dumps(certificate) + "\n")
        BEST_KNOWN.write_text(json.dumps(values, indent=2) + "\n")
        print(f"{name}: {values[name]['moves']} moves, bound {values[name]['bound']}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
