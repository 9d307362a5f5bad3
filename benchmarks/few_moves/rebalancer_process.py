"""Solve one instance with Meta's Rebalancer, in a Python that has the package ``rebalancer``.

It needs Python 3.12 or newer. The process reads a group document, the maximum load and the time
limit in seconds from standard input, and writes an assignment document to standard output.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Read an instance from standard input, solve it by local search, and print the result.

    The local search uses moves and swaps.
    """
    from rebalancer import ProblemSolver  # noqa: PLC0415

    task = json.load(sys.stdin)
    # The library writes to standard output; only the result goes to the caller's.
    output = os.dup(1)
    os.dup2(2, 1)
    group, max_load = task["group"], task["max_load"]
    held = {member["id"]: _names(member.get("owned", [])) for member in group["members"]}
    weight = {
        f"{topic}|{number}": float(weights)
        for topic, facts in group["topics"].items()
        for number, weights in enumerate(facts["weights"])
    }
    solver = ProblemSolver("few-moves", "benchmark")
    solver.set_object_name("partition").set_container_name("member")
    solver.set_assignment(held)
    solver.add_object_dimension("load", weight)
    limit = {"type": 0, "globalLimit": float(max_load)}  # 0: absolute
    capacity = {"name": "capacity", "scope": "member", "dimension": "load", "limit": limit}
    solver.add_constraint({"capacitySpec": capacity})
    forbidden = [
        {"object": name, "scopeItems": members}
        for name in weight
        if (members := _strangers(group, name.rsplit("|", 1)[0]))
    ]
    if forbidden:
        avoided = {"name": "subscriptions", "scope": "member", "assignments": forbidden}
        solver.add_constraint({"avoidAssignmentsSpec": avoided})
    movement = {"name": "moves", "scope": "member", "dimension": "partition_count"}
    solver.add_goal({"minimizeMovementSpec": {**movement, "doNotNormalize": True}})
    moves = [{"singleMoveTypeSpec": {}}, {"swapMoveTypeSpec": {}}]
    search = {"solveTime": int(task["seconds"]), "moveTypeList": moves}
    solver.add_solver({"localSearchSolverSpec": search})
    found = solver.solve()["assignment"]
    assignment: dict[str, list[tuple[str, int]]] = {member["id"]: [] for member in group["members"]}
    for name, member in found.items():
        topic, number = name.rsplit("|", 1)
        assignment[member].append((topic, int(number)))
    with os.fdopen(output, "w") as stream:
        json.dump(assignment, stream)


def _strangers(group: dict[str, Any], topic: str) -> list[str]:
    return [member["id"] for member in group["members"] if topic not in member["topics"]]


def _names(owned: list[list[object]]) -> list[str]:
    return [f"{topic}|{number}" for topic, number in owned]


if __name__ == "__main__":
    main()
