"""Improve the best known values of the few-moves benchmark, and write their certificates.

``python -m benchmarks.few_moves.certify NAME ... --seconds 60`` searches for fewer moves and a
greater bound per instance. The search starts from the certificate in ``certificates``, or from the
assignment document of ``--assignment FILE`` if it has fewer moves. `check` checks the result before
it is written, and ``best_known.json`` is updated.
"""

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.few_moves.check import assignment_of, check, proven_moves
from benchmarks.few_moves.instances import Instance, instance, published_names
from kassay.reference.documents.files import write_text
from kassay.reference.documents.json_codec import group_document, parse_assignment
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.search.few_moves import NeighbourhoodSearch
from kassay.solver.search.movement_bound import SCALE, PricedExchanges, price_by_partition

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

    search = NeighbourhoodSearch(problem, one.max_load, costs, np.random.default_rng(0))
    start = search.initial_solution(keep_owned(problem)) if known is None else None
    if known is not None:
        document = assignment_of(group_document(one.group), known)
        start = problem.to_placement(parse_assignment(document))
    if start is None:
        raise SystemExit(f"{one.name}: found no assignment with a maximum load of {one.max_load}")
    best = search.improve(start, 0, lambda: left(_SHARES[0]) > 0)
    priced = price_by_partition(
        problem,
        [one.max_load] * problem.member_count,
        costs,
        start=best,
        may_continue=lambda: left(_SHARES[1]) > 0,
    )
    if priced is None:
        raise SystemExit(f"{one.name} is too large for the column generation")
    best = search.improve(best, priced.bound, lambda: left() > 0)
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


def _prices(one: Instance, problem: Problem, priced: PricedExchanges) -> dict[str, Any]:
    prices = {topic.name: [0] * topic.partitions for topic in one.group.topics}
    for (topic, number), at in problem.partition_index.items():
        prices[topic][number] = int(priced.prices[at])
    return {"grain": max(1, one.max_load // priced.exchange.grid), "scale": SCALE, "prices": prices}


def with_assignment(
    one: Instance, certificate: Mapping[str, Any], assignment: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the certificate with the moves of an assignment document if they are fewer.

    Raises
    ------
    ValueError
        If the assignment is not a solution.
    """
    owned = {member.id: set(map(tuple, member.owned)) for member in one.group.members}
    received = {
        member: [name for name in map(tuple, held) if name not in owned[member]]
        for member, held in assignment.items()
    }
    changed = {**certificate, "received": {at: own for at, own in received.items() if own}}
    is_better = known_values(one, changed)["moves"] < known_values(one, certificate)["moves"]
    return changed if is_better else certificate


def main() -> None:
    """Improve the certificates of instances, and update the best known values."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_moves.certify")
    parser.add_argument("names", nargs="+", metavar="NAME", choices=list(published_names()))
    parser.add_argument("--seconds", type=float, default=60.0, help="per instance (default 60)")
    parser.add_argument("--assignment", type=Path, help="assignment document of the only NAME")
    options = parser.parse_args()
    values = json.loads(BEST_KNOWN.read_text())
    for name in options.names:
        one, path = instance(name), certificate_path(name)
        known = json.loads(path.read_text()) if path.exists() else None
        if options.assignment is not None and known is not None:
            known = with_assignment(one, known, json.loads(options.assignment.read_text()))
        certificate = improve(one, options.seconds, known)
        values[name] = known_values(one, certificate)
        values = {each: values[each] for each in published_names() if each in values}
        write_text(path, json.dumps(certificate) + "\n")
        write_text(BEST_KNOWN, json.dumps(values, indent=2) + "\n")
        print(f"{name}: {values[name]['moves']} moves, bound {values[name]['bound']}", flush=True)


if __name__ == "__main__":
    main()
