"""Certificates that an assignment or a sequence of rebalances is optimal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.certificate.trajectory_evidence import LoadEvidence
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import group_constraints, level_value, violated
from kassay.solver.network.improving_chains import Transfer, apply_chain
from kassay.solver.objective import EXACT, Level, Tolerance, is_preference
from kassay.solver.problem import Problem, build_problem


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

    Bounds and conflicts of the first four origins can be checked without a solver.
    """

    NODE_PRICES = "node_prices"
    COUNTING = "counting"
    PARTITION_PRICES = "partition_prices"
    CASES = "cases"
    FLOW = "flow"
    ENUMERATION = "enumeration"
    EXCHANGE = "exchange"
    PACKING = "packing"
    CP_SAT = "cp-sat"

    @property
    def is_checked(self) -> bool:
        """Return whether bounds of this method can be checked without a solver."""
        return self in _CHECKED

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that this method gives."""
        if self.is_checked:
            return Proof.CERTIFICATE
        return Proof.CP_SAT if self is Origin.CP_SAT else Proof.SEARCH


_CHECKED = frozenset({Origin.NODE_PRICES, Origin.COUNTING, Origin.PARTITION_PRICES, Origin.CASES})


def weakest_proof(proofs: Iterable[Proof]) -> Proof:
    """Return the weakest of several kinds of proof: that of all values together."""
    order = list(Proof)
    return max(proofs, key=order.index, default=Proof.NONE)


@dataclass(frozen=True, slots=True)
class LevelClaim:
    """Claimed value and bound of one level, and the method that proved the bound.

    The bound is valid for assignments within the limits of the earlier levels. The limit of a
    level is its best known value plus its tolerance.
    """

    level: Level
    value: int
    bound: int
    origin: Origin
    best: Assignment | None = None
    """Best known assignment on this level, if the certified one is worse, within the tolerance."""
    prices: PartitionPrices | None = None
    """Evidence of the origin ``partition_prices``, which refutes values below the bound."""
    windows: tuple[int, ...] = ()
    """Windows whose loads, added up, prove a bound on the peak with origin ``counting``."""

    @property
    def slack(self) -> int:
        """Return the maximum permitted difference between value and bound."""
        return self.level.tolerance.limit(self.bound) - self.bound

    @property
    def is_proven(self) -> bool:
        """Return whether the bound proves that the value is optimal within the tolerance."""
        return self.bound >= 0 and self.value - self.bound <= self.slack

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that the value is optimal within the tolerance."""
        return self.origin.proof if self.is_proven else Proof.NONE


@dataclass(frozen=True, slots=True)
class Conflict:
    """Set of constraints that no assignment meets, with evidence of the conflict."""

    constraints: tuple[Constraint, ...]  # small subset, with the capacities of the group
    origin: Origin
    prices: PartitionPrices | None = None  # evidence of the origin ``partition_prices``


@dataclass(frozen=True, slots=True)
class Certificate:
    """Claims about an assignment, or a conflict between constraints, with evidence.

    Parameters
    ----------
    chain
        Transfers that improve the assignment, if it is known not to be optimal.
    node_prices
        Evidence of the bounds with origin ``node_prices``: a price per node of the
        `kassay.solver.network.level_cost_network`, see `placement_prices` there.
    constraints
        Constraints that must hold besides the capacities of the group.
    conflict
        Conflict that excludes every assignment; there are no claims then.
    """

    claims: tuple[LevelClaim, ...]
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
        """Return whether the certificate claims that the assignment is optimal."""
        return self.conflict is None and self.proof is not Proof.NONE

    @property
    def proof(self) -> Proof:
        """Return the kind of proof that all levels are optimal or that the constraints conflict."""
        if self.conflict is not None:
            return self.conflict.origin.proof
        required = (claim.proof for claim in self.claims if not is_preference(claim.level))
        return Proof.NONE if self.chain else weakest_proof(required)

    @property
    def trusted(self) -> tuple[LevelClaim, ...]:
        """Return the claims that only a solver can check."""
        return tuple(claim for claim in self.claims if not claim.origin.is_checked)


