"""Convert certificates, levels and constraints to JSON documents and back."""

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from kassay.reference.documents.files import (
    Parser,
    as_array,
    as_flag,
    as_integer,
    as_integers,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    items_of,
    parse_fields,
    table_of,
    word_of,
)
from kassay.reference.documents.json_codec import assignment_document, parse_assignment
from kassay.reference.model.errors import InputError, InternalError
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver import constraints, objective
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.network.improving_chains import Transfer

VERSION = 4


CONSTRAINTS: dict[str, type[constraints.Constraint]] = {
    "capacity": constraints.Capacity,
    "max_partitions": constraints.MaxPartitions,
    "max_moves": constraints.MaxMoves,
    "pinned": constraints.Pinned,
    "forbidden": constraints.Forbidden,
    "colocated": constraints.Colocated,
    "separated": constraints.Separated,
}
"""Constraints by name in documents. The other keys of a document are fields of the constraint."""


def certificate_document(certificate: Certificate) -> dict[str, object]:
    """Convert a certificate to a JSON document without empty fields."""
    document: dict[str, object] = {
        "version": VERSION,
        "claims": [_claim_document(claim) for claim in certificate.claims],
    }
    if certificate.constraints:
        document["constraints"] = [constraint_document(rule) for rule in certificate.constraints]
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
    if objective.is_preference(level):
        document["preference"] = True
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
        raise InternalError(f"internal error: CONSTRAINTS in {__name__} has no entry for {rule!r}")
    document = {field.name: getattr(rule, field.name) for field in fields(rule)}
    if document.get("window", 0) is None:
        del document["window"]
    return {"constraint": name} | document


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
    if claim.windows:
        document["windows"] = list(claim.windows)
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


LEVEL_KEYS = ("level", "tolerance", "up_to", "cost", "other", "topics", "preference")
"""Keys of a level; ``cost`` and ``other`` belong to movement, ``topics`` to colocation."""

_FURTHER_KEYS = {
    objective.Movement.name: ("cost", "other"),
    objective.Colocation.name: ("topics",),
    **{str(measure): ("preference",) for measure in Measure},
}


def parse_certificate(document: object, where: str = "certificate") -> Certificate:
    """Parse a certificate from a JSON document. Raise InputError if the format is wrong."""
    table = as_object(document, where)
    if table.get("version") != VERSION:
        raise InputError(
            f"{where}: version must be {VERSION}, got {table.get('version')!r}; solve the group "
            "again to get a certificate of this version"
        )
    fields = parse_fields(
        table,
        where,
        {"version": as_integer, "claims": items_of(_claim)},
        {
            "constraints": items_of(parse_constraint),
            "chain": items_of(_transfer),
            "conflict": _conflict,
            "node_prices": as_integers,
        },
    )
    del fields["version"]
    for index, claim in enumerate(fields["claims"][:-1]):
        if objective.is_preference(claim.level):
            raise InputError(f"{where}.claims[{index}].preference: only the last level can be true")
    return Certificate(**fields)


def _transfer(value: object, where: str) -> Transfer:
    required = {"partition": parse_partition, "from": as_text, "to": as_text}
    fields = parse_fields(value, where, required)
    return Transfer(fields["partition"], fields["from"], fields["to"])


def _claim(value: object, where: str) -> LevelClaim:
    table = as_object(value, where)
    check_keys(table, (*LEVEL_KEYS, *_CLAIM, *_EVIDENCE), where)
    rest = {key: table[key] for key in table if key not in LEVEL_KEYS}
    return LevelClaim(parse_level(table, where), **parse_fields(rest, where, _CLAIM, _EVIDENCE))


def _conflict(value: object, where: str) -> Conflict:
    required = {"constraints": items_of(parse_constraint), "origin": word_of(Origin)}
    return Conflict(**parse_fields(value, where, required, {"prices": _partition_prices}))


def _partition_prices(value: object, where: str) -> PartitionPrices:
    fields = parse_fields(
        value,
        where,
        {"topics": table_of(as_integers)},
        {"max_moves": as_integer, "levels": as_integers},
    )
    return PartitionPrices(fields.pop("topics"), **fields)


