"""Result of the solver with the assignment, the values and the proven bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kassay.reference.model import display
from kassay.reference.model.assignment import NO_OWNER, Assignment, ownership
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import condition
from kassay.reference.model.load_metrics import Measure, loads, shown
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.certificate.certificate import (
    Certificate,
    LevelClaim,
    Origin,
    Proof,
    weakest_proof,
)
from kassay.solver.network.improving_chains import Transfer
from kassay.solver.objective import CrossRack, is_preference
from kassay.solver.problem import integer_text


class Method(StrEnum):
    """Method to find the optimum."""

    AUTO = "auto"
    FLOW = "flow"
    CP_SAT = "cp-sat"


class Status(StrEnum):
    """Status of a solution: optimal, feasible, infeasible or unknown."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


class UsedMethod(StrEnum):
    """Last method of this list that contributed to a solution.

    ``counting`` means bounds by counting that initial placements meet, without a search.
    """

    COUNTING = "counting"
    FLOW = "flow"
    ENUMERATION = "enumeration"
    IDENTICAL_MEMBERS = "identical-members"
    COLUMN_GENERATION = "column-generation"
    CP_SAT = "cp-sat"

    @classmethod
    def of_origin(cls, origin: Origin) -> "UsedMethod":
        """Return the method that proves bounds with this origin."""
        return {
            Origin.NODE_PRICES: cls.FLOW,
            Origin.FLOW: cls.FLOW,
            Origin.ENUMERATION: cls.ENUMERATION,
            Origin.PACKING: cls.IDENTICAL_MEMBERS,
            Origin.EXCHANGE: cls.COLUMN_GENERATION,
            Origin.CP_SAT: cls.CP_SAT,
        }.get(origin, cls.COUNTING)


