"""What was found, and what is proven about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from kassay.reference.model import html_tables as notebook
from kassay.reference.model.assignment import Assignment

if TYPE_CHECKING:
    from kassay.solver.certificate.check import Certificate


class Status(StrEnum):
    """What a solution is."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LevelValue:
    """The value of one level, and the least that it can be.

    Parameters
    ----------
    value
        What the assignment has.
    bound
        Proven lower bound: no assignment that keeps what the earlier levels reached has
        less.
    slack
        What the level's tolerance allows on top of the bound; 0 for an exact level.

    Raises
    ------
    ValueError
        If the value is below its bound: one of them is wrong.

    Examples
    --------
    >>> LevelValue(7, 5).gap, LevelValue(7, 5).is_proven, LevelValue(7, 5, slack=2).is_proven
    (2, False, True)
    """

    value: int
    bound: int
    slack: int = 0

    def __post_init__(self) -> None:
        """Refuse a value that contradicts its bound."""
        if self.value < self.bound:
            raise ValueError(f"value {self.value} is below its bound {self.bound}")

    @property
    def gap(self) -> int:
        """Optimality gap: value minus bound."""
        return self.value - self.bound

    @property
    def is_proven(self) -> bool:
        """Whether the value is proven to be as good as the level asks."""
        return self.gap <= self.slack


@dataclass(frozen=True, slots=True)
class Solution:
    """The best assignment found, with value and bound of every level.

    A limit that is hit costs proof, not the answer: there is no assignment only where
    constraints admit none (``conflict`` says which), or where none that meets them was
    found in time.

    Parameters
    ----------
    assignment
        What was found.
    method
        How: ``"flow"`` or ``"cp-sat"``.
    levels
        Name and result of every level, in lexicographic order.
    seconds
        Wall-clock time of the whole solve, without loading OR-Tools, once a process.
    timings
        Parts of it in seconds, by name.
    certificate
        Evidence that `solver.certificate.check` checks without a solver; flow answers have it.
    conflict
        Constraints that cannot hold together, as a small subset, in words.
    """

    assignment: Assignment | None
    method: str
    levels: tuple[tuple[str, LevelValue], ...] = ()
    seconds: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    certificate: "Certificate | None" = None
    conflict: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Status, derived from the levels so that it cannot contradict them."""
        if self.assignment is None:
            return Status.INFEASIBLE if self.conflict else Status.UNKNOWN
        return Status.OPTIMAL if self.is_optimal else Status.FEASIBLE

    @property
    def is_optimal(self) -> bool:
        """Whether every level is proven."""
        return self.assignment is not None and all(level.is_proven for _, level in self.levels)

    @property
    def imbalance(self) -> LevelValue:
        """The first level. Every solve has one.

        Raises
        ------
        LookupError
            If nothing was found.
        """
        if not self.levels:
            raise LookupError("there is no assignment, so no level has a value")
        return self.levels[0][1]

    @property
    def movement(self) -> LevelValue:
        """The level named ``movement``.

        Raises
        ------
        LookupError
            If nothing was found, or movement was not asked for.
        """
        for name, level in self.levels:
            if name == "movement":
                return level
        raise LookupError("movement is not among the levels")

    def _repr_html_(self) -> str:
        """Show it in a notebook: what is proven of each level, and the assignment."""
        caption = f"{self.status} by {self.method} in {self.seconds:.3f} s"
        if self.conflict:
            caption += f": {'; '.join(self.conflict)}"
        rows = (
            (name, level.value, level.bound, "proven" if level.is_proven else "not proven")
            for name, level in self.levels
        )
        levels = notebook.table(caption, ("level", "value", "bound", ""), rows)
        if self.assignment is None:
            return levels
        return levels + notebook.loads_table("assignment", self.assignment.loads(), self.assignment)
