"""Certificates: claims that an assignment is optimal, with evidence for the claims."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction

from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError
from kassay.solver import constraints, objective
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.constraints import Constraint
from kassay.solver.improvement.residual_network import Price, PriceTable
from kassay.solver.improvement.transfer_chains import Transfer
from kassay.solver.objective import Level


class Proof(StrEnum):
    """Kind of proof that the value of a level is optimal, or that constraints cannot be met.

    A reader checks a certificate without a solver; other proofs require trust in the solver.
    All proofs use integer arithmetic, except those of HiGHS, which uses floating point.
    """

    CERTIFICATE = "proven by certificate"
    CP_SAT = "proven by CP-SAT"
    SEARCH = "proven by search"
    HIGHS = "proven by HiGHS"
    NONE = "not proven"


class Origin(StrEnum):
    """Method that proved a bound or a conflict.

    Bounds and conflicts of the first five origins can be checked without a solver.
    """

    PRICES = "prices"
    NODE_PRICES = "node_prices"
    COUNTING = "counting"
    PARTITION_PRICES = "partition_prices"
    CASES = "cases"
    FLOW = "flow"
    ENUMERATION = "enumeration"
    EXCHANGE = "exchange"
    PACKING = "packing"
    CP_SAT = "cp-sat"
    HIGHS = "highs"

    @property
    def is_checked(self) -> bool:
        """Return whether a bound that this method proves can be checked without a solver.

        The function `certificate_errors` checks these bounds.
        """
        return self in _CHECKED

    @property
    def proof(self) -> Proof:
        """Return the kind of proof for bounds and conflicts that this method proves."""
        if self.is_checked:
            return Proof.CERTIFICATE
        solvers = {Origin.CP_SAT: Proof.CP_SAT, Origin.HIGHS: Proof.HIGHS}
        return solvers.get(self, Proof.SEARCH)


_CHECKED = frozenset(
    {Origin.PRICES, Origin.NODE_PRICES, Origin.COUNTING, Origin.PARTITION_PRICES, Origin.CASES},
)


def weakest_proof(proofs: Iterable[Proof]) -> Proof:
    """Return the weakest of several kinds of proof.

    It is the kind of proof that all values together are optimal.

    Examples
    --------
    >>> str(weakest_proof([Proof.CERTIFICATE, Proof.CP_SAT]))
    'proven by CP-SAT'
    """
    order = list(Proof)
    return max(proofs, key=order.index, default=Proof.NONE)


@dataclass(frozen=True, slots=True)
class LevelClaim:
    """Claimed value and bound of one level, and the method that proved the bound.

    The bound holds for assignments within the limits of earlier levels: the tolerance limit of
    the value of the best known assignment.

    Parameters
    ----------
    best
        Best known assignment on this level, if it is better than the certified assignment,
        which the tolerance allows to be worse.
    prices
        Evidence of a bound with origin ``partition_prices``: the prices refute values below
        the bound.
    """

    level: Level
    value: int
    bound: int
    origin: Origin
    best: Assignment | None = None
    prices: PartitionPrices | None = None

    @property
    def slack(self) -> int:
        """Return the maximum excess of the value over the bound that the tolerance permits."""
        return self.level.tolerance.limit(self.bound) - self.bound

    @property
    def is_proven(self) -> bool:
        """Return whether the claimed bound proves the value optimal within the tolerance."""
        return self.bound >= 0 and self.value - self.bound <= self.slack

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the value is optimal within the tolerance."""
        return self.origin.proof if self.is_proven else Proof.NONE


@dataclass(frozen=True, slots=True)
class Conflict:
    """Set of constraints that no assignment meets, with evidence for this.

    Parameters
    ----------
    constraints
        Small subset of the constraints and of the capacities of the group.
    prices
        Evidence of a conflict with origin ``partition_prices``.
    """

    constraints: tuple[Constraint, ...]
    origin: Origin
    prices: PartitionPrices | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Claims about the levels of an assignment, or a conflict of constraints, with evidence.

    Parameters
    ----------
    prices
        Evidence of the bounds with origin ``prices``.
    chain
        Transfers that improve the assignment, if it is known not to be optimal.
    node_prices
        Evidence of the bounds with origin ``node_prices``: a price per node of the
        `kassay.solver.level_network`.
    constraints
        Constraints that must hold besides the capacities of the group.
    conflict
        Conflict that excludes every assignment; there are no claims then.
    """

    claims: tuple[LevelClaim, ...]
    prices: PriceTable | None = None
    chain: tuple[Transfer, ...] = ()
    node_prices: tuple[int, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    conflict: Conflict | None = None

    def __repr__(self) -> str:
        claims = "; ".join(
            f"{one.level.name} {one.value:,}, bound {one.bound:,} ({one.origin})"
            for one in self.claims
        )
        return f"<certificate: {claims or self.conflict}>"

    @property
    def is_optimal(self) -> bool:
        """Return whether the certificate claims that every level is optimal."""
        return self.conflict is None and self.proof is not Proof.NONE

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that all levels are optimal or that the constraints conflict."""
        if self.conflict is not None:
            return self.conflict.origin.proof
        return Proof.NONE if self.chain else weakest_proof(claim.proof for claim in self.claims)

    @property
    def trusted(self) -> tuple[LevelClaim, ...]:
        """Return the claims with bounds that cannot be checked without a solver."""
        return tuple(claim for claim in self.claims if not claim.origin.is_checked)


