"""Certificates: claims that an assignment is optimal, and the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kassay.solver.constraints import Constraint
from kassay.solver.improvement.transfer_chains import Transfer
from kassay.solver.objective import Level

Price = tuple[int, int]  # squared load, movement; compared lexicographically


class Origin(StrEnum):
    """Origin of a bound: prices and counting can be checked, other origins are trusted."""

    PRICES = "prices"
    COUNTING = "counting"
    ENUMERATION = "enumeration"
    EXCHANGE = "exchange"
    CP_SAT = "cp-sat"

    @property
    def is_checked(self) -> bool:
        """Return whether `certificate_errors` can check bounds of this origin."""
        return self in {Origin.PRICES, Origin.COUNTING}


@dataclass(frozen=True, slots=True)
class LevelClaim:
    """Value and bound of one level, and the origin of the bound.

    The bound holds for assignments within the limits that earlier levels set.
    """

    level: Level
    value: int
    bound: int
    origin: Origin

    @property
    def slack(self) -> int:
        """Return the amount by which the tolerance lets the value exceed the bound."""
        return self.level.tolerance.limit(self.bound) - self.bound

    @property
    def is_proven(self) -> bool:
        """Return whether the claimed bound proves the value optimal within the tolerance."""
        return self.value - self.bound <= self.slack


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Node prices that prove an assignment optimal on sum of squares, then movement.

    Members that consume a topic have the price of one more partition; topics with subscribers
    have the price of one partition.
    """

    members: Mapping[str, Price]
    topics: Mapping[str, Price]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Claimed value and bound of each level of an assignment, with evidence.

    Parameters
    ----------
    prices
        Evidence of the bounds with origin ``prices``.
    chain
        Transfers that improve the assignment, if it is known not to be optimal.
    constraints
        Constraints that must hold besides the capacities of the group.
    """

    claims: tuple[LevelClaim, ...]
    prices: PriceTable | None = None
    chain: tuple[Transfer, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @property
    def is_optimal(self) -> bool:
        """Return whether the certificate claims that every level is optimal."""
        return not self.chain and all(claim.is_proven for claim in self.claims)

    @property
    def trusted(self) -> tuple[LevelClaim, ...]:
        """Return the claims with bounds that cannot be checked without a solver."""
        return tuple(claim for claim in self.claims if not claim.origin.is_checked)
