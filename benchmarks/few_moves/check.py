"""Check assignments and bounds of the few-moves benchmark; needs only the standard library.

``python check.py GROUP DOCUMENT MAX_LOAD`` reads a group document and one of these documents:

- an assignment document: the command prints the maximum load and the moves, and exits with 1 if
  the assignment is not a solution
- a certificate, a JSON object: ``received`` has the partitions that each member receives, and all
  others stay with their owner. ``prices`` has a list of integers per topic, in units of
  1 / ``scale``, and ``grain`` is the unit of weight. The command also prints the lower bound on
  the moves that the prices prove

A member pays the price of each partition that it gives away. For each partition that it receives,
it earns the price minus the cost of a move, which is 1 for an owned partition. The sum of the
minimum payments of all members is a lower bound on the moves.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_INFINITE = 2**60


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
    weight = _weights(group)
    reads = {member["id"]: set(member["topics"]) for member in group["members"]}
    owner = {partition: member for member, held in _owned(group).items() for partition in held}
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


def proven_moves(group: Mapping[str, Any], certificate: Mapping[str, Any], max_load: int) -> int:
    """Return the lower bound on the moves that the prices of a certificate prove.

    Examples
    --------
    >>> member = {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]]}
    >>> members = [member, {"id": "b", "topics": ["t"]}]
    >>> group = {"topics": {"t": {"partitions": 2, "weights": [3, 5]}}, "members": members}
    >>> proven_moves(group, {"prices": {"t": [1, 1]}, "scale": 1, "grain": 1}, 5)
    1
    """
    scale, grain = certificate["scale"], certificate["grain"]
    weight, owned = _weights(group), _owned(group)
    price = {(name, number): certificate["prices"][name][number] for name, number in weight}
    if min(price.values()) < 0:
        raise SystemExit(f"prices must be at least 0, got {min(price.values())}")
    with_owner = {partition for partitions in owned.values() for partition in partitions}
    total = sum(price[one] for one in price.keys() - with_owner)
    for member in group["members"]:
        own = owned[member["id"]]
        room = (max_load - sum(weight[one] for one in own)) // grain
        width = max_load // grain + 2 + max(0, -room)
        others = [one for one in weight if one[0] in member["topics"] and one not in own]
        gains = [(weight[one] // grain, price[one] - scale * (one in with_owner)) for one in others]
        paid = _least_paid([(-(-weight[one] // grain), price[one]) for one in own], width)
        earned = _most_earned(gains, width)
        total += min(
            paid[amount] - earned[min(room + amount, width - 1)]
            for amount in range(max(0, -room), width)
        )
    return max(0, -(-total // scale))


def _least_paid(items: Iterable[tuple[int, int]], width: int) -> list[int]:
    """Return, per total size, the minimum price of items with at least this size."""
    paid = [0] + [_INFINITE] * (width - 1)
    for size, price in items:
        before = paid[:1] * size + paid
        paid = [min(one, other + price) for one, other in zip(paid, before, strict=False)]
    return paid


def _most_earned(items: Iterable[tuple[int, int]], width: int) -> list[int]:
    """Return, per total size, the maximum gain of items with at most this size."""
    earned = [0] * width
    for size, gain in items:
        if gain > 0 and size < width:
            larger = zip(earned[size:], earned, strict=False)
            earned[size:] = [max(one, other + gain) for one, other in larger]
    return earned


def assignment_of(group: Mapping[str, Any], certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the assignment document of a certificate.

    Examples
    --------
    >>> group = {"topics": {}, "members": [{"id": "a", "owned": [["t", 0]]}, {"id": "b"}]}
    >>> assignment_of(group, {"received": {"b": [["t", 0]]}})
    {'a': [], 'b': [('t', 0)]}
    """
    received = {
        member: [tuple(one) for one in held] for member, held in certificate["received"].items()
    }
    moved = {partition for held in received.values() for partition in held}
    kept = {
        member: [one for one in held if one not in moved] for member, held in _owned(group).items()
    }
    return {member: [*held, *received.get(member, [])] for member, held in kept.items()}


def _weights(group: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    return {
        (name, number): (topic.get("weights") or [1] * topic["partitions"])[number]
        for name, topic in group["topics"].items()
        for number in range(topic["partitions"])
    }


def _owned(group: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
    return {
        member["id"]: [(name, number) for name, number in member.get("owned", [])]
        for member in group["members"]
    }


def main() -> int:
    """Check the document that is named on the command line."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    group, document = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    max_load = int(sys.argv[3])
    is_certificate = "received" in document
    assignment = assignment_of(group, document) if is_certificate else document
    greatest, moves, reasons = check(group, assignment, max_load)
    print(f"maximum load {greatest}, {moves} moves")
    for reason in reasons:
        print(f"not a solution: {reason}")
    if is_certificate:
        print(f"at least {proven_moves(group, document, max_load)} moves")
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
