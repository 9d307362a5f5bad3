"""Convert certificates, levels and constraints to JSON documents."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction

from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.errors import InternalError
from kassay.solver import constraints, objective
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Price
from kassay.solver.certificate.refutation import PartitionPrices

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
