"""Results of comparisons between assignments and the optimum."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kassay.reference.model import display
from kassay.reference.model.load_metrics import MEASURES, Measure


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """Value of one measure for an assignment, with the best known value and a proven lower bound.

    None means an unknown number.
    """

    value: int | None = None
    best: int | None = None
    bound: int | None = None

    @classmethod
    def with_optimum(cls, value: int | None, optimum: int | None) -> "ComparedValue":
        """Create a value with a proven optimum. None means that a number is unknown."""
        return cls(value, optimum, optimum)

    @property
    def optimum(self) -> int | None:
        """Return the best known value if it is proven optimal, or None."""
        return self.best if self.best == self.bound else None

    @property
    def gap(self) -> int | None:
        """Return the value minus the optimum, or None if one of them is unknown."""
        if self.value is None or self.optimum is None:
            return None
        return self.value - self.optimum

    @property
    def is_improvable(self) -> bool:
        """Return whether a better value than that of the assignment is known."""
        return self.value is not None and self.best is not None and self.best < self.value


UNKNOWN = ComparedValue()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDistance:
    """Distance of an assignment to the front of imbalance, off-rack reads and moves.

    An assignment is on the front if none of the three can be lower unless another is higher.

    Parameters
    ----------
    imbalance, off_rack, moves
        Value for the assignment, and the minimum if both other values are at most those of the
        assignment.
    moves_any_racks
        Moves of the assignment, and the fewest moves to equal or lower imbalance.
    moves_without_racks
        Moves of the assignor's assignment of the same group without racks, and the fewest moves to
        equal or lower imbalance.
    """

    imbalance: ComparedValue
    off_rack: ComparedValue
    moves: ComparedValue
    moves_any_racks: ComparedValue = UNKNOWN
    moves_without_racks: ComparedValue = UNKNOWN

    @property
    def is_on_front(self) -> bool | None:
        """Return whether the assignment is on the front, or None if this is not proven."""
        criteria = (self.imbalance, self.off_rack, self.moves)
        if any(one.is_improvable for one in criteria):
            return False
        return True if all(one.bound == one.value for one in criteria) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of an assignor's result with the optimum, on one group.

    Parameters
    ----------
    ending
        Name of the `Ending` of the assignor. Values are None unless the ending is ``ok``.
    rounds
        Number of rebalances until no partition was withheld. It is more than 1 only for
        ``cooperative-sticky``, for which the stable assignment is measured.
    measure
        Measure that the optimum minimises. It is ``sum_of_squares`` for equal weights: this
        optimum minimises every measure. Otherwise it is ``makespan``, and the optima of other
        measures are None.
    proven
        Whether the imbalance and the moves of the optimum are proven.
    movement
        Moves of the assignor, and the fewest moves to any assignment with minimum imbalance.
    movement_within
        Fewest moves to any assignment whose imbalance and off-rack reads are at most those of the
        assignor. Off-rack reads are partitions without a replica in the rack of their member.
    front
        Distance to the front, if it was computed.
    levels
        Values and proven optima by JSON key of the level, if `compare` is called with levels.
    violated
        Constraints that the assignor's result violates, as text.
    condition
        Condition under which the result holds; None for a group without assumed data.
    """

    case: str
    assignor: str
    ending: str
    detail: str | None = None
    rounds: int
    measure: Measure | None = None
    proven: bool | None = None
    imbalance: Mapping[Measure, ComparedValue] = field(default_factory=dict)
    movement: ComparedValue = UNKNOWN
    movement_within: int | None = None
    front: FrontDistance | None = None
    levels: Mapping[str, ComparedValue] = field(default_factory=dict)
    violated: tuple[str, ...] = ()
    condition: str | None = None

    def __repr__(self) -> str:
        values = [f"{key} {it.value} (optimum {it.optimum})" for key, it in self.levels.items()]
        if self.measure is not None:
            value, moves = self.imbalance[self.measure], self.movement
            values = [
                f"{self.measure} {value.value} (optimum {value.optimum})",
                f"{moves.value} moves (optimum {moves.optimum})",
            ]
        if self.ending != "ok":
            values = [self._ending]
        under = "" if self.condition is None else f" if {self.condition}"
        return f"<{self.assignor} on {self.case or 'the group'}: {', '.join(values)}{under}>"

    @property
    def _ending(self) -> str:
        return self.ending if self.detail is None else f"{self.ending}: {self.detail}"

    @property
    def imbalance_gap(self) -> int | None:
        """Return the imbalance minus the minimum imbalance, or None if one of them is unknown."""
        return None if self.measure is None else self.imbalance[self.measure].gap

    @property
    def least_imbalance(self) -> bool | None:
        """Return whether the result has minimum imbalance, or None if it is unknown."""
        return None if self.imbalance_gap is None else self.imbalance_gap == 0

    @property
    def movement_gap(self) -> int | None:
        """Return the moves minus those of the optimum, or None unless imbalance is minimum."""
        return self.movement.gap if self.least_imbalance else None

    @property
    def unnecessary_moves(self) -> int | None:
        """Return the number of unnecessary moves, or None if it is unknown."""
        return ComparedValue.with_optimum(self.movement.value, self.movement_within).gap

    def rows(self) -> Iterator[tuple[str, int | None, int | None, int | None]]:
        """Yield the name, the value, the optimum and the gap of each measure or level."""
        for name, it in (self.levels or self.imbalance).items():
            yield str(name), it.value, it.optimum, it.gap
        if not self.levels:
            yield "movement", self.movement.value, self.movement.optimum, self.movement_gap

    def _repr_html_(self) -> str:
        """Return the comparison as an HTML table for notebooks."""
        caption = f"{self.assignor} on {self.case or 'the group'}: {self._ending}"
        cells = [["–" if value is None else value for value in row] for row in self.rows()]
        return display.table(caption, ("measure", "greedy", "optimum", "gap"), cells)


