"""Check an assignment of the few-moves benchmark; needs only the standard library.

``python check.py GROUP ASSIGNMENT MAX_LOAD`` reads a group document and an assignment document,
prints the maximum load and the moves, and exits with 1 if the assignment is not a solution.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def check(
    group: Mapping[str, Any], assignment: Mapping[str, Any], max_load: int
) -> tuple[int, int, list[str]]:
    """Return the maximum load and the moves of an assignment, and reasons to reject it.

    Examples
    --------
    >>> group = {
    ...     "topics": {"t": {"partitions": 2, "weights": [3, 5]}},
    ...     "members": [
    ...         {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]]},
    ...         {"id": "b", "topics": ["t"]},
    ...     ],
    ... }
    >>> check(group, {"a": [["t", 1]], "b": [["t", 0]]}, 5)
    (5, 1, [])
    """
    weight = {
        (name, number): (topic.get("weights") or [1] * topic["partitions"])[number]
        for name, topic in group["topics"].items()
        for number in range(topic["partitions"])
    }
    reads = {member["id"]: set(member["topics"]) for member in group["members"]}
    owner = {
        partition: member["id"]
        for member in group["members"]
        for partition in map(tuple, member.get("owned", []))
    }
    reasons: list[str] = []
    holder: dict[tuple[str, int], str] = {}
    load = dict.fromkeys(reads, 0)
    for member, held in assignment.items():
        for partition in map(tuple, held):
            name = f"{partition[0]}-{partition[1]}"
            if partition not in weight:
                reasons.append(f"{name} does not exist")
            elif partition in holder:
                reasons.append(f"{name} is assigned twice")
            elif partition[0] not in reads.get(member, set()):
                reasons.append(f"{member} does not consume {name}")
            else:
                holder[partition] = member
                load[member] += weight[partition]
    missing = len(weight) - len(holder)
    if missing:
        reasons.append(f"{missing} partitions are not assigned")
    greatest = max(load.values(), default=0)
    if greatest > max_load:
        reasons.append(f"the maximum load {greatest} is above {max_load}")
    moves = sum(holder.get(partition) != member for partition, member in owner.items())
    return greatest, moves, reasons


def main() -> int:
    """Check the assignment file that is named on the command line."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    group, assignment = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    greatest, moves, reasons = check(group, assignment, int(sys.argv[3]))
    print(f"maximum load {greatest}, {moves} moves")
    for reason in reasons:
        print(f"not a solution: {reason}")
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
