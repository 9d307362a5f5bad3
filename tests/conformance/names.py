"""Names for generated groups, picked for the ways in which order can go wrong.

Java sorts strings by UTF-16 code unit and spreads them over hash tables by
``String.hashCode``: names that differ in those ways, or share a hash, find ports that do not.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Collection

Naming = Callable[[random.Random, int], str]

# One hash code for each pair, so 2**n names of n pairs share one: a hash table's bin as a tree.
_SAME_HASH = ("Aa", "BB")
# Java puts U+1F600, a surrogate pair, before U+FF21; by code point it comes after.
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


def _colliding(rng: random.Random, _: int) -> str:
    return "".join(rng.choice(_SAME_HASH) for _ in range(6))


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


def fresh_name(rng: random.Random, naming: str, taken: Collection[str]) -> str:
    """Make a name of the kind that is not yet taken.

    Parameters
    ----------
    rng
        Source of every random choice.
    naming
        Key of `NAMINGS`.
    taken
        Names in use. The 65th of the colliding kind, which has 64, is a plain one.
    """
    for attempt in range(20):
        name = NAMINGS[naming](rng, len(taken) + attempt)
        if name not in taken:
            return name
    index = len(taken)
    while f"n{index}" in taken:
        index += 1
    return f"n{index}"