COMPARISON_COLUMNS: Mapping[str, type] = {
    **dict.fromkeys(("case", "assignor", "ending", "detail"), str),
    "rounds": int,
    "measure": str,
    "proven": bool,
    **{f"{measure}_{part}": int for measure in MEASURES for part in ("greedy", "optimum", "gap")},
    "least_imbalance": bool,
    **{f"movement_{part}": int for part in ("greedy", "optimum", "gap", "within")},
    "unnecessary_moves": int,
}
"""Columns of the table ``comparisons``, with one row per group and assignor."""


def comparison_columns(comparison: Comparison) -> dict[str, Any]:
    """Convert a comparison to a row of the table ``comparisons``."""
    columns = {name: getattr(comparison, name, None) for name in COMPARISON_COLUMNS}
    for measure in MEASURES:
        values = comparison.imbalance.get(measure, UNKNOWN)
        columns[f"{measure}_greedy"] = values.value
        columns[f"{measure}_optimum"] = values.optimum
        columns[f"{measure}_gap"] = values.gap
    moves = comparison.movement
    return columns | {"movement_greedy": moves.value, "movement_optimum": moves.optimum}


_CRITERIA = ("imbalance", "off_rack", "moves")
FRONT_COLUMNS: Mapping[str, type] = {
    "assignor": str,
    "on_front": bool,
    **{f"{name}{part}": int for name in _CRITERIA for part in ("", "_within", "_bound")},
    **dict.fromkeys(("fewest_moves", "moves_without_racks", "fewest_moves_without_racks"), int),
}
"""Columns of the table ``front_distances``, with one row per assignment with a front."""


def front_columns(assignor: str, front: FrontDistance) -> dict[str, object]:
    """Convert the distance to the front to a row of the table ``front_distances``."""
    columns: dict[str, object] = {"assignor": assignor, "on_front": front.is_on_front}
    for name in _CRITERIA:
        found: ComparedValue = getattr(front, name)
        columns |= {name: found.value, f"{name}_within": found.best, f"{name}_bound": found.bound}
    return columns | {
        "fewest_moves": front.moves_any_racks.optimum,
        "moves_without_racks": front.moves_without_racks.value,
        "fewest_moves_without_racks": front.moves_without_racks.optimum,
    }
