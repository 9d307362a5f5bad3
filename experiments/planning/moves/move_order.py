"""Order moves so that the maximum load is low after each move, by beam search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WIDTH = 12
_Numbers = NDArray[np.float64]
_Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LoadChanges:
    """Changes of loads by moves: an entry per move. Members are indices.

    Loads are floating-point numbers, because they only determine an order.
    """

    source: _Indices
    target: _Indices
    given: _Numbers  # relative load that the source loses
    received: _Numbers  # relative load that the target gains

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int]]) -> "LoadChanges":
        """Create the columns from rows (source, target, given, received)."""
        source, target, given, received = zip(*rows, strict=True)
        return cls(
            np.array(source, np.intp),
            np.array(target, np.intp),
            np.array(given, np.float64),
            np.array(received, np.float64),
        )


@dataclass(frozen=True, slots=True)
class _Prefix:
    """First moves, and the loads after them."""

    order: tuple[int, ...]
    is_pending: NDArray[np.bool_]
    loads: _Numbers
    makespans: float  # sum of the maximum loads after each move
    squares: float  # sum of the sums of squared loads after each move


def order_moves(changes: LoadChanges, loads: Sequence[int]) -> tuple[int, ...]:
    """Order moves to minimise the sum of the maximum loads after each move; a heuristic.

    ``loads`` are the relative loads before the first move.
    """
    # Three members without load simplify the search for the highest load of other members.
    padded = np.array([*loads, 0, 0, 0], np.float64)
    beam = [_Prefix((), np.ones(len(changes.source), np.bool_), padded, 0.0, 0.0)]
    for _ in range(len(changes.source)):
        beam = list(_longer_prefixes(changes, beam))
    return beam[0].order


def _longer_prefixes(changes: LoadChanges, beam: Sequence[_Prefix]) -> Iterator[_Prefix]:
    """Yield the best prefixes with one more move, with different sets of moves."""
    values = [_values(changes, prefix) for prefix in beam]
    parent = np.repeat(np.arange(len(beam)), [len(moves) for moves, _, _ in values])
    moves, makespans, squares = map(np.concatenate, zip(*values, strict=True))
    sets: set[bytes] = set()
    for at in np.lexsort((squares, makespans)).tolist():
        prefix, move = beam[parent[at]], int(moves[at])
        is_pending = prefix.is_pending.copy()
        is_pending[move] = False
        if is_pending.tobytes() in sets:
            continue
        sets.add(is_pending.tobytes())
        loads = prefix.loads.copy()
        loads[changes.source[move]] -= changes.given[move]
        loads[changes.target[move]] += changes.received[move]
        order = (*prefix.order, move)
        yield _Prefix(order, is_pending, loads, float(makespans[at]), float(squares[at]))
        if len(sets) == _WIDTH:
            return


def _values(changes: LoadChanges, prefix: _Prefix) -> tuple[_Indices, _Numbers, _Numbers]:
    """Return the pending moves, with both sums of the prefix after each of them."""
    moves, loads = np.flatnonzero(prefix.is_pending), prefix.loads
    source, target = changes.source[moves], changes.target[moves]
    after_source = loads[source] - changes.given[moves]
    after_target = loads[target] + changes.received[moves]
    highest = np.maximum(after_source, after_target)
    is_free = np.ones(len(moves), np.bool_)
    for member in np.argsort(-loads, kind="stable")[:3].tolist():
        is_highest = is_free & (source != member) & (target != member)
        highest[is_highest] = np.maximum(highest[is_highest], loads[member])
        is_free &= ~is_highest
    squares = (
        loads @ loads + after_source**2 + after_target**2 - loads[source] ** 2 - loads[target] ** 2
    )
    return moves, prefix.makespans + highest, prefix.squares + squares