_CLAIM = {"value": as_integer, "bound": as_integer, "origin": word_of(Origin)}
_EVIDENCE: dict[str, Parser[Any]] = {
    "best": lambda value, where: parse_assignment({"assignment": value}, where=where),
    "prices": _partition_prices,
    "windows": as_integers,
}


def parse_partition(value: object, where: str) -> TopicPartition:
    """Parse an array [topic, partition number]. Raise InputError for other values."""
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected [topic, partition number], got {value!r}")
    return TopicPartition(as_text(pair[0], where), as_integer(pair[1], where))


def parse_level(table: Mapping[str, object], where: str) -> objective.Level:
    """Parse a level of the objective from JSON. Raise InputError if the format is wrong.

    Keys that no level has are ignored; a key of another level is an error.
    """
    name = as_text(table.get("level"), f"{where}.level")
    known = (*LEVEL_KEYS[:3], *_FURTHER_KEYS.get(name, ()))
    check_keys({key: 0 for key in LEVEL_KEYS if key in table}, known, where)
    if name not in objective.LEVELS:
        names = ", ".join(objective.LEVELS)
        raise InputError(f"{where}.level: unknown level {name!r}, expected one of {names}")
    try:
        changes: dict[str, Any] = {"tolerance": _tolerance(table, where)}
        if name == objective.Colocation.name:
            changes["topics"] = items_of(as_texts)(table.get("topics"), f"{where}.topics")
        elif name == objective.Movement.name and isinstance(table.get("cost", ""), str):
            parse_cost = word_of(objective.MovementCost)
            changes["cost"] = parse_cost(table.get("cost", "count"), f"{where}.cost")
        elif name == objective.Movement.name:
            changes["cost"] = items_of(_partition_cost)(table["cost"], f"{where}.cost")
            changes["other"] = as_integer(table.get("other"), f"{where}.other")
        elif name in list(Measure):
            changes["is_preference"] = as_flag(
                table.get("preference", False), f"{where}.preference"
            )
        return replace(objective.LEVELS[name], **changes)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def _tolerance(table: Mapping[str, object], where: str) -> objective.Tolerance:
    parts = items_of(as_integer)(table.get("tolerance", [0, 0, 1]), f"{where}.tolerance")
    if len(parts) != 3 or parts[2] < 1:
        raise InputError(
            f"{where}.tolerance: expected three integers [absolute, numerator, denominator], with "
            f"a denominator of at least 1, got {table['tolerance']!r}"
        )
    up_to = as_integer(table["up_to"], f"{where}.up_to") if "up_to" in table else None
    return objective.Tolerance(parts[0], Fraction(parts[1], parts[2]), up_to)


def _partition_cost(value: object, where: str) -> tuple[TopicPartition, int]:
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected [partition, cost], got {value!r}")
    return parse_partition(pair[0], where), as_integer(pair[1], where)


def parse_constraint(value: object, where: str) -> constraints.Constraint:
    """Parse a constraint from a JSON object. Raise InputError if the format is wrong."""
    table = as_object(value, where)
    name = as_text(table.get("constraint"), f"{where}.constraint")
    if name not in CONSTRAINTS:
        raise InputError(
            f"{where}.constraint: unknown constraint {name!r}, "
            f"expected one of {', '.join(CONSTRAINTS)}"
        )
    kind = CONSTRAINTS[name]
    optional = _OPTIONAL_FIELDS.get(kind, {})
    own = {one.name: _FIELDS[one.name] for one in fields(kind) if one.name not in optional}
    parsed = parse_fields(table, where, {"constraint": as_text} | own, optional)
    del parsed["constraint"]
    return kind(**parsed)


_FIELDS: dict[str, Parser[Any]] = {
    "limit": as_integer,
    "member": as_text,
    "topic": as_text,
    "partition": as_integer,
    "topics": as_texts,
    "partitions": items_of(parse_partition),
}
"""Functions that parse the fields of constraints, by name of the field."""

_OPTIONAL_FIELDS: dict[type[constraints.Constraint], dict[str, Parser[Any]]] = {
    constraints.Capacity: {"member": as_optional_text, "window": as_optional_integer},
    constraints.MaxPartitions: {"member": as_optional_text},
    constraints.Forbidden: {"partition": as_optional_integer},
}
