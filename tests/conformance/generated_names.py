"""Names of generated groups, chosen to test sort orders and hash tables.

Java sorts strings by UTF-16 code unit and uses ``String.hashCode``. The names include
surrogate pairs and names with equal hash codes.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Collection

Naming = Callable[[random.Random, int], str]

# Both have the same hash code, so 2**n names of n parts share one. Bins of more than eight names
# are rare: their order in large tables is a known deviation.
_SAME_HASH = ("Aa", "BB")
# Java sorts U+1F600, a surrogate pair, before U+FF21; by code point it is after it.
_SIGNS = ("é", "ß", "Ω", "ж", "中", "\ue000", "Ａ", "😀", "𝒳", "\U0010fffd")
_NUMBERS = ("{}", "0{}", "00{}", "-{}", "+{}", "{}.0", "1e{}", " {}", "0x{}")


def _plain(_: random.Random, index: int) -> str:
    return f"n{index}"


def _padded(_: random.Random, index: int) -> str:
    return f"node-{index:04d}"


def _numeric(rng: random.Random, index: int) -> str:
    return rng.choice(_NUMBERS).format(index)


def _consumer(rng: random.Random, index: int) -> str:
    return f"consumer-group-{index}-{uuid.UUID(int=rng.getrandbits(128), version=4)}"


def _unicode(rng: random.Random, index: int) -> str:
    signs = "".join(rng.choice(_SIGNS) for _ in range(rng.randint(1, 3)))
    return signs if rng.random() < 0.5 else f"{signs}{index}"


def _colliding(rng: random.Random, index: int) -> str:
    return f"{index // 4}" + "".join(rng.choice(_SAME_HASH) for _ in range(2))


def _dotted(rng: random.Random, index: int) -> str:
    return f"{rng.choice(('orders', 'users', 'audit.log', 'ORDERS', 'geo_events'))}.v{index}"


def _mixed(rng: random.Random, index: int) -> str:
    return rng.choice((_plain, _numeric, _unicode, _dotted))(rng, index)


NAMINGS: dict[str, Naming] = {
    "plain": _plain,
    "padded": _padded,
    "numeric": _numeric,
    "consumer": _consumer,
    "unicode": _unicode,
    "colliding": _colliding,
    "dotted": _dotted,
    "mixed": _mixed,
}


def new_name(rng: random.Random, naming: str, used: Collection[str]) -> str:
    """Generate a name that is not in use; ``naming`` is a key of `NAMINGS`."""
    for attempt in range(20):
        name = NAMINGS[naming](rng, len(used) + attempt)
        if name not in used:
            return name
    index = len(used)
    while f"n{index}" in used:
        index += 1
    return f"n{index}"