@dataclass(frozen=True, slots=True)
class LevelValue:
    """Value of one level with its proven lower bound.

    The bound is valid for all assignments that keep the values of the earlier levels. Raise
    InternalError if the value is below the bound, because one of the two is wrong.
    """

    name: str
    value: int
    bound: int
    slack: int = 0  # by which the tolerance of the level lets the value exceed the bound
    origin: Origin | None = field(default=None, repr=False)  # of the bound, if it is known
    is_preference: bool = field(default=False, repr=False)
    """Whether the solution can be optimal without a proof of the level."""

    def __post_init__(self) -> None:
        if self.value < self.bound:
            raise InternalError(
                f"internal error: the value {self.value} of {self.name} is below its bound "
                f"{self.bound}; report a bug with this message and the group"
            )

    @property
    def gap(self) -> int:
        """Return the optimality gap, the value minus the bound."""
        return self.value - self.bound

    def __str__(self) -> str:
        bound = "" if self.gap == 0 else f" (bound {integer_text(self.bound)})"
        return f"{self.name} {integer_text(self.value)}{bound}"

    @property
    def is_proven(self) -> bool:
        """Return whether the value is proven optimal within the tolerance."""
        return self.gap <= self.slack

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the value is optimal within the tolerance."""
        if not self.is_proven:
            return Proof.NONE
        return Proof.SEARCH if self.origin is None else self.origin.proof


def level_values(claims: Iterable[LevelClaim]) -> tuple[LevelValue, ...]:
    """Convert the claims of a certificate to values and bounds."""
    return tuple(
        LevelValue(
            claim.level.name,
            claim.value,
            claim.bound,
            claim.slack,
            claim.origin,
            is_preference(claim.level),
        )
        for claim in claims
    )


def value_and_bound(
    level: LevelValue | None, group: Group | None = None
) -> dict[str, int | float] | None:
    """Convert the value and the bound of a level to a JSON object.

    With a group, both are in the unit of its loads, as `load_metrics.shown` converts them.
    """
    if level is None:
        return None
    value, bound = (shown(level.name, one, group) for one in (level.value, level.bound))
    return {"value": value, "bound": bound}


def level_keys(names: Iterable[str]) -> list[str]:
    """Return the JSON key of each level: ``imbalance`` or the name of the level.

    Examples
    --------
    >>> level_keys(["host_makespan", "makespan", "movement"])
    ['host_makespan', 'imbalance', 'movement']
    """
    keys = list(names)
    first = next((index for index, name in enumerate(keys) if name in list(Measure)), None)
    if first is not None:
        keys[first] = "imbalance"
    return keys


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """Fewest moves and greatest lower bound known at one point of a search."""

    work: float  # counted since the start of the search
    value: int
    bound: int


@dataclass(frozen=True, slots=True)
class Solution:
    """Best assignment found, with value and bound per level.

    There is no assignment only if the constraints are infeasible (see ``conflict``), or if
    no assignment that meets them was found within the limits.

    Parameters
    ----------
    method
        The `UsedMethod` that found or proved the solution.
    levels
        Result of every level, in lexicographic order.
    seconds, timings
        Wall-clock time of the whole solve, and per part of it.
    work
        Counted work, see `SearchLimits`.
    interrupted
        Whether the safety limit or the stop event ended the search before the proof.
    certificate
        Claims and evidence that `certificate_errors` checks without a solver.
    conflict
        A small subset of the constraints that is infeasible, as text.
    progress
        Improvements of movement in order, if the search for few moves ran.
    group
        The solved group.
    """

    assignment: Assignment | None
    method: str
    levels: tuple[LevelValue, ...] = ()
    seconds: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    work: float = 0.0
    interrupted: bool = False
    certificate: Certificate | None = None
    conflict: tuple[str, ...] = ()
    progress: tuple[ProgressPoint, ...] = ()
    group: Group | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        values = "; ".join(map(str, self.conflict or self.levels))
        under = "" if self.condition is None else f" if {self.condition}"
        return f"<solution by {self.method}: {self.status}{under}{', ' if values else ''}{values}>"

    @property
    def condition(self) -> str | None:
        """Return the assumptions on which the status depends, or None without assumptions."""
        if self.group is None:
            return None
        with_racks = any(level.name == CrossRack.name for level in self.levels)
        return condition(self.group, with_racks=with_racks)

    @property
    def moves(self) -> tuple[Transfer, ...]:
        """List the moves; the list is empty without an assignment."""
        if self.assignment is None or self.group is None:
            return ()
        owners, members = ownership(self.group).owners, self.group.members
        return tuple(
            Transfer(TopicPartition(topic, number), members[owner].id, member)
            for member, partitions in self.assignment.items()
            for topic, number in partitions
            if (owner := int(owners[topic][number])) != NO_OWNER and members[owner].id != member
        )

    @property
    def status(self) -> Status:
        """Derive the status of the solution from its levels."""
        if self.assignment is None:
            return Status.INFEASIBLE if self.conflict else Status.UNKNOWN
        return Status.OPTIMAL if self.is_optimal else Status.FEASIBLE

    @property
    def is_optimal(self) -> bool:
        """Return whether all levels except preferences are proven optimal."""
        required = (level.is_proven for level in self.levels if not level.is_preference)
        return self.assignment is not None and all(required)

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the solution is optimal, or that no assignment exists."""
        if self.certificate is not None and self.certificate.conflict is not None:
            return self.certificate.proof
        return weakest_proof(level.proof for level in self.levels if not level.is_preference)

    @property
    def imbalance(self) -> LevelValue:
        """Return the value of the first imbalance level.

        Without such a level, return the value of the first level. Raise LookupError if there is no
        assignment.
        """
        if not self.levels:
            raise LookupError(f"the solution has no values; its status is {self.status}")
        measures = (level for level in self.levels if level.name in list(Measure))
        return next(measures, self.levels[0])

    @property
    def movement(self) -> LevelValue:
        """Return the level ``movement``. Raise LookupError if there is none."""
        return self.level("movement")

    def proof_by_level(self) -> dict[str, str]:
        """Return a JSON object with the kind of proof per level, or of the conflict."""
        if self.assignment is None:
            return {"conflict": str(self.proof)}
        keys = level_keys(level.name for level in self.levels)
        return {key: str(level.proof) for key, level in zip(keys, self.levels, strict=True)}

    def values_by_level(self) -> dict[str, dict[str, int | float]]:
        """Return a JSON object with the value and the bound per level."""
        keys = level_keys(level.name for level in self.levels)
        values = (value_and_bound(level, self.group) or {} for level in self.levels)
        return dict(zip(keys, values, strict=True))

    def level(self, name: str) -> LevelValue:
        """Return the level with the given name. Raise LookupError if there is none."""
        for level in self.levels:
            if level.name == name:
                return level
        names = ", ".join(repr(level.name) for level in self.levels) or "none"
        raise LookupError(f"the solution has no level {name!r}; it has the levels {names}")

    def _repr_html_(self) -> str:
        under = "" if self.condition is None else f" if {self.condition}"
        caption = f"{self.status}{under} by {self.method} in {self.seconds:.3f} s"
        if self.conflict:
            caption += f": {'; '.join(self.conflict)}"
        rows = ((level.name, level.value, level.bound, str(level.proof)) for level in self.levels)
        levels = display.table(caption, ("level", "value", "bound", ""), rows)
        if self.assignment is None or self.group is None:
            return levels
        by_member = loads(self.group, self.assignment)
        return levels + display.loads_table(by_member, self.assignment)