VERSION = 3

CONSTRAINTS: dict[str, type[constraints.Constraint]] = {
    "capacity": constraints.Capacity,
    "max_partitions": constraints.MaxPartitions,
    "max_moves": constraints.MaxMoves,
    "pinned": constraints.Pinned,
    "forbidden": constraints.Forbidden,
    "colocated": constraints.Colocated,
    "separated": constraints.Separated,
}
"""Constraints by their names in documents. The other keys are the names of their fields."""


def certificate_document(certificate: Certificate) -> dict[str, object]:
    """Convert a certificate to a JSON document without empty fields."""
    document: dict[str, object] = {
        "version": VERSION,
        "claims": [_claim_document(claim) for claim in certificate.claims],
    }
    if certificate.constraints:
        document["constraints"] = [constraint_document(rule) for rule in certificate.constraints]
    if certificate.prices is not None:
        document["members"] = _price_document(certificate.prices.members)
        document["topics"] = _price_document(certificate.prices.topics)
    if certificate.node_prices:
        document["node_prices"] = list(certificate.node_prices)
    if certificate.chain:
        document["chain"] = [
            {"partition": list(step.partition), "from": step.giver, "to": step.taker}
            for step in certificate.chain
        ]
    if certificate.conflict is not None:
        document["conflict"] = _conflict_document(certificate.conflict)
    return document


def level_document(level: objective.Level) -> dict[str, object]:
    """Convert a level of the objective to a JSON document."""
    document: dict[str, object] = {"level": level.name}
    if level.tolerance.up_to is not None:
        document["up_to"] = level.tolerance.up_to
    elif level.tolerance:
        share = Fraction(level.tolerance.relative)
        document["tolerance"] = [level.tolerance.absolute, share.numerator, share.denominator]
    match level:
        case objective.Movement(cost=tuple(costs), other=other):
            document["cost"] = [[[tp.topic, tp.partition], cost] for tp, cost in costs]
            document["other"] = other
        case objective.Movement(cost=cost):
            document["cost"] = str(cost)
        case objective.Colocation(topics=topics):
            document["topics"] = [list(names) for names in topics]
        case _:
            pass
    return document


def constraint_document(rule: constraints.Constraint) -> dict[str, object]:
    """Convert a constraint to a JSON document."""
    name = next((name for name, kind in CONSTRAINTS.items() if isinstance(rule, kind)), None)
    if name is None:
        raise InternalError(f"CONSTRAINTS in {__name__} has no entry for {rule!r}")
    return {"constraint": name} | {field.name: getattr(rule, field.name) for field in fields(rule)}


def _claim_document(claim: LevelClaim) -> dict[str, object]:
    document = level_document(claim.level) | {
        "value": claim.value,
        "bound": claim.bound,
        "origin": str(claim.origin),
    }
    if claim.best is not None:
        document["best"] = assignment_document(claim.best)
    if claim.prices is not None:
        document["prices"] = _partition_price_document(claim.prices)
    return document


def _conflict_document(conflict: Conflict) -> dict[str, object]:
    document: dict[str, object] = {
        "constraints": [constraint_document(rule) for rule in conflict.constraints],
        "origin": str(conflict.origin),
    }
    if conflict.prices is not None:
        document["prices"] = _partition_price_document(conflict.prices)
    return document


def _partition_price_document(prices: PartitionPrices) -> dict[str, object]:
    return {
        "topics": {topic: list(table) for topic, table in prices.prices.items()},
        "max_moves": prices.max_moves,
        "levels": list(prices.levels),
    }


def _price_document(prices: Mapping[str, Price]) -> dict[str, list[int]]:
    return {name: list(price) for name, price in prices.items()}
