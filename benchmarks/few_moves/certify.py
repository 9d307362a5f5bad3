"""Solve an instance of the few-moves benchmark, and write its assignment and certificate.

``python -m benchmarks.few_moves.certify NAME SECONDS FOLDER`` writes two files. The name of the
first ends with ``_assignment.json``; ``check.py`` reads it. The name of the second ends with
``_bound.json``; ``check_bound.py`` reads it.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.few_moves.instances import instance
from kassay.reference.documents.json_codec import assignment_document
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.problem import build_problem
from kassay.solver.weighted.few_moves import FewMovesSearch
from kassay.solver.weighted.knapsack_subproblems import SCALE
from kassay.solver.weighted.movement_bound import price_and_branch


def main(name: str, seconds: str, folder: str) -> None:
    """Find an assignment and partition prices within a time limit, and write both to files."""
    one = instance(name)
    problem = build_problem(one.group)
    costs = np.ones(problem.partition_count, dtype=np.int64)
    deadline = time.monotonic() + float(seconds)
    search = FewMovesSearch(problem, one.max_load, costs, np.random.default_rng(0))
    start = search.initial_solution(keep_owned(problem))
    if start is None:
        raise SystemExit(f"{name}: found no assignment with a maximum load of {one.max_load}")
    priced = price_and_branch(
        problem,
        [one.max_load] * problem.member_count,
        costs,
        start=start,
        may_continue=lambda: time.monotonic() < deadline,
        seconds=lambda: max(deadline - time.monotonic(), 1.0) / 3,
    )
    prices = {topic.name: [0] * topic.partitions for topic in one.group.topics}
    for (topic, number), at in problem.partition_index.items():
        prices[topic][number] = int(priced.prices[at])
    certificate = {
        "grain": max(1, one.max_load // priced.grid),
        "scale": SCALE,
        "prices": prices,
    }
    assignment = assignment_document(problem.to_assignment(priced.placement))
    for ending, document in (("assignment", assignment), ("bound", certificate)):
        path = Path(folder) / f"{name.replace('/', '_')}_{ending}.json"
        path.write_text(json.dumps(document) + "\n")
    print(f"{name}: {search.cost(priced.placement)} moves, bound {priced.bound}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
