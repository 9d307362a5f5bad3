"""Check a lower bound on moves of the few-moves benchmark; needs only the standard library.

``python check_bound.py GROUP CERTIFICATE MAX_LOAD`` reads a group document and a certificate. The
certificate is a JSON object: ``prices`` has a list of integers per topic, in units of 1 /
``scale``, and ``grain`` is the unit of weight. The command prints the bound that the prices prove.

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


def proven_moves(group: Mapping[str, Any], certificate: Mapping[str, Any], max_load: int) -> int:
    """Return the lower bound on the moves that the prices of a certificate prove.

    Examples
    --------
    >>> group = {
    ...     "topics": {"t": {"partitions": 2, "weights": [3, 5]}},
    ...     "members": [
    ...         {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]]},
    ...         {"id": "b", "topics": ["t"]},
    ...     ],
    ... }
    >>> proven_moves(group, {"prices": {"t": [1, 1]}, "scale": 1, "grain": 1}, 5)
    1
    """
    scale, grain = certificate["scale"], certificate["grain"]
    price, weight = {}, {}
    for name, topic in group["topics"].items():
        weights = topic.get("weights") or [1] * topic["partitions"]
        for number, one in enumerate(weights):
            weight[name, number] = one
            price[name, number] = certificate["prices"][name][number]
    if min(price.values()) < 0:
        raise SystemExit(f"prices must be at least 0, got {min(price.values())}")
    owned = {
        member["id"]: [tuple(one) for one in member.get("owned", [])] for member in group["members"]
    }
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


def main() -> int:
    """Check the certificate file that is named on the command line."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    group, certificate = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    print(f"at least {proven_moves(group, certificate, int(sys.argv[3]))} moves")
    return 0


if __name__ == "__main__":
    sys.exit(main())