def value_of(group: Group, assignment: Assignment, level: Level) -> int:
    """Return the value of a valid assignment on one level of the objective."""
    problem = build_problem(group)
    return level_value(problem, level, problem.valid_placement(assignment))


def level_limits(
    group: Group, assignment: Assignment, claims: Sequence[LevelClaim]
) -> list[tuple[Level, int]]:
    """Return each level with its limit: the best known value plus the tolerance."""
    return [
        (claim.level, claim.level.tolerance.limit(value_of(group, best, claim.level)))
        for claim in claims
        for best in (claim.best or assignment,)
    ]


def stable_claims(problem: Problem, claims: Sequence[LevelClaim]) -> Sequence[LevelClaim]:
    """Return the claims that remain valid if a search improves the assignment.

    If the search lowers the value of a level, fewer assignments are within its limit: the bound on
    the next level stays valid. The next level's value can then rise, so later bounds are not valid.
    """
    for index, claim in enumerate(claims):
        value, limit = claim.value, claim.level.tolerance.limit
        if claim.best is not None:
            value = level_value(problem, claim.level, problem.valid_placement(claim.best))
        if limit(value) != limit(claim.bound):
            return claims[: index + 2]
    return claims


def improves(
    group: Group, assignment: Assignment, certificate: Certificate, chain: tuple[Transfer, ...]
) -> bool:
    """Return whether a chain of transfers improves the levels and violates no constraint."""
    better = apply_chain(group, assignment, chain)
    rules = (*group_constraints(group), *certificate.constraints)
    problem = build_problem(group)
    if any(violated(problem, rules, problem.valid_placement(better))):
        return False
    levels = [claim.level for claim in certificate.claims]
    values, improved = (
        [value_of(group, one, level) for level in levels] for one in (assignment, better)
    )
    return improved < values


@dataclass(frozen=True, slots=True)
class RebalanceEvidence:
    """Evidence from one rebalance for the minimum number of moves in a sequence."""

    member_sets: tuple[tuple[str, ...], ...]
    """Sets of members by descending load. The members of the first sets receive all partitions that
    only they can receive. Empty if weights or speeds differ in the stream."""
    prices: Mapping[str, int]
    """Price of a partition per member, or of a unit of weight if weights or speeds differ."""
    best: Assignment | None = None
    """Assignment with the minimum makespan, if the tolerance lets the makespan of the trajectory
    exceed it, or if weights or speeds differ."""
    least: Certificate | None = None
    """Certificate of the minimum makespan of ``best``, if weights or speeds differ."""

    @property
    def loads(self) -> LoadEvidence:
        """Return the evidence for the permitted loads of the members."""
        return self.member_sets if self.member_sets or self.best is None else self.best


@dataclass(frozen=True, slots=True)
class TrajectoryCertificate:
    """Claim about the total moves in a sequence of rebalances, with evidence.

    Parameters
    ----------
    levels
        Levels of each rebalance: imbalance, then movement.
    value, bound
        Moves over all rebalances, and a lower bound on them.
    scale
        The prices are in units of ``1 / scale`` moves.
    """

    levels: tuple[Level, ...]
    value: int
    bound: int
    scale: int
    rebalances: tuple[RebalanceEvidence, ...]

    @property
    def trusted(self) -> tuple[int, ...]:
        """Return the rebalances with a minimum makespan that only a solver can check.

        The value and the bound then refer to the makespan of ``best``.
        """
        tolerance = self.levels[0].tolerance if self.levels else EXACT
        return tuple(
            number
            for number, one in enumerate(self.rebalances)
            if not one.member_sets and one.best is not None and not _is_least(one, tolerance)
        )


def _is_least(one: RebalanceEvidence, tolerance: Tolerance) -> bool:
    """Return whether the load limit of a rebalance is proven without a solver."""
    if one.least is None or not one.least.claims:
        return False
    claim = one.least.claims[0]
    bound = claim.bound if claim.origin.is_checked else 0
    return tolerance.limit(bound) == tolerance.limit(claim.value)
