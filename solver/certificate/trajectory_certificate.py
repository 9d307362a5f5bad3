"""Certificate of the moves of a trajectory, and its JSON document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.documents.json_values import (
    as_integer,
    as_integers,
    as_object,
    as_texts,
    check_keys,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.solver.certificate.certificate import Certificate
from kassay.solver.certificate.documents import (
    LEVEL_KEYS,
    certificate_document,
    items_of,
    level_document,
    parse_certificate,
    parse_fields,
    parse_level,
    parse_named_assignment,
    table_of,
    word_of,
)
from kassay.solver.certificate.rebalance_sequence import LoadEvidence
from kassay.solver.objective import EXACT, Level, Tolerance

VERSION = 1


class TrajectoryObjective(StrEnum):
    """Number that the trajectory minimises: all moves, or the maximum per rebalance."""

    TOTAL = "total"
    LARGEST = "largest"

    def of(self, moves: Sequence[int]) -> int:
        """Return the value for the moves of each rebalance."""
        return sum(moves) if self is TrajectoryObjective.TOTAL else max(moves, default=0)


@dataclass(frozen=True, slots=True)
class RebalanceEvidence:
    """Evidence of one rebalance.

    Parameters
    ----------
    member_sets
        Sets of members by descending load. The members of the first sets receive all partitions
        that only they can receive. Empty if weights or speeds differ in the stream.
    prices
        Price of one unit of load per member: of a partition, or of weight if weights or speeds
        differ.
    best
        Assignment with the minimum makespan, if the tolerance lets the makespan of the trajectory
        exceed it, or if weights or speeds differ.
    least
        Certificate of the minimum makespan of ``best``, if weights or speeds differ.
    """

    member_sets: tuple[tuple[str, ...], ...]
    prices: Mapping[str, int]
    best: Assignment | None = None
    least: Certificate | None = None

    @property
    def loads(self) -> LoadEvidence:
        """Return the evidence of the permitted loads."""
        return self.member_sets if self.member_sets or self.best is None else self.best


@dataclass(frozen=True, slots=True)
class TrajectoryCertificate:
    """Claim about the total of moves over a sequence of rebalances, with evidence.

    Parameters
    ----------
    levels
        Levels of each rebalance: imbalance, then movement.
    value, bound
        Value of the objective, and a lower bound on it.
    scale
        The prices are in units of ``1 / scale`` moves.
    move_costs
        Cost of a move per rebalance, in the same unit, for the objective ``largest``. Their sum is
        at most the scale.
    """

    levels: tuple[Level, ...]
    value: int
    bound: int
    scale: int
    rebalances: tuple[RebalanceEvidence, ...]
    objective: TrajectoryObjective = TrajectoryObjective.TOTAL
    move_costs: tuple[int, ...] = ()

    @property
    def trusted(self) -> tuple[int, ...]:
        """Return the rebalances whose minimum makespan cannot be checked without a solver.

        The value and the bound then refer to the makespan of ``best``.
        """
        tolerance = self.levels[0].tolerance if self.levels else EXACT
        return tuple(
            number
            for number, one in enumerate(self.rebalances)
            if not one.member_sets and one.best is not None and not _is_least(one, tolerance)
        )


def _is_least(one: RebalanceEvidence, tolerance: Tolerance) -> bool:
    """Return whether a certificate proves that no lower makespan has a lower limit."""
    if one.least is None or not one.least.claims:
        return False
    claim = one.least.claims[0]
    bound = claim.bound if claim.origin.is_checked else 0
    return tolerance.limit(bound) == tolerance.limit(claim.value)


def trajectory_certificate_document(certificate: TrajectoryCertificate) -> dict[str, object]:
    """Convert a certificate of a trajectory to a JSON document."""
    document: dict[str, object] = {
        "version": VERSION,
        "levels": [level_document(level) for level in certificate.levels],
        "value": certificate.value,
        "bound": certificate.bound,
        "scale": certificate.scale,
        "rebalances": [_evidence_document(one) for one in certificate.rebalances],
    }
    if certificate.objective is not TrajectoryObjective.TOTAL:
        document["objective"] = str(certificate.objective)
        document["move_costs"] = list(certificate.move_costs)
    return document


def _evidence_document(one: RebalanceEvidence) -> dict[str, object]:
    document: dict[str, object] = {
        "member_sets": [list(names) for names in one.member_sets],
        "prices": dict(one.prices),
    }
    if one.best is not None:
        document["best"] = assignment_document(one.best)
    if one.least is not None:
        document["least"] = certificate_document(one.least)
    return document


def parse_trajectory_certificate(
    document: object, where: str = "certificate"
) -> TrajectoryCertificate:
    """Parse a certificate of a trajectory. Raise InputError if the format is wrong."""
    fields = parse_fields(
        document,
        where,
        {
            "version": as_integer,
            "levels": items_of(_level),
            "value": as_integer,
            "bound": as_integer,
            "scale": as_integer,
            "rebalances": items_of(_evidence),
        },
        {"objective": word_of(TrajectoryObjective), "move_costs": as_integers},
    )
    version = fields.pop("version")
    if version != VERSION:
        raise InputError(f"{where}: version must be {VERSION}, got {version!r}")
    return TrajectoryCertificate(**fields)


def _level(value: object, where: str) -> Level:
    table = as_object(value, where)
    check_keys(table, LEVEL_KEYS, where)
    return parse_level(table, where)


def _evidence(value: object, where: str) -> RebalanceEvidence:
    fields = parse_fields(
        value,
        where,
        {"member_sets": items_of(as_texts), "prices": table_of(as_integer)},
        {"best": parse_named_assignment, "least": parse_certificate},
    )
    return RebalanceEvidence(**fields)
