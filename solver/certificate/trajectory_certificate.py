"""Certificate of the moves of a trajectory, and its JSON document."""

from collections.abc import Mapping
from dataclasses import dataclass

from kassay.reference.documents.json_codec import assignment_document, parse_assignment
from kassay.reference.documents.json_values import (
    as_array,
    as_integer,
    as_object,
    as_text,
    check_keys,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.solver.certificate.read_certificate import LEVEL_KEYS, parse_items, parse_level
from kassay.solver.certificate.write_certificate import level_document
from kassay.solver.objective import Level

VERSION = 1


@dataclass(frozen=True, slots=True)
class RebalanceEvidence:
    """Evidence of one rebalance.

    Parameters
    ----------
    member_sets
        Sets of members by descending load. The members of the first sets receive all partitions
        that only they can receive.
    prices
        Price of one partition per member.
    best
        Assignment with the minimum makespan, if the tolerance lets the makespan of the trajectory
        exceed it.
    """

    member_sets: tuple[tuple[str, ...], ...]
    prices: Mapping[str, int]
    best: Assignment | None = None


@dataclass(frozen=True, slots=True)
class TrajectoryCertificate:
    """Claim about the total of moves over a sequence of rebalances, with evidence.

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


def trajectory_certificate_document(certificate: TrajectoryCertificate) -> dict[str, object]:
    """Convert a certificate of a trajectory to a JSON document."""
    return {
        "version": VERSION,
        "levels": [level_document(level) for level in certificate.levels],
        "value": certificate.value,
        "bound": certificate.bound,
        "scale": certificate.scale,
        "rebalances": [_evidence_document(one) for one in certificate.rebalances],
    }


def _evidence_document(one: RebalanceEvidence) -> dict[str, object]:
    document: dict[str, object] = {
        "member_sets": [list(names) for names in one.member_sets],
        "prices": dict(one.prices),
    }
    if one.best is not None:
        document["best"] = assignment_document(one.best)
    return document


def parse_trajectory_certificate(
    document: object, *, where: str = "certificate"
) -> TrajectoryCertificate:
    """Parse a certificate of a trajectory. Raise InputError if the format is wrong."""
    table = as_object(document, where)
    check_keys(table, ("version", "levels", "value", "bound", "scale", "rebalances"), where)
    if table.get("version") != VERSION:
        raise InputError(f"{where}: version must be {VERSION}, got {table.get('version')!r}")
    return TrajectoryCertificate(
        levels=tuple(parse_items(table.get("levels"), f"{where}.levels", _level)),
        value=as_integer(table.get("value"), f"{where}.value"),
        bound=as_integer(table.get("bound"), f"{where}.bound"),
        scale=as_integer(table.get("scale"), f"{where}.scale"),
        rebalances=tuple(parse_items(table.get("rebalances"), f"{where}.rebalances", _evidence)),
    )


def _level(value: object, where: str) -> Level:
    table = as_object(value, where)
    check_keys(table, LEVEL_KEYS, where)
    return parse_level(table, where)


def _evidence(value: object, where: str) -> RebalanceEvidence:
    table = as_object(value, where)
    check_keys(table, ("member_sets", "prices", "best"), where)
    best = table.get("best")
    place = f"{where}.member_sets"
    return RebalanceEvidence(
        member_sets=tuple(
            tuple(as_text(name, place) for name in as_array(names, place))
            for names in as_array(table.get("member_sets"), place)
        ),
        prices={
            name: as_integer(price, f"{where}.prices[{name!r}]")
            for name, price in as_object(table.get("prices"), f"{where}.prices").items()
        },
        best=None if best is None else parse_assignment(best, where=f"{where}.best"),
    )
