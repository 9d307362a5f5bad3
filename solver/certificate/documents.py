"""JSON documents of certificates, levels and constraints."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, TypeVar

from kassay.reference.documents.json_codec import assignment_document, parse_assignment
from kassay.reference.documents.json_values import (
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    check_keys,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, InternalError
from kassay.reference.model.metrics import Measure
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
"""Constraints by their names in documents. The other keys are the names of their fields."""


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


LEVEL_KEYS = ("level", "tolerance", "up_to", "cost", "other", "topics")
"""Keys of a level; ``cost`` and ``other`` belong to movement, ``topics`` to colocation."""

_FURTHER_KEYS = {
    objective.Movement.name: ("cost", "other"),
    objective.Colocation.name: ("topics",),
}
Item = TypeVar("Item")


def parse_certificate(document: object, *, where: str = "certificate") -> Certificate:
    """Parse a certificate from a JSON document. Raise InputError if the format is wrong."""
    table = as_object(document, where)
    if table.get("version") != VERSION:
        raise InputError(
            f"{where}: version must be {VERSION}, got {table.get('version')!r}; solve the group "
            "again to get a certificate of this version"
        )
    check_keys(
        table, ("version", "claims", "constraints", "chain", "conflict", "node_prices"), where
    )
    return Certificate(
        claims=tuple(parse_items(table.get("claims"), f"{where}.claims", _claim)),
        chain=tuple(parse_items(table.get("chain", []), f"{where}.chain", _transfer)),
        node_prices=tuple(as_integers(table.get("node_prices", []), f"{where}.node_prices")),
        constraints=tuple(
            parse_items(table.get("constraints", []), f"{where}.constraints", parse_constraint)
        ),
        conflict=_conflict(table["conflict"], f"{where}.conflict") if "conflict" in table else None,
    )


def _transfer(value: object, where: str) -> Transfer:
    table = as_object(value, where)
    check_keys(table, ("partition", "from", "to"), where)
    return Transfer(
        partition=parse_partition(table.get("partition"), f"{where}.partition"),
        giver=as_text(table.get("from"), f"{where}.from"),
        taker=as_text(table.get("to"), f"{where}.to"),
    )


def _claim(value: object, where: str) -> LevelClaim:
    table = as_object(value, where)
    check_keys(table, (*LEVEL_KEYS, "value", "bound", "origin", "best", "prices"), where)
    return LevelClaim(
        level=parse_level(table, where),
        value=as_integer(table.get("value"), f"{where}.value"),
        bound=as_integer(table.get("bound"), f"{where}.bound"),
        origin=_origin(table, where),
        best=_best(table, where),
        prices=_partition_prices(table, where),
    )


def _conflict(value: object, where: str) -> Conflict:
    table = as_object(value, where)
    check_keys(table, ("constraints", "origin", "prices"), where)
    rules = parse_items(table.get("constraints"), f"{where}.constraints", parse_constraint)
    return Conflict(tuple(rules), _origin(table, where), _partition_prices(table, where))


def _origin(table: Mapping[str, object], where: str) -> Origin:
    origin = as_text(table.get("origin"), f"{where}.origin")
    if origin not in list(Origin):
        raise InputError(
            f"{where}.origin: unknown origin {origin!r}, expected one of {', '.join(Origin)}"
        )
    return Origin(origin)


def _best(table: Mapping[str, object], where: str) -> Assignment | None:
    if "best" not in table:
        return None
    return parse_assignment({"assignment": table["best"]}, where=f"{where}.best")


def _partition_prices(table: Mapping[str, object], where: str) -> PartitionPrices | None:
    if "prices" not in table:
        return None
    where = f"{where}.prices"
    prices = as_object(table["prices"], where)
    check_keys(prices, ("topics", "max_moves", "levels"), where)
    return PartitionPrices(
        prices={
            topic: as_integers(numbers, f"{where}.topics[{topic!r}]")
            for topic, numbers in as_object(prices.get("topics"), f"{where}.topics").items()
        },
        max_moves=as_integer(prices.get("max_moves", 0), f"{where}.max_moves"),
        levels=as_integers(prices.get("levels", []), f"{where}.levels"),
    )


def parse_items(value: object, where: str, parse: Callable[[object, str], Item]) -> list[Item]:
    """Parse a JSON array with a function that parses one item."""
    items = enumerate(as_array(value, where))
    return [parse(item, f"{where}[{index}]") for index, item in items]


def parse_partition(value: object, where: str) -> TopicPartition:
    """Parse a JSON array of a topic name and a partition number."""
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
    try:
        tolerance = _tolerance(table.get("tolerance", [0, 0, 1]), f"{where}.tolerance")
        if "up_to" in table:
            tolerance = replace(tolerance, up_to=as_integer(table["up_to"], f"{where}.up_to"))
        if name == objective.Movement.name:
            return _movement(table, tolerance, where)
        if name == objective.Colocation.name:
            sets = parse_items(table.get("topics"), f"{where}.topics", _topics)
            return objective.Colocation(tuple(sets), tolerance)
        if name in objective.FURTHER_LEVELS:
            return objective.FURTHER_LEVELS[name](tolerance)
        if name in objective.FLOW_LEVELS:
            return objective.FLOW_LEVELS[name](tolerance)
        if name in list(Measure):
            return objective.Imbalance(Measure(name), tolerance)
        if name in objective.HOST_LEVELS:
            return objective.HostImbalance(objective.HOST_LEVELS[name], tolerance)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    known_levels = ", ".join(
        [
            *Measure,
            *objective.HOST_LEVELS,
            objective.Movement.name,
            objective.Colocation.name,
            *objective.FURTHER_LEVELS,
            *objective.FLOW_LEVELS,
        ]
    )
    raise InputError(f"{where}.level: unknown level {name!r}, expected one of {known_levels}")


def _tolerance(value: object, where: str) -> objective.Tolerance:
    parts = [as_integer(part, where) for part in as_array(value, where)]
    if len(parts) != 3 or parts[2] < 1:
        raise InputError(
            f"{where}: expected three integers, absolute tolerance, numerator and denominator (at "
            f"least 1) of the relative tolerance, got {value!r}"
        )
    return objective.Tolerance(absolute=parts[0], relative=Fraction(parts[1], parts[2]))


def _movement(
    table: Mapping[str, object], tolerance: objective.Tolerance, where: str
) -> objective.Movement:
    cost = table.get("cost", str(objective.MovementCost.COUNT))
    if isinstance(cost, str):
        if cost not in list(objective.MovementCost):
            raise InputError(
                f"{where}.cost: unknown cost {cost!r}, "
                f"expected one of {', '.join(objective.MovementCost)}"
            )
        return objective.Movement(objective.MovementCost(cost), tolerance)
    pairs = parse_items(cost, f"{where}.cost", _partition_cost)
    return objective.Movement(
        tuple(pairs), tolerance, as_integer(table.get("other"), f"{where}.other")
    )


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
    keys = [field.name for field in fields(kind)]
    check_keys(table, ("constraint", *keys), where)
    optional = _OPTIONAL_FIELDS.get(kind, {})
    parsers = {key: optional.get(key, _FIELDS[key]) for key in keys}
    return kind(**{key: parse(table.get(key), f"{where}.{key}") for key, parse in parsers.items()})


def _topics(value: object, where: str) -> tuple[str, ...]:
    return tuple(parse_items(value, where, as_text))


def _partitions(value: object, where: str) -> tuple[TopicPartition, ...]:
    return tuple(parse_items(value, where, parse_partition))


_FIELDS: dict[str, Callable[[object, str], Any]] = {
    "limit": as_integer,
    "member": as_text,
    "topic": as_text,
    "partition": as_integer,
    "topics": _topics,
    "partitions": _partitions,
}
"""Functions that parse the fields of constraints, by name of the field."""

_OPTIONAL_FIELDS: dict[type[constraints.Constraint], dict[str, Callable[[object, str], Any]]] = {
    constraints.Capacity: {"member": as_optional_text},
    constraints.MaxPartitions: {"member": as_optional_text},
    constraints.Forbidden: {"partition": as_optional_integer},
}
